"""The Python example of the README does what it says."""
import contextlib
import io
import os
import pathlib
import re
import runpy

import opfuse

README = pathlib.Path(os.environ.get("OPFUSE_SOURCE", pathlib.Path(__file__).parents[2])) / "README.md"


def example():
    [code] = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.M | re.S)
    return code


def test_it_has_eight_lines():
    assert len([line for line in example().splitlines() if line.strip()]) <= 8


def test_it_runs(tmp_path, monkeypatch):
    opfuse.Model.zoo("resnet50").save(tmp_path / "resnet50.onnx")
    (tmp_path / "example.py").write_text(example())
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        names = runpy.run_path("example.py")
    assert names["scores"].shape == (1, 1000)
    assert "'FusedConvBNAddReLU': 16" in printed.getvalue()
