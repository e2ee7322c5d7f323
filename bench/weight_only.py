#!/usr/bin/env python3
"""int4 and int8 weights beside ONNX Runtime, OpenVINO and own fp32: the same drawn models, inputs and threads, in turns, outputs checked.

    bench/weight_only.py [--threads 1,2] [--rounds 12] [--seconds 0.5] [--only linear4,linear8,llama4 ...] [--json out.json]

linearB: one row of 4096 x 4096; llamaB: a decode step of 4 layers (hidden 2048, 16 heads, MLP of 5632, 256 positions in the cache,
RMS norms and attention in f32). B bits in blocks of 32, as MatMulNBits of com.microsoft. ONNX Runtime runs the file as it is and with
accuracy_level 4, where it quantises activations to 8 bits too, which no other contestant does. `GB/s` is bytes of weights, scales and
zero points over the time. Exit status 1: a contestant failed, or an output differs from that of the float file.
"""
import argparse
import json
import pathlib
import sys
import tempfile

from peerlib import environment

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = 32
BAR = 0.9
MODELS = {"linear": [(4096, 4096)], "llama": None}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--threads", default="1,2")
    add("--rounds", type=int, default=12)
    add("--seconds", type=float, default=0.5)
    add("--only", default="linear4,linear8,llama4,llama8")
    add("--target")
    add("--opfuse-build", type=pathlib.Path, default=ROOT / "build" / "release", metavar="DIR")
    add("--json", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    options.contexts, options.tolerance = 1, 2e-3
    options.threads = [int(text) for text in options.threads.split(",")]
    return options


class Maker:
    """A model in three files: codes, codes for accuracy_level 4, and the floats they stand for."""

    def __init__(self, bits):
        import numpy as np
        self.np, self.bits, self.random, self.nodes, self.weights, self.count, self.bytes = np, bits, np.random.default_rng(3), [], {}, 0, 0

    def op(self, kind, *inputs, **attributes):
        from onnx import helper
        self.count += 1
        name = f"v{self.count}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=f"n{self.count}", **attributes))
        return name

    def constant(self, array):
        self.count += 1
        name = f"c{self.count}"
        self.weights[name] = array
        return name

    def linear(self, x, depth, columns):
        """codes, scales and zero points; `float` has the weights they stand for."""
        np, bits = self.np, self.bits
        blocks = depth // BLOCK
        codes = self.random.integers(0, 1 << bits, (columns, blocks, BLOCK), dtype=np.uint8)
        zeros = self.random.integers((1 << bits) // 2 - 2, (1 << bits) // 2 + 2, (columns, blocks), dtype=np.uint8)
        scales = (self.random.random((columns, blocks), dtype=np.float32) + 0.5) * np.float32(2.0 / (1 << bits) / depth**0.5)
        wide = ((codes.astype(np.float32) - zeros[..., None]) * scales[..., None]).reshape(columns, depth).T.copy()
        packed = codes if bits == 8 else codes[..., 0::2] | codes[..., 1::2] << 4
        packed_zeros = zeros if bits == 8 else zeros[:, 0::2] | zeros[:, 1::2] << 4
        self.bytes += packed.nbytes + packed_zeros.nbytes + scales.nbytes
        names = [self.constant(array) for array in (packed, scales.reshape(-1), packed_zeros.reshape(-1))]
        y = self.op("MatMulNBits", x, *names, domain="com.microsoft", K=depth, N=columns, bits=bits, block_size=BLOCK)
        self.nodes[-1].metadata_props.add(key="wide", value=y)
        self.weights[f"{y}.wide"] = wide
        return y

    def norm(self, x, width):
        np = self.np
        square = self.op("ReduceMean", self.op("Mul", x, x), self.constant(np.array([-1], np.int64)))
        scale = self.op("Sqrt", self.op("Add", square, self.constant(np.array(1e-5, np.float32))))
        return self.op("Mul", self.op("Div", x, scale), self.constant(np.ones(width, np.float32)))

    def llama(self, x, hidden=2048, heads=16, inner=5632, past=256, layers=4):
        """Keys and values of `past` positions are inputs that do not move; the new one's are appended."""
        np, width, inputs = self.np, hidden // heads, []
        shape = lambda *sizes: self.constant(np.array(sizes, np.int64))
        for layer in range(layers):
            h = self.norm(x, hidden)
            q, k, v = (self.op("Transpose", self.op("Reshape", self.linear(h, hidden, hidden), shape(1, 1, heads, width)), perm=[0, 2, 1, 3])
                       for _ in range(3))
            inputs += [(f"keys{layer}", [1, heads, past, width]), (f"values{layer}", [1, heads, past, width])]
            k = self.op("Transpose", self.op("Concat", f"keys{layer}", k, axis=2), perm=[0, 1, 3, 2])
            scores = self.op("Mul", self.op("MatMul", q, k), self.constant(np.array(width**-0.5, np.float32)))
            mixed = self.op("MatMul", self.op("Softmax", scores, axis=-1), self.op("Concat", f"values{layer}", v, axis=2))
            mixed = self.op("Reshape", self.op("Transpose", mixed, perm=[0, 2, 1, 3]), shape(1, 1, hidden))
            x = self.op("Add", x, self.linear(mixed, hidden, hidden))
            h = self.norm(x, hidden)
            gate = self.linear(h, hidden, inner)
            gated = self.op("Mul", self.op("Mul", gate, self.op("Sigmoid", gate)), self.linear(h, hidden, inner))
            x = self.op("Add", x, self.linear(gated, inner, hidden))
        return x, inputs

    def save(self, path, inputs, output, kind):
        import onnx
        from onnx import TensorProto, helper, numpy_helper
        nodes, read = [], set()
        for node in self.nodes:
            node = onnx.NodeProto.FromString(node.SerializeToString())
            if node.op_type == "MatMulNBits":
                name = node.metadata_props.pop().value
                if kind == "float":
                    node = helper.make_node("MatMul", [node.input[0], f"{name}.wide"], list(node.output), name=node.name)
                elif kind == "level4":
                    node.attribute.append(helper.make_attribute("accuracy_level", 4))
            nodes.append(node)
            read.update(node.input)
        constants = [numpy_helper.from_array(array, name) for name, array in self.weights.items() if name in read]
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes) for name, sizes in inputs]
        made = [helper.make_tensor_value_info(output[0], TensorProto.FLOAT, output[1])]
        graph = helper.make_graph(nodes, "weight_only", values, made, constants)
        domains = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=domains, ir_version=10), path)


