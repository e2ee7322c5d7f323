#!/usr/bin/env python3
"""int8, bf16 and f16 beside ONNX Runtime and OpenVINO: README's rows, same file, same inputs, in turns, outputs checked.

    bench/low_precision.py --models DIR [--rows int8,bf16,f16,fp32] [--threads 1,2] [--rounds 12] [--seconds 0.5] [--json out.json]
    bench/low_precision.py --models DIR --bars          only rows with a bar: all of int8 and bf16, fp16 files
    bench/low_precision.py --models DIR --pool FILE     adds its turns to FILE and prints the rows of all turns there: for a shared host
    bench/low_precision.py --models DIR --make          makes what DIR lacks, from the built-in and from shared float models

DIR holds float models NAME.onnx; --make writes NAME.qdq.onnx (ONNX Runtime's quantize_static: u8 data, i8 weights per channel),
NAME.mm.onnx (products only), NAME.dyn.onnx (quantize_dynamic) and NAME.f16.onnx beside them, from random samples: these files are
for speed, not for accuracy. OpenVINO runs as it comes (bf16 where the machine has it, also between int8 kernels); ONNX Runtime has no
bf16 kernels, so it runs the float file there. A row of f16 is held against opfuse on the float file. Exit status 1: a contestant
failed or an output differed.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from peerlib import environment

ROOT = pathlib.Path(__file__).resolve().parent.parent

# kind: (what opfuse reads, flags of its compiler, what peers read, largest difference of max). With random weights a rounding
# that a tie decides grows through the layers: peers differ by 0.15 from each other. Wrong kernels are `opfuse compare`'s to find.
KINDS = {"int8": ("{0}.qdq.onnx", [], "{0}.qdq.onnx", 0.3), "int8-products": ("{0}.mm.onnx", [], "{0}.mm.onnx", 0.3),
         "int8-dynamic": ("{0}.dyn.onnx", [], "{0}.dyn.onnx", 0.3), "bf16": ("{0}.onnx", ["--precision", "bf16"], "{0}.onnx", 0.3),
         "f16": ("{0}.f16.onnx", [], "{0}.onnx", 0.02), "fp32": ("{0}.onnx", [], "{0}.onnx", 0.02)}
# What the ratio to the faster peer (f16: to own fp32) should be, the end of its interval below it; by kind, then by name.
BARS = {"int8": {"resnet50": 0.95, "mobilenet_v2": 0.65, "efficientnet_lite0": 0.65, "bert_base": 0.75, "minilm": 0.75,
                 "vit_b_16": 0.85},
        "int8-products": {"bert_base": 0.85}, "int8-dynamic": {"bert_base": 0.90},
        "bf16": {"resnet50": 0.97, "mobilenet_v2": 0.80, "bert_base": 0.92, "vit_b_16": 0.95}}
F16_BAR = 1.02
TRANSFORMERS = ("bert_base", "vit_b_16", "minilm")


def fail(problem):
    print(f"low_precision: {problem}", file=sys.stderr)
    sys.exit(2)


def parser_of(text, kinds, rows):
    """What this script and own_fp32.py have in common; finish with `parsed`."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="of models (default: all that DIR has)")
    add("--models", type=pathlib.Path, required=True, metavar="DIR")
    add("--rows", default=",".join(rows), help=f"kinds, a list of {', '.join(kinds)}")
    add("--threads", default="1,2", help="a list (default 1,2)")
    add("--rounds", type=int, default=12)
    add("--seconds", type=float, default=0.5)
    add("--seed", type=int, default=0)
    add("--target", help="opfuse's target, such as cpu:avx512-vnni")
    add("--opfuse-build", type=pathlib.Path, default=ROOT / "build" / "release", metavar="DIR")
    add("--json", type=pathlib.Path, metavar="FILE")
    add("--pool", type=pathlib.Path, metavar="FILE", help="add the turns to FILE; rows are those of all turns in it (peerlib/pool.py)")
    add("--without", default="", metavar="PEER,...", help="leave out a peer, such as one that is much slower")
    return parser


