"""Models from bytes and ModelProto, networks built in Python, optimize, the command in the package."""
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest

import opfuse


def block():
    net = opfuse.Network("block")
    x = net.input("x", ["batch", 8, 6, 6])
    y = net.op("relu", net.batch_norm(net.conv(x, out=8, kernel=3)))
    y = net.batch_norm(net.conv(y, out=8, kernel=3))
    net.output("y", net.op("relu", net.add(y, x)))
    return net


def test_a_residual_block_in_seven_lines(tmp_path):
    net = block()
    model = net.model()
    assert opfuse.fuse(model).modules() == {"FusedConvBNAddReLU": 1, "FusedConvBNReLU": 1}
    net.save(str(tmp_path / "block.onnx"))
    onnx.checker.check_model(str(tmp_path / "block.onnx"), full_check=True)
    x = np.random.default_rng(0).standard_normal((2, 8, 6, 6), dtype=np.float32)
    first = opfuse.compile(model).run({"x": x})["y"]
    assert np.array_equal(first, opfuse.compile(opfuse.load(tmp_path / "block.onnx")).run({"x": x})["y"])


def test_given_weights_are_used_and_checked():
    net = opfuse.Network()
    x = net.input("x", [1, 2, 3, 3])
    weights = np.zeros((1, 2, 1, 1), np.float32)
    weights[0, :, 0, 0] = (2, 3)
    net.output("y", net.conv(x, weights=weights, bias=np.array([1], np.float32)))
    x = np.ones((1, 2, 3, 3), np.float32)
    assert np.array_equal(opfuse.compile(net.model()).run({"x": x})["y"], np.full((1, 1, 3, 3), 6, np.float32))
    with pytest.raises(opfuse.Error) as error:
        net.conv(net.input("z", [1, 3, 3, 3]), weights=weights, name="c")
    assert (error.value.name, error.value.node) == ("channel_mismatch", "c")
    with pytest.raises(opfuse.Error, match="rellu"):
        net.op("rellu", net.input("w", [1]))


def test_attributes_and_absent_operands():
    net = opfuse.Network()
    x = net.input("x", [2, 3])
    net.output("y", net.op("clip", net.op("softmax", x, axis=0), None, net.constant(np.float32(0.5))))
    x = np.zeros((2, 3), np.float32)
    assert np.array_equal(opfuse.compile(net.model()).run({"x": x})["y"], np.full((2, 3), 0.5, np.float32))


def test_bytes_and_model_proto_are_models(conv_file):
    proto = onnx.load(conv_file)
    named = [line for line in opfuse.load(conv_file).text().splitlines() if not line.startswith("  file ")]
    for source in (conv_file.read_bytes(), proto, memoryview(conv_file.read_bytes())):
        assert opfuse.load(source).text().splitlines() == named
    with pytest.raises(opfuse.Error) as error:
        opfuse.load(b"nothing")
    assert error.value.name == "malformed_model"


def test_optimize_proves_and_measures():
    result = opfuse.optimize(block().model(), dims={"batch": 1}, seconds=0.01, threads=1)
    assert result.groups == 2 and result.failures == []
    assert result.ok == (not result.slower and not result.larger)
    assert result.fused.launches == 2 and result.unfused.launches == 7
    assert result.candidates[result.chosen].skipped == ""
    assert "as predicted" in str(result)
    x = np.ones((1, 8, 6, 6), np.float32)
    assert result.executable.run({"x": x})["y"].shape == (1, 8, 6, 6)
    with pytest.raises(opfuse.Error):
        opfuse.optimize(block().model(), seconds=0.01)


def test_the_command_of_the_package():
    done = subprocess.run([sys.executable, "-m", "opfuse", "--version"], capture_output=True, text=True)
    assert done.returncode == 0 and opfuse.__version__ in done.stdout
    script = pathlib.Path(sys.executable).with_name("opfuse")
    assert subprocess.run([script, "ops", "Conv"], capture_output=True).returncode == 0
    assert subprocess.run([script, "nonsense"], capture_output=True).returncode == 2


def test_nothing_foreign_in_the_namespace():
    public = {name for name in dir(opfuse) if not name.startswith("_")}
    assert set(opfuse.__all__) <= public
