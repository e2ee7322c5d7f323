"""The package has types, and a strict checker agrees with how it is used."""
import os
import pathlib
import subprocess
import sys

import opfuse

PROGRAM = '''
import numpy
import opfuse

model: opfuse.Model = opfuse.load("m.onnx")
plan: opfuse.Plan = opfuse.plan(model, "cpu:avx2", only=["ConvBN"])
plan["ConvBN@x"].apply = False
fused: opfuse.Fused = opfuse.fuse(model, patterns=[opfuse.PatternSpec("A", "conv"), *opfuse.TENSORRT_FUSION_PATTERNS])
counts: dict[str, int] = fused.modules()
exe: opfuse.Executable = opfuse.compile(fused, dims={"batch": 1})
out: dict[str, object] = exe.run({"x": numpy.zeros((1, 3), numpy.float32)})
try:
    print(opfuse.explain(model, node="x"))
except opfuse.Error as error:
    code: str = error.code
WRONG
'''


def check(tmp_path, line):
    (tmp_path / "program.py").write_text(PROGRAM.replace("WRONG", line))
    folder = pathlib.Path(opfuse.__file__).parents[1]
    environment = dict(os.environ) if folder.name == "site-packages" else {**os.environ, "MYPYPATH": str(folder)}
    return subprocess.run([sys.executable, "-m", "mypy", "--strict", "program.py"], cwd=tmp_path, capture_output=True, text=True,
                          env=environment)


def test_the_package_says_that_it_has_types():
    folder = pathlib.Path(opfuse.__file__).parent
    assert (folder / "py.typed").exists() and "class Executable" in (folder / "_core.pyi").read_text()


def test_right_use_passes_and_wrong_use_does_not(tmp_path):
    right = check(tmp_path, "")
    assert right.returncode == 0, right.stdout
    wrong = check(tmp_path, 'exe.run({"x": 1}).nothing')
    assert wrong.returncode == 1 and "nothing" in wrong.stdout