def parsed(parser, kinds, tolerance):
    options = parser.parse_args()
    options.contexts, options.tolerance = 1, tolerance
    options.threads = [int(text) for text in options.threads.split(",")]
    options.rows = options.rows.split(",")
    unknown = [row for row in options.rows if row not in kinds]
    if unknown:
        parser.error(f"--rows: {', '.join(unknown)}; there are {', '.join(kinds)}")
    return options


def parse_arguments():
    parser = parser_of(__doc__, KINDS, ["fp32", "int8", "int8-products", "int8-dynamic", "bf16", "f16"])
    parser.add_argument("--make", action="store_true", help="make quantised and f16 files that are not there, then end")
    parser.add_argument("--bars", action="store_true", help="only rows that have a bar")
    return parsed(parser, KINDS, 0.0)


def float_models(options):
    found = sorted(path.stem for path in options.models.glob("*.onnx") if "." not in path.stem)
    return options.names or found


def samples(path, count):
    import onnx
    from peerlib import inputs
    model = onnx.load(path)
    shapes = {v.name: inputs.concrete_shape(v, 1, {}) for v in inputs.graph_inputs(model)}
    return [inputs.draw(model, shapes, 100 + seed) for seed in range(count)]


def make_quantised(source, to, operators):
    from onnxruntime import quantization as q

    class Samples(q.CalibrationDataReader):
        def __init__(self):
            self.left = samples(source, 4)

        def get_next(self):
            return self.left.pop() if self.left else None

    q.quantize_static(source, to, Samples(), quant_format=q.QuantFormat.QDQ, per_channel=True, op_types_to_quantize=operators,
                      activation_type=q.QuantType.QUInt8, weight_type=q.QuantType.QInt8)


def make_half(source, to):
    import numpy as np
    import onnx
    from onnx import numpy_helper
    model = onnx.load(source)
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "to" and attribute.i == onnx.TensorProto.FLOAT:
                attribute.i = onnx.TensorProto.FLOAT16
            if attribute.HasField("t") and attribute.t.data_type == onnx.TensorProto.FLOAT:
                attribute.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(attribute.t).astype(np.float16)))
    for value in [*model.graph.input, *model.graph.output]:
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    del model.graph.value_info[:]
    onnx.save(model, to)


def make(options):
    from onnxruntime import quantization as q
    for name in float_models(options):
        source = options.models / f"{name}.onnx"
        wanted = {"qdq": lambda to: make_quantised(source, to, None), "f16": lambda to: make_half(source, to)}
        if name.startswith(TRANSFORMERS):
            wanted["mm"] = lambda to: make_quantised(source, to, ["MatMul", "Gemm"])
            wanted["dyn"] = lambda to: q.quantize_dynamic(source, to, weight_type=q.QuantType.QInt8)
        for kind, maker in wanted.items():
            to = options.models / f"{name}.{kind}.onnx"
            if to.exists():
                continue
            try:
                maker(to)
                print(f"made {to}")
            except Exception as problem:  # the tools throw what they like
                print(f"{to}: {type(problem).__name__}: {problem}", file=sys.stderr)


def compiled(path, flags, threads, options, folder):
    program = options.opfuse_build / "tools" / "opfuse" / "opfuse"
    to = pathlib.Path(folder) / f"{path.stem}.{threads}.opf"
    target = ["--target", options.target] if options.target else []
    command = [program, "compile", path, "-o", to, "--threads", str(threads), *flags, *target]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().split("\n")[0])
    return to


def contestants(kind, own, options, threads, folder):
    """opfuse runs a file it compiled itself; peers get the case's path."""
    from peerlib.contestants import OnnxRuntime, OpenVino, Opfuse

    class AsItComes(OpenVino):
        def __init__(self):
            super().__init__()
            del self.properties["INFERENCE_PRECISION_HINT"]
            self.settings = self.settings.replace("f32 pinned", "default precision")

    class Compiled(Opfuse):
        def start(self, path, feeds, threads):
            wide = {name: array.astype("float16") if kind == "f16" and array.dtype == "float32" else array
                    for name, array in feeds.items()}
            return super().start(compiled(own, KINDS[kind][1], threads, options, folder), wide, threads)

    program = options.opfuse_build / "bench" / "opfuse_turns"
    if kind == "f16":
        against = Opfuse(program, options.target)
        against.name = "own fp32"
        return [against, Compiled(program, options.target)]
    peers = [OnnxRuntime(), OpenVino() if kind == "fp32" else AsItComes()]
    return [*(peer for peer in peers if peer.name not in options.without.split(",")), Compiled(program, options.target)]


