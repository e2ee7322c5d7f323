"""The examples of the C API in other languages: compiled and run where their tools are, skipped by name where not."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cli"))
from harness import BINARY  # noqa: E402

LIBRARY = pathlib.Path(os.environ["OPFUSE_RUNTIME"]).resolve()
JNA = pathlib.Path("/usr/share/java/jna.jar")


def needs(*tools):
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


class Languages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        for name in ("libopfuse_runtime.so", "libopfuse_runtime.so.0"):
            (cls.folder / name).symlink_to(LIBRARY)
        subprocess.run([BINARY, "zoo", "mobilenet_v2", "--resolution", "32", "--width", "0.25", "-o", "m.onnx", "-q"], cwd=cls.folder, check=True)
        subprocess.run([BINARY, "compile", "m.onnx", "-o", "m.opf", "-q"], cwd=cls.folder, check=True, capture_output=True)
        link = f"-L{cls.folder} -Wl,-rpath,{cls.folder}"
        cls.environment = {**os.environ, "LD_LIBRARY_PATH": str(cls.folder), "CGO_CFLAGS": f"-I{ROOT}/include", "CGO_LDFLAGS": link,
                           "GOCACHE": f"{cls.folder}/gocache", "GO111MODULE": "off"}

    def do(self, *command):
        done = subprocess.run([str(word) for word in command], cwd=self.folder, env=self.environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"{command}: {done.stdout}{done.stderr}")
        return done.stdout

    def runs(self, *command):
        self.assertRegex(self.do(*command, "m.opf"), r"^output: 1000 values, the largest is -?[0-9.e-]+ at [0-9]+\n")
        done = subprocess.run([str(word) for word in (*command, "nowhere.opf")], cwd=self.folder, env=self.environment, capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("E0701", done.stdout + done.stderr)

    @needs("rustc")
    def test_rust(self):
        self.do("rustc", ROOT / "examples/run_in_rust/run_in_rust.rs", "-o", "in_rust", f"-Clink-arg={self.folder}/libopfuse_runtime.so")
        self.runs("./in_rust")

    @needs("go")
    def test_go(self):
        self.do("go", "build", "-o", "in_go", ROOT / "examples/run_in_go/run_in_go.go")
        self.runs("./in_go")

    @needs("mcs", "mono")
    def test_csharp(self):
        self.do("mcs", "-out:RunInCSharp.exe", ROOT / "examples/run_in_csharp/RunInCSharp.cs")
        self.runs("mono", "RunInCSharp.exe")

    @needs("java")
    @unittest.skipUnless(JNA.exists(), f"not installed: {JNA}")
    def test_java(self):
        self.runs("java", "-cp", JNA, ROOT / "examples/run_in_java/RunInJava.java")


if __name__ == "__main__":
    unittest.main()
