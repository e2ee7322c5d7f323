#!/usr/bin/env python3
"""Graphs that are large by their number of nodes, and how long opfuse takes for them.

    large_graphs.py make NAME NODES OUT.onnx            one of the graphs below
    large_graphs.py time OPFUSE [--nodes N] [NAME ...]  seconds and MB of inspect, explain, fuse and compile

Tensors are tiny: what is measured is the work per node. Needs the Python package onnx.
"""
import argparse
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time

import numpy
from onnx import TensorProto, helper, numpy_helper, save

UNARY = ("Relu", "Tanh", "Neg", "Abs", "Sigmoid")
SHAPE = [1, 8]


class Builder:
    def __init__(self):
        self.nodes, self.constants = [], []

    def add(self, kind, inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=f"n{len(self.nodes)}", **attributes))
        return name

    def constant(self, array):
        return self.typed(array, numpy.float32)

    def integers(self, values):
        return self.typed(values, numpy.int64)

    def typed(self, array, kind):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(numpy.asarray(array, kind), name))
        return name

    def model(self, outputs, shape=SHAPE):
        graph = helper.make_graph(
            self.nodes, "large", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def distinct(b, value, i, n):
    """A node that is like no other, so that none are merged."""
    return b.add("LeakyRelu", [value], alpha=(i + 1) / (n + 1))


def chain(n):
    """Elementwise nodes one behind another."""
    b, value = Builder(), "x"
    for i in range(n):
        value = b.add(UNARY[i % len(UNARY)], [value])
    return b.model([value])


def binary_chain(n):
    """Additions and products of constants one behind another."""
    b, value = Builder(), "x"
    for i in range(n):
        value = b.add("Add" if i % 2 else "Mul", [value, b.constant(numpy.full(SHAPE, 1 + i % 7))])
    return b.model([value])


def readers(n):
    """One value that all others read."""
    b = Builder()
    return b.model([distinct(b, "x", i, n) for i in range(n)])


def fan(n):
    """One value that is computed, and that all others read."""
    b = Builder()
    value = b.add("Relu", ["x"])
    return b.model([distinct(b, value, i, n) for i in range(n - 1)])


def summed(n):
    """A Sum of all."""
    b = Builder()
    return b.model([b.add("Sum", [distinct(b, "x", i, n) for i in range(n - 1)])])


def joined(n):
    """A Concat of all."""
    b = Builder()
    return b.model([b.add("Concat", [distinct(b, "x", i, n) for i in range(n - 1)], axis=1)])


def branches(n):
    """Independent branches of ten nodes each."""
    b, ends = Builder(), []
    for k in range(max(1, n // 10)):
        value = distinct(b, "x", k, n)
        for i in range(9):
            value = b.add(UNARY[i % len(UNARY)], [value])
        ends.append(value)
    return b.model(ends)


def residual(n):
    """Residual blocks: x + tanh(relu(x))."""
    b, value = Builder(), "x"
    for _ in range(max(1, n // 3)):
        value = b.add("Add", [value, b.add("Tanh", [b.add("Relu", [value])])])
    return b.model([value])


def linear(n):
    """Residual blocks of two small products: x + W2 relu(W1 x + b)."""
    b, value = Builder(), "x"
    random = numpy.random.default_rng(0)
    w1, w2, bias = b.constant(random.normal(size=(8, 8))), b.constant(random.normal(size=(8, 8)) / 99), b.constant(random.normal(size=8))
    for _ in range(max(1, n // 5)):
        inner = b.add("Relu", [b.add("Add", [b.add("MatMul", [value, w1]), bias])])
        value = b.add("Add", [value, b.add("MatMul", [inner, w2])])
    return b.model([value])


def doubled(n):
    """x + x of x + x: expressions that double where a value is copied into each of its readers."""
    b, value = Builder(), "x"
    for _ in range(n):
        value = b.add("Add", [value, value])
    return b.model([value])


def shapes(n):
    """Reshapes, transposes and slices one behind another."""
    b, value = Builder(), "x"
    for i in range(n):
        value = b.add("Transpose", [value], perm=[1, 0]) if i % 2 else b.add("Relu", [value])
    return b.model([value])


def sizes(n):
    """What exporters write around a reshape, again and again: Shape, Gather, Unsqueeze, Concat, Reshape. The batch is open."""
    b, value = Builder(), "x"
    first, rest = b.integers([0]), b.integers([8])
    scalar = b.integers(0)
    for _ in range(max(1, n // 6)):
        size = b.add("Gather", [b.add("Shape", [value]), scalar], axis=0)
        target = b.add("Concat", [b.add("Unsqueeze", [size, first]), rest], axis=0)
        value = b.add("Relu", [b.add("Reshape", [value, target])])
    return b.model([value], ["n", 8])


def counted(n):
    """Arithmetic of one size behind another: what a reshape gets is a formula of thousands of terms."""
    b, value = Builder(), "x"
    one, size = b.integers([1]), b.add("Shape", ["x"], start=0, end=1)
    for i in range(max(1, n - 4)):
        size = b.add("Add" if i % 2 else "Sub", [size, one])
    target = b.add("Concat", [size, b.integers([8])], axis=0)
    return b.model([b.add("Reshape", [value, target])], ["n", 8])


def transformers(n):
    """Encoder layers behind each other: attention of two heads and an MLP, 49 nodes a layer."""
    b, width, heads, rows = Builder(), 16, 2, 4
    random = numpy.random.default_rng(0)
    scale, half, two = b.constant(0.35), b.constant(0.5), b.constant(2.0)
    epsilon, root, one = b.constant(1e-5), b.constant(1.41421356), b.constant(1.0)
    split, merged = b.integers([1, rows, heads, width // heads]), b.integers([1, rows, width])

    def dense(value, columns_in, columns_out):
        weights = b.constant(random.normal(size=(columns_in, columns_out)) / columns_in)
        return b.add("Add", [b.add("MatMul", [value, weights]), b.constant(random.normal(size=columns_out))])

    def normed(value):
        centred = b.add("Sub", [value, b.add("ReduceMean", [value], axes=[-1])])
        variance = b.add("ReduceMean", [b.add("Pow", [centred, two])], axes=[-1])
        unit = b.add("Div", [centred, b.add("Sqrt", [b.add("Add", [variance, epsilon])])])
        return b.add("Add", [b.add("Mul", [unit, b.constant(random.normal(size=width))]), b.constant(random.normal(size=width))])

    value = "x"
    for _ in range(max(1, n // 49)):
        inner = normed(value)
        q, k, v = (b.add("Transpose", [b.add("Reshape", [dense(inner, width, width), split])], perm=p)
                   for p in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        weights = b.add("Softmax", [b.add("Mul", [b.add("MatMul", [q, k]), scale])], axis=-1)
        seen = b.add("Reshape", [b.add("Transpose", [b.add("MatMul", [weights, v])], perm=[0, 2, 1, 3]), merged])
        value = b.add("Add", [value, dense(seen, width, width)])
        wide = dense(normed(value), width, 2 * width)
        gate = b.add("Add", [b.add("Erf", [b.add("Div", [wide, root])]), one])
        value = b.add("Add", [value, dense(b.add("Mul", [b.add("Mul", [wide, gate]), half]), 2 * width, width)])
    return b.model([value], [1, rows, width])


def normalize(b, value, channels, random):
    return b.add("BatchNormalization", [value, *(b.constant(numpy.abs(random.normal(size=channels)) + 0.5) for _ in range(4))])


def convolve(b, value, channels_in, channels_out, kernel, random):
    weights = b.constant(random.normal(size=(channels_out, channels_in, kernel, kernel)) / (channels_in * kernel))
    return b.add("Conv", [value, weights], pads=[kernel // 2] * 4, kernel_shape=[kernel, kernel])


def convolutions(n):
    """A residual network: two Conv, BatchNormalization, Relu a block, each with weights of its own."""
    b, value, random = Builder(), "x", numpy.random.default_rng(0)
    for _ in range(max(1, n // 7)):
        inner = b.add("Relu", [normalize(b, convolve(b, value, 8, 8, 3, random), 8, random)])
        inner = normalize(b, convolve(b, inner, 8, 8, 1, random), 8, random)
        value = b.add("Relu", [b.add("Add", [value, inner])])
    return b.model([value], [1, 8, 6, 6])


def dense_blocks(n):
    """DenseNet's: BatchNormalization, Relu, Conv, and a Concat of all results of the block, 24 layers a block."""
    b, value, random = Builder(), "x", numpy.random.default_rng(0)
    for _ in range(max(1, n // (24 * 4 + 1))):
        channels = 8
        for _ in range(24):
            inner = b.add("Relu", [normalize(b, value, channels, random)])
            value = b.add("Concat", [value, convolve(b, inner, channels, 4, 3, random)], axis=1)
            channels += 4
        value = convolve(b, value, channels, 8, 1, random)
    return b.model([value], [1, 8, 6, 6])


def pieces(n):
    """Halves that are cut, changed and joined again: Slice, Relu, Concat."""
    b, value = Builder(), "x"
    at = [b.integers([i]) for i in (0, 4, 8)]
    axis = b.integers([1])
    for _ in range(max(1, n // 4)):
        low, high = b.add("Slice", [value, at[0], at[1], axis]), b.add("Slice", [value, at[1], at[2], axis])
        value = b.add("Concat", [high, b.add("Tanh", [low])], axis=1)
    return b.model([value])


def casts(n):
    """f32 to i32 and back, with an addition between."""
    b, value = Builder(), "x"
    for _ in range(max(1, n // 3)):
        whole = b.add("Cast", [value], to=TensorProto.INT32)
        value = b.add("Tanh", [b.add("Cast", [whole], to=TensorProto.FLOAT)])
    return b.model([value])


def codes(n):
    """Products between pairs of QuantizeLinear and DequantizeLinear, weights as codes."""
    b, value, random = Builder(), "x", numpy.random.default_rng(0)
    scale = b.constant(0.05)
    zero, zero_of_weights = (b.typed(0, numpy.int8), b.typed(0, numpy.int8))

    def coded(value):
        return b.add("DequantizeLinear", [b.add("QuantizeLinear", [value, scale, zero]), scale, zero])

    for _ in range(max(1, n // 5)):
        weights = b.typed(random.integers(-127, 127, size=(8, 8)), numpy.int8)
        product = b.add("MatMul", [coded(value), b.add("DequantizeLinear", [weights, scale, zero_of_weights])])
        value = b.add("Relu", [product])
    return b.model([coded(value)])


def choices(n):
    """Where of a comparison with the value before."""
    b, value, before = Builder(), "x", "x"
    for i in range(max(1, n // 3)):
        less = b.add("Less", [value, b.constant(numpy.full(SHAPE, i % 7))])
        value, before = b.add("Where", [less, b.add("Tanh", [value]), before]), value
    return b.model([value])


def moves(n):
    """Reshapes and transposes alone, which no view of one box says."""
    b, value = Builder(), "x"
    tall, wide = b.integers([4, 6]), b.integers([2, 12])
    for i in range(max(1, n // 4)):
        value = b.add("Transpose", [b.add("Reshape", [value, tall])], perm=[1, 0])
        value = b.add("Transpose", [b.add("Reshape", [value, wide])], perm=[1, 0])
    return b.model([value], [2, 12])


def outputs(n):
    """Hundred layers wide and as deep as that takes, all values results of the model."""
    b, ends = Builder(), []
    row = [distinct(b, "x", k, n) for k in range(min(100, n))]
    while len(b.nodes) < n:
        ends += row
        row = [b.add("Add", [value, row[(k + 1) % len(row)]]) for k, value in enumerate(row)]
    return b.model(ends + row)


def norms(n):
    """Means, softmaxes and norms one behind another: rows that no epilogue takes."""
    b, value = Builder(), "x"
    for i in range(max(1, n // 3)):
        value = b.add("Softmax", [b.add("Sub", [value, b.add("ReduceMean", [value], axes=[-1])])], axis=-1)
    return b.model([value])


def pools(n):
    """Windows one behind another, max and mean in turns."""
    b, value = Builder(), "x"
    for i in range(n):
        value = b.add("AveragePool" if i % 2 else "MaxPool", [value], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    return b.model([value], [1, 8, 6, 6])


def projections(n):
    """One value that products with weights of their own read, and their sum."""
    b, random = Builder(), numpy.random.default_rng(0)
    value = b.add("Tanh", ["x"])
    ends = [b.add("MatMul", [value, b.constant(random.normal(size=(8, 8)))]) for _ in range(max(1, n - 2))]
    return b.model([b.add("Sum", ends)])


GRAPHS = {f.__name__: f for f in (chain, binary_chain, readers, fan, summed, joined, branches, residual, linear, doubled, shapes,
                                  sizes, counted, transformers, convolutions, dense_blocks, pieces, casts, codes, choices, moves,
                                  outputs, norms, pools, projections)}


def measure(command, limit):
    start, before = time.time(), resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while True:
        try:
            error = process.communicate(timeout=limit)[1]
            break
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return process.returncode, cpu, time.time() - start, error.strip().splitlines()[:1]


def time_all(flags):
    names = flags.names or list(GRAPHS)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        print(f"{'graph':14}{'nodes':>8} {'verb':9}{'CPU s':>8}{'MB':>8}  status")
        for name in names:
            model = folder / "m.onnx"
            save(GRAPHS[name](flags.nodes), model)
            for verb in flags.verbs.split(","):
                command = {"inspect": ["inspect", model], "explain": ["explain", model],
                           "fuse": ["fuse", model, "-o", folder / "fused.onnx", "--force"],
                           "compile": ["compile", model, "-o", folder / "m.opf", "--no-cache", "--force"]}[verb]
                peak = folder / "peak"
                status, cpu, _, error = measure(["/usr/bin/time", "-f", "%M", "-o", peak, flags.opfuse, *command], flags.limit)
                text = peak.read_text().split() if peak.exists() else []
                peak.unlink(missing_ok=True)
                print(f"{name:14}{flags.nodes:8} {verb:9}{cpu:8.1f}{int(text[-1]) // 1024 if text else 0:8}  "
                      f"{'' if status == 0 else f'rc {status} {error}'}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    make = verbs.add_parser("make")
    make.add_argument("name", choices=GRAPHS)
    make.add_argument("nodes", type=int)
    make.add_argument("out")
    timed = verbs.add_parser("time")
    timed.add_argument("opfuse")
    timed.add_argument("names", nargs="*")
    timed.add_argument("--nodes", type=int, default=10000)
    timed.add_argument("--verbs", default="inspect,explain,fuse,compile")
    timed.add_argument("--limit", type=float, default=120)
    flags = parser.parse_args()
    if flags.verb == "make":
        save(GRAPHS[flags.name](flags.nodes), flags.out)
    else:
        time_all(flags)


if __name__ == "__main__":
    sys.exit(main())
