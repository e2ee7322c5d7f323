"""Runs the built opfuse and reads and writes .npy with the standard library alone."""
import array
import ast
import json
import math
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

MODELS = pathlib.Path(__file__).resolve().parent / "models"
BINARY = os.environ.get("OPFUSE_BINARY", "opfuse")
CACHE = tempfile.TemporaryDirectory(prefix="opfuse-cache-")  # kernels of this test run alone
os.environ["XDG_CACHE_HOME"] = CACHE.name


class Result:
    def __init__(self, completed):
        self.code = completed.returncode
        self.out = completed.stdout
        self.err = completed.stderr

    @property
    def json(self):
        return json.loads(self.out)

    def __str__(self):
        return f"exit {self.code}\n--- stdout\n{self.out[-3000:]}\n--- stderr\n{self.err[-3000:]}"


def opfuse(*arguments, cwd=None, timeout=280, environment=None):
    completed = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=timeout,
                               env={**os.environ, **(environment or {})})
    return Result(completed)


def write_npy(path, shape, values, descr="<f4"):
    header = repr({"descr": descr, "fortran_order": False, "shape": tuple(shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    code = {"<f4": "f", "<i8": "q", "<f8": "d", "<i4": "i"}[descr]
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(array.array(code, values).tobytes())


def read_npy(path):
    data = pathlib.Path(path).read_bytes()
    length = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + length].decode())
    values = array.array({"<f4": "f", "<i8": "q", "<f8": "d"}[header["descr"]], data[10 + length:])
    return header["shape"], list(values)


def ramp(count):
    """Values that a wrong index would show."""
    return [math.sin(0.37 * i) + 0.01 * (i % 7) for i in range(count)]


class CliTest(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = pathlib.Path(self._folder.name)

    def ok(self, *arguments, **options):
        result = opfuse(*arguments, **options)
        self.assertEqual(result.code, 0, f"opfuse {' '.join(map(str, arguments))}: {result}")
        return result

    def fails(self, code, *arguments, says=(), **options):
        """Exits with `code`, and stderr says all of `says`."""
        result = opfuse(*arguments, **options)
        self.assertEqual(result.code, code, f"opfuse {' '.join(map(str, arguments))}: {result}")
        for text in says:
            self.assertIn(text, result.err)
        return result