def make(name, folder):
    """Paths by kind, the inputs, bytes of codes with scales."""
    maker = Maker(int(name[-1]))
    if name.startswith("linear"):
        inputs, output = [("x", [1, 4096])], (maker.linear("x", 4096, 4096), [1, 4096])
    else:
        y, cache = maker.llama("x")
        inputs, output = [("x", [1, 1, 2048]), *cache], (y, [1, 1, 2048])
    paths = {kind: pathlib.Path(folder) / f"{name}.{kind}.onnx" for kind in ("codes", "level4", "float")}
    for kind, path in paths.items():
        maker.save(path, inputs, output, kind)
    return paths, inputs, maker.bytes


def contestants(paths, options):
    """The first, own fp32, is what outputs are held against."""
    from peerlib.contestants import OnnxRuntime, OpenVino, Opfuse

    def on(contestant, name, kind, tolerance=None):
        start = contestant.start
        contestant.name = name
        contestant.start = lambda path, feeds, threads: start(paths[kind], feeds, threads)
        return contestant

    class Default(OpenVino):
        def __init__(self):
            super().__init__()
            del self.properties["INFERENCE_PRECISION_HINT"]

    program = options.opfuse_build / "bench" / "opfuse_turns"
    return [on(Opfuse(program, options.target), "opfuse fp32", "float"), on(Opfuse(program, options.target), "opfuse", "codes"),
            on(OnnxRuntime(), "ONNX Runtime", "codes"), on(OnnxRuntime(), "ONNX Runtime, level 4", "level4"),
            on(OpenVino(), "OpenVINO, f32", "codes"), on(Default(), "OpenVINO", "codes")]


def main():
    options = parse_arguments()
    import numpy as np
    from peerlib import measure, report
    print(f"{report.machine()}\n\n| model | threads | opfuse ms (GB/s) | opfuse fp32 | ONNX Runtime | level 4 | OpenVINO, f32 | OpenVINO | "
          f"against the faster [95 %] | difference |\n|{'---|' * 10}", flush=True)
    cases, right = [], True
    with tempfile.TemporaryDirectory(prefix="opfuse-weights-") as folder:
        for name in options.only.split(","):
            paths, inputs, size = make(name, folder)
            feeds = [{n: np.random.default_rng(seed).standard_normal(s, np.float32) for n, s in inputs} for seed in (1, 2)]
            # level 4 and bf16 round activations: the loosest contestant decides what counts as the same output
            case = {"model": name, "path": paths["codes"], "batch": 1, "flop": 0, "not_counted": [], "feeds": feeds[0], "other_feeds": feeds[1]}
            options.tolerance = 0.05
            for threads in options.threads:
                done = measure.run_case(case, contestants(paths, options), None, options, threads)
                of = {c["name"]: c for c in done["contestants"]}
                own = of["opfuse"]
                tight = own["status"] == "ok" and own["error"] < 1e-4
                right = right and tight and of["opfuse fp32"]["status"] == "ok"
                cell = lambda row: f"{row['median']:.3f} ({row['best']:.3f})" if row["status"] == "ok" else f"{row['status']}: {row['reason'][:50]}"
                rate = f"{cell(own)}, {size / own['best'] * 1e-6:.1f}" if own["status"] == "ok" else cell(own)
                ratio = f"{own['ratio']:.3f} [{own['ratio_low']:.3f}, {own['ratio_high']:.3f}]" if "ratio" in own else "-"
                others = ("opfuse fp32", "ONNX Runtime", "ONNX Runtime, level 4", "OpenVINO, f32", "OpenVINO")
                print(f"| {name} | {threads} | {rate} | {' | '.join(cell(of[o]) for o in others)} | {ratio} | {own.get('error', -1):.1e} |", flush=True)
                cases.append(done)
    if options.json:
        options.json.write_text(json.dumps({"schema": "opfuse-weight-only-1", "machine": report.machine(), "cases": cases}, indent=2) + "\n")
    return 0 if right else 1


if __name__ == "__main__":
    environment.enter_virtual_environment("weight_only")
    sys.exit(main())