def against_bar(name, kind, own):
    """"0.95: met", "0.95: short" or nothing."""
    bar = F16_BAR if kind == "f16" else BARS.get(kind, {}).get(name)
    if bar is None or "ratio" not in own:
        return ""
    return f"{bar:.2f}: {'met' if own['ratio_high'] <= bar else 'short'}"


def row_of(name, kind, case):
    """One line of the table, in ms: median (best)."""
    of = {c["name"]: c for c in case["contestants"]}

    def cell(row):
        if row is None or row["status"] != "ok":
            return "-" if row is None else f"{row['status']}: {row['reason'][:60]}"
        return f"{row['median']:.3g} ({row['best']:.3g})"

    own = of["opfuse"]
    ratio = f"{own['ratio']:.3f} [{own['ratio_low']:.3f}, {own['ratio_high']:.3f}]" if "ratio" in own else "-"
    ratio += f" of {own['pairs']} pairs" if "pairs" in own else ""
    error = f"{own['error']:.1e}" if "error" in own else "-"
    others = ("own fp32", "") if kind == "f16" else ("ONNX Runtime", "OpenVINO")
    cells = [f"{name} {kind}", str(case["threads"]), cell(own), *(cell(of.get(o)) for o in others), ratio,
             against_bar(name, kind, own), error]
    return "| " + " | ".join(cells) + " |"


def pooled(case, path):
    """The case with the turns of all calls in its numbers."""
    from peerlib import pool
    pool.add(path, case)
    rows, ratio = pool.together(path, case["model"], case["threads"])
    for c in case["contestants"]:
        c.update(rows.get(c["name"], {}))
        if c["name"] == "opfuse" and ratio and c["status"] == "ok":
            c.update(zip(("ratio", "ratio_low", "ratio_high", "peer", "pairs"), ratio))
    return case


def main():
    options = parse_arguments()
    if options.make:
        return make(options)
    from peerlib import measure, report
    import onnx
    from peerlib import inputs
    print(f"{report.machine()}\n\n| model | threads | opfuse ms | ONNX Runtime (f16: own fp32) | OpenVINO | against the faster [95 %] "
          "| bar | difference of max |\n|---|---|---|---|---|---|---|---|", flush=True)
    cases, right = [], True
    with tempfile.TemporaryDirectory(prefix="opfuse-low-") as folder:
        for name in float_models(options):
            for kind in options.rows:
                own, _, theirs, options.tolerance = KINDS[kind]
                own, theirs = options.models / own.format(name), options.models / theirs.format(name)
                if not own.exists() or not theirs.exists():
                    continue
                if options.bars and kind != "f16" and name not in BARS.get(kind, {}):
                    continue
                model = onnx.load(theirs, load_external_data=False)
                shapes = {v.name: inputs.concrete_shape(v, 1, {}) for v in inputs.graph_inputs(model)}
                case = {"model": f"{name} {kind}", "path": theirs, "batch": 1, "flop": 0, "not_counted": [],
                        "feeds": inputs.draw(model, shapes, options.seed), "other_feeds": inputs.draw(model, shapes, options.seed + 1)}
                for threads in options.threads:
                    running = contestants(kind, own, options, threads, folder)
                    case_done = measure.run_case(case, running, None, options, threads)
                    if options.pool:
                        case_done = pooled(case_done, options.pool)
                    print(row_of(name, kind, case_done), flush=True)
                    cases.append(case_done)
                    right = right and all(c["status"] == "ok" for c in case_done["contestants"])
    if options.json:
        options.json.write_text(json.dumps({"schema": "opfuse-low-precision-1", "machine": report.machine(), "cases": cases}, indent=2) + "\n")
    return 0 if right else 1


if __name__ == "__main__":
    environment.enter_virtual_environment("low_precision")
    sys.exit(main())
