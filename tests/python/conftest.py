"""Small models for all tests: made once, with onnx, or built in."""
import os
import tempfile

CACHE = tempfile.TemporaryDirectory(prefix="opfuse-cache-")  # kernels of this test run alone; set before opfuse looks
os.environ["XDG_CACHE_HOME"] = CACHE.name

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import pytest  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import opfuse  # noqa: E402


def save_model(path, nodes, inputs, outputs, weights=()):
    """inputs, outputs: {name: (element type, shape)}"""
    def info(tensors):
        return [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in tensors.items()]
    graph = helper.make_graph(nodes, "net", info(inputs), info(outputs),
                              [numpy_helper.from_array(value, name) for name, value in dict(weights).items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


@pytest.fixture(scope="session")
def resnet():
    return opfuse.Model.zoo("resnet18")


@pytest.fixture(scope="session")
def resnet_exe(resnet):
    return opfuse.compile(opfuse.fuse(resnet))


@pytest.fixture(scope="session")
def conv_file(tmp_path_factory):
    """x -> Conv -> Sigmoid -> y, with an open batch."""
    random = np.random.default_rng(0)
    weights = {"w": random.standard_normal((4, 16, 3, 3), dtype=np.float32), "b": np.arange(4, dtype=np.float32)}
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]),
             helper.make_node("Sigmoid", ["c"], ["y"], name="gate")]
    return save_model(tmp_path_factory.mktemp("models") / "conv.onnx", nodes,
                      {"x": (TensorProto.FLOAT, ["n", 16, 6, 6])}, {"y": (TensorProto.FLOAT, ["n", 4, 6, 6])}, weights)


@pytest.fixture(scope="session")
def typed_file(tmp_path_factory):
    """Two inputs of different types, two outputs of different types."""
    nodes = [helper.make_node("Gather", ["table", "rows"], ["picked"], name="gather"),
             helper.make_node("Relu", ["picked"], ["values"], name="relu"),
             helper.make_node("Greater", ["picked", "level"], ["above"], name="greater")]
    table = np.linspace(-1, 1, 20, dtype=np.float32).reshape(5, 4)
    return save_model(tmp_path_factory.mktemp("models") / "typed.onnx", nodes,
                      {"rows": (TensorProto.INT64, [3]), "level": (TensorProto.FLOAT, [])},
                      {"values": (TensorProto.FLOAT, [3, 4]), "above": (TensorProto.BOOL, [3, 4])}, {"table": table})


@pytest.fixture
def image():
    return np.random.default_rng(1).random((1, 3, 224, 224), dtype=np.float32)
