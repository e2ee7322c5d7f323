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
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(numpy.asarray(array, numpy.float32), name))
        return name

    def integers(self, values):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(numpy.asarray(values, numpy.int64), name))
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


GRAPHS = {f.__name__: f for f in (chain, binary_chain, readers, fan, summed, joined, branches, residual, linear, doubled, shapes,
                                  sizes, counted)}


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
