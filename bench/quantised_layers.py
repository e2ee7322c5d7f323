#!/usr/bin/env python3
"""Each layer of a Q/DQ model alone, in opfuse and in ONNX Runtime: their codes differ by one step at most, and only on ties.

    bench/quantised_layers.py MODEL.onnx [...] [--target cpu:avx2] [--threads 1] [--most 20] [--opfuse build/release/tools/opfuse/opfuse]

A layer is what lies between QuantizeLinear nodes and the next one, with a convolution or a matrix product in it; it reads the codes
that ONNX Runtime computed from a random sample (--seed). An element on which the two differ is a tie where the real number in front
of the rounding, from opfuse's fp64 interpreter, is within 1e-4 of the middle between two codes. Exit status 1: a layer differs by
more than that, or did not run.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

from peerlib import environment

ROOT = pathlib.Path(__file__).resolve().parent.parent
PRODUCTS = {"Conv", "ConvTranspose", "MatMul", "Gemm"}
TIE = 1e-4  # of a step; the interpreter's result is stored as f32


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("models", nargs="+", type=pathlib.Path, metavar="MODEL.onnx")
    add("--target", default="host")
    add("--threads", default="1")
    add("--most", type=int, default=0, metavar="N", help="evenly chosen layers of each model (default: all)")
    add("--seed", type=int, default=0)
    add("--opfuse", type=pathlib.Path, default=ROOT / "build" / "release" / "tools" / "opfuse" / "opfuse")
    return parser.parse_args()


def run_onnxruntime(model, names, feeds, optimised):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(names, feeds)


class Layers:
    """The layers of a model, and the codes they read."""

    def __init__(self, path, seed):
        import onnx
        from onnx import shape_inference
        from peerlib import inputs
        self.model = shape_inference.infer_shapes(onnx.load(path))
        graph = self.model.graph
        self.producer = {name: node for node in graph.node for name in node.output}
        self.constants = {i.name for i in graph.initializer} | {o for n in graph.node if n.op_type == "Constant" for o in n.output}
        self.codes = [node.output[0] for node in graph.node
                      if node.op_type == "QuantizeLinear" and node.input[0] not in self.constants]
        shapes = {v.name: inputs.concrete_shape(v, 1, {}) for v in inputs.graph_inputs(self.model)}
        self.feeds = inputs.draw(self.model, shapes, seed)
        self.values = self.run_all()

    def run_all(self):
        import onnx
        whole = onnx.ModelProto()
        whole.CopyFrom(self.model)
        known = {o.name for o in whole.graph.output}
        whole.graph.output.extend(onnx.ValueInfoProto(name=name) for name in self.codes if name not in known)
        return {**self.feeds, **dict(zip(self.codes, run_onnxruntime(whole, self.codes, self.feeds, optimised=False)))}

    def cone(self, name):
        """What a QuantizeLinear's result is computed from: nodes, and codes or inputs in front of them."""
        nodes, reads, queue = set(), [], list(self.producer[name].input[:1])
        while queue:
            value = queue.pop()
            if value in self.values:
                reads += [value] if value not in reads else []
            elif value in self.producer and self.producer[value].output[0] not in nodes:
                nodes.add(self.producer[value].output[0])
                queue += [i for i in self.producer[value].input if i]
        return [self.producer[n] for n in nodes], reads

    def with_products(self):
        """(result, what is read) of layers with a product."""
        found = []
        for name in self.codes:
            nodes, reads = self.cone(name)
            if reads and any(n.op_type in PRODUCTS for n in nodes):
                found.append((name, reads))
        return found

    def cut(self, reads, result):
        """The model that computes a value from those it reads."""
        import onnx
        graph = self.model.graph
        wanted, queue = set(), [result]
        while queue:
            value = queue.pop()
            if value in self.producer and value not in reads and self.producer[value].output[0] not in wanted:
                wanted.add(self.producer[value].output[0])
                queue += [i for i in self.producer[value].input if i]
        nodes = [n for n in graph.node if n.output[0] in wanted]
        used = {i for n in nodes for i in n.input}
        code = self.values.get(result)
        helper = onnx.helper
        kind = helper.np_dtype_to_tensor_dtype(code.dtype) if code is not None else onnx.TensorProto.FLOAT
        given = [helper.make_tensor_value_info(r, helper.np_dtype_to_tensor_dtype(self.values[r].dtype), self.values[r].shape)
                 for r in reads]
        part = helper.make_graph(nodes, "layer", given, [helper.make_tensor_value_info(result, kind, None)],
                                 [i for i in graph.initializer if i.name in used])
        return helper.make_model(part, opset_imports=self.model.opset_import, ir_version=self.model.ir_version)


