"""Models, targets, errors."""
import pathlib

import numpy as np
import onnx
import onnx.helper
import pytest

import opfuse


def test_a_model_shows_its_tensors(conv_file):
    model = opfuse.load(conv_file)
    [x], [y] = model.inputs(), model.outputs()
    assert (x.name, x.dtype, x.shape) == ("x", "float32", ("n", 16, 6, 6))
    assert (y.name, y.shape) == ("y", ("n", 4, 6, 6))
    assert "conv" in model.text()
    assert repr(model) == "<opfuse.Model x: float32[n,16,6,6] -> y: float32[n,4,6,6]>"


def test_paths_may_be_text_or_path(conv_file):
    assert opfuse.load(str(conv_file)).text() == opfuse.load(pathlib.Path(conv_file)).text()


def test_a_fused_model_is_saved_in_both_forms(resnet, tmp_path):
    fused = opfuse.fuse(resnet)
    fused.save(tmp_path / "functions.onnx")
    fused.save(tmp_path / "flat.onnx", flatten=True)
    functions, flat = (onnx.load(tmp_path / f"{form}.onnx") for form in ("functions", "flat"))
    assert {"FusedConvBNReLU", "FusedConvBNAddReLU"} <= {f.name.split("__")[0] for f in functions.functions}
    assert not flat.functions and len(flat.graph.node) > len(functions.graph.node)
    assert opfuse.fuse(opfuse.load(tmp_path / "functions.onnx")).modules() == fused.modules()


def test_operators_of_ones_own_are_expressions(tmp_path):
    node = onnx.helper.make_node("swish", ["x", "b"], ["y"], domain="my.ops", name="call")
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3]) for name in ("x", "b", "y")]
    graph = onnx.helper.make_graph([node], "g", values[:2], values[2:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("my.ops", 1)])
    onnx.save(model, tmp_path / "m.onnx")
    x, b = np.array([-1, 0, 2], np.float32), np.array([1, 2, 3], np.float32)
    for source in (tmp_path / "m.onnx", model):
        loaded = opfuse.load(source, operators=["swish(x, b) = x * sigmoid(b * x)"])
        y = opfuse.compile(loaded, cache=False).run({"x": x, "b": b})["y"]
        np.testing.assert_allclose(y, x / (1 + np.exp(-b * x)), rtol=1e-5)
    with pytest.raises(opfuse.Error, match="swish"):
        opfuse.load(model, operators=["swish(x, b) = x *"])


def test_targets_have_names():
    assert opfuse.Target.host().name == opfuse.Target.named("host").name
    assert opfuse.Target.named("cpu:avx2").name == "cpu:avx2"


def test_an_error_has_code_name_hint_and_the_whole_text(tmp_path):
    with pytest.raises(opfuse.Error) as caught:
        opfuse.load(tmp_path / "missing.onnx")
    error = caught.value
    assert (error.code, error.name) == ("E0701", "file_not_found")
    assert "missing.onnx" in error.message and str(error).startswith("error[E0701] file_not_found")
    assert isinstance(error, RuntimeError)


def test_an_error_names_the_node(tmp_path):
    from onnx import TensorProto, helper
    node = helper.make_node("MatMul", ["a", "b"], ["y"], name="product")
    graph = helper.make_graph([node], "net", [helper.make_tensor_value_info("a", TensorProto.FLOAT, [2, 4]),
                                              helper.make_tensor_value_info("b", TensorProto.FLOAT, [3, 4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "bad.onnx")
    with pytest.raises(opfuse.Error) as caught:
        opfuse.load(tmp_path / "bad.onnx")
    assert caught.value.node == "product" and caught.value.op.startswith("MatMul")
    assert caught.value.operands and caught.value.file.endswith("bad.onnx")


def test_an_unknown_name_has_a_hint():
    with pytest.raises(opfuse.Error) as caught:
        opfuse.Model.zoo("resnet51")
    assert caught.value.code == "E0402" and "resnet50" in caught.value.hint


def test_a_target_that_does_not_exist_is_an_error(resnet):
    with pytest.raises(opfuse.Error) as caught:
        opfuse.plan(resnet, "cpu:z80")
    assert caught.value.code == "E0401"


def test_the_version_is_the_library_s():
    assert opfuse.__version__.count(".") == 2
