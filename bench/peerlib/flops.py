"""Count the floating-point work that a model cannot avoid.

Two FLOP per multiply-add of Conv, ConvTranspose, Gemm and MatMul, and of a convolution only the taps that fall on data: a tap
in the padding multiplies by zero and no engine has to do it. Everything else (activations, norms, softmax) is left out, so a
share of the FMA limit computed from this count is a lower bound. Products of constants alone are left out too; any engine
folds them. Shapes are not inferred but observed: the model runs once, unoptimised, with the contractions' tensors as outputs.
"""
import math

import numpy as np
import onnx
import onnxruntime

CONTRACTIONS = {"Conv", "ConvTranspose", "Gemm", "MatMul"}
NOT_COUNTED = {"ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul", "DeformConv", "Einsum", "Attention", "LSTM",
               "GRU", "RNN", "If", "Loop", "Scan"}


def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def axis_pads(attrs, axis, size, kernel, stride, dilation):
    """Padding (before, after) of one spatial axis of a convolution."""
    auto = attrs.get("auto_pad", b"NOTSET").decode()
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        total = max(0, (math.ceil(size / stride) - 1) * stride + (kernel - 1) * dilation + 1 - size)
        smaller = total // 2
        return (smaller, total - smaller) if auto == "SAME_UPPER" else (total - smaller, smaller)
    if auto == "VALID" or "pads" not in attrs:
        return 0, 0
    pads = attrs["pads"]
    return pads[axis], pads[axis + len(pads) // 2]


def taps_on_data(positions, size, kernel, stride, dilation, pad):
    """Pairs (position, tap) of one axis whose index position * stride + tap * dilation - pad lies in [0, size)."""
    index = np.arange(positions)[:, None] * stride + np.arange(kernel)[None, :] * dilation - pad
    return int(((index >= 0) & (index < size)).sum())


def conv_flop(node, shape):
    x, w, y = shape[node.input[0]], shape[node.input[1]], shape[node.output[0]]
    attrs = attributes(node)
    rank = len(x) - 2
    transposed = node.op_type == "ConvTranspose"
    # A transposed convolution scatters: its input plays the role of the positions and its output that of the data.
    positions, data = (x, y) if transposed else (y, x)
    taps = 1
    for axis in range(rank):
        stride = attrs.get("strides", [1] * rank)[axis]
        dilation = attrs.get("dilations", [1] * rank)[axis]
        kernel, size = w[2 + axis], data[2 + axis]
        pad = axis_pads(attrs, axis, size, kernel, stride, dilation)[0]
        taps *= taps_on_data(positions[2 + axis], size, kernel, stride, dilation, pad)
    # w is [out, in/group, ...] and, transposed, [in, out/group, ...]: either way w[0] * w[1] products per tap and image.
    return 2 * x[0] * w[0] * w[1] * taps


def product_flop(node, shape):
    a, y = shape[node.input[0]], shape[node.output[0]]
    depth = a[0] if node.op_type == "Gemm" and attributes(node).get("transA", 0) else a[-1]
    return 2 * math.prod(y) * depth


def nodes_that_need_inputs(graph):
    """Nodes whose result depends on a graph input (the others are constants)."""
    constants = {i.name for i in graph.initializer} | {i.values.name for i in graph.sparse_initializer}
    live = {i.name for i in graph.input} - constants
    for node in graph.node:  # ONNX keeps nodes in topological order
        if any(name in live for name in node.input):
            live.update(node.output)
            yield node


def observed_shapes(model, names, feeds):
    """Run `model` once without optimisation and return the shapes of the tensors `names`."""
    constants = {i.name: tuple(i.dims) for i in model.graph.initializer}
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    wanted = sorted(names - constants.keys() - feeds.keys())
    del probe.graph.output[:]
    probe.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(probe.SerializeToString(), options, providers=["CPUExecutionProvider"])
    shapes = {name: value.shape for name, value in zip(wanted, session.run(wanted, feeds))}
    return {**constants, **{name: value.shape for name, value in feeds.items()}, **shapes}


def count(model, feeds):
    """(useful FLOP of one run, operator types that do arithmetic but are not counted)."""
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    nodes = list(nodes_that_need_inputs(model.graph))
    contractions = [n for n in nodes if n.op_type in CONTRACTIONS and n.domain in ("", "ai.onnx")]
    names = {name for n in contractions for name in (n.input[0], n.input[1], n.output[0])}
    shape = observed_shapes(model, names, feeds) if names else {}
    flop = sum((conv_flop if n.op_type.startswith("Conv") else product_flop)(n, shape) for n in contractions)
    return flop, sorted({n.op_type for n in nodes if n.op_type in NOT_COUNTED})