def run_opfuse(options, model, feeds, result, folder, *flags):
    import numpy as np
    path = folder / "layer.onnx"
    path.write_bytes(model.SerializeToString())
    command = [options.opfuse, "run", path, "--output-dir", folder, *flags]
    for i, (name, array) in enumerate(feeds.items()):
        np.save(folder / f"in{i}.npy", array)
        command += ["--input", f"{name}={folder / f'in{i}.npy'}"]
    for old in folder.glob("*.npy"):
        if not old.name.startswith("in"):
            old.unlink()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip().split("\n")[0])
    made = [p for p in folder.glob("*.npy") if not p.name.startswith("in")]
    if len(made) != 1:
        raise RuntimeError(f"{len(made)} results of {result}")
    return np.load(made[0])


def parameters(layers, node):
    import numpy as np
    from onnx import numpy_helper
    known = {i.name: i for i in layers.model.graph.initializer}
    scale = numpy_helper.to_array(known[node.input[1]]).astype(np.float64)
    zero = numpy_helper.to_array(known[node.input[2]]).astype(np.float64) if len(node.input) > 2 and node.input[2] else 0.0
    return scale, zero


def check_layer(options, layers, name, reads, folder):
    """(elements, of which differ, largest step, how many of those are no ties)"""
    import numpy as np
    feeds = {read: layers.values[read] for read in reads}
    model = layers.cut(reads, name)
    theirs = run_onnxruntime(model, [name], feeds, optimised=True)[0]
    ours = run_opfuse(options, model, feeds, name, folder, "--target", options.target, "--threads", options.threads)
    step = np.abs(ours.astype(np.int64) - theirs.astype(np.int64))
    if not step.any():
        return step.size, 0, 0, 0
    node = layers.producer[name]
    scale, zero = parameters(layers, node)
    if scale.size != 1:
        raise RuntimeError("a scale for each channel of a result")
    real = run_opfuse(options, layers.cut(reads, node.input[0]), feeds, node.input[0], folder, "--reference").astype(np.float64)
    exact = real / scale
    distance = np.abs(exact - np.floor(exact) - 0.5)
    return step.size, int((step > 0).sum()), int(step.max()), int(((step > 0) & ((distance > TIE) | (step > 1))).sum())


def main():
    options = parse_arguments()
    right = True
    for path in options.models:
        layers = Layers(path, options.seed)
        found = layers.with_products()
        if options.most and len(found) > options.most:
            found = [found[i * len(found) // options.most] for i in range(options.most)]
        elements = differ = apart = steps = 0
        with tempfile.TemporaryDirectory(prefix="opfuse-layers-") as folder:
            for name, reads in found:
                try:
                    count, some, step, wrong = check_layer(options, layers, name, reads, pathlib.Path(folder))
                except Exception as problem:  # the peer throws what it likes
                    print(f"{path.name} {name}: {type(problem).__name__}: {str(problem)[:200]}", flush=True)
                    right = False
                    continue
                elements, differ, steps, apart = elements + count, differ + some, max(steps, step), apart + wrong
                if wrong:
                    print(f"{path.name} {name}: {wrong} of {count} elements differ and are no ties, by {step} at most", flush=True)
        right = right and apart == 0
        print(f"{path.name}: {len(found)} layers, {differ} of {elements} elements differ, by {steps} at most, {apart} of them no ties", flush=True)
    return 0 if right else 1


if __name__ == "__main__":
    environment.enter_virtual_environment("quantised_layers")
    sys.exit(main())
