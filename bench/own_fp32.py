#!/usr/bin/env python3
"""Is a model in fewer bits ever slower, or larger, than opfuse on its float file? Times in turns, outputs checked, memory as compiled.

    bench/own_fp32.py --models DIR [NAME ...] [--rows int8,bf16,f16,f16-least ...] [--threads 1,2] [--rounds 12] [--json out.json]
    bench/own_fp32.py --models DIR --memory             compiles and prints memory only: no times, so a busy machine will do

DIR is that of bench/low_precision.py, which makes the files. Bars of time: codes and bf16 1.00; a file of f16 1.02; the same with
--memory least 1.25 where the float program uses Winograd, else 1.05. Bars of memory: with --memory least weights and arena together
0.55 of the float file's; of Q/DQ files weights 0.30 and arena 0.35 of them where everything between launches is codes, else weights
1.05 of the bytes in the file and arena 1.10 of what is alive at once. Exit status 1: something failed, differed or missed a bar.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import low_precision
from peerlib import environment

LEAST = ["--memory", "least"]
# kind: (file, flags of the compiler, bar of time)
ROWS = {"int8": ("{0}.qdq.onnx", [], 1.0), "int8-least": ("{0}.qdq.onnx", LEAST, 1.0), "int8-products": ("{0}.mm.onnx", [], 1.0), "int8-dynamic": ("{0}.dyn.onnx", [], 1.0),
        "bf16": ("{0}.onnx", ["--precision", "bf16"], 1.0), "f16": ("{0}.f16.onnx", [], 1.02),
        "f16-least": ("{0}.f16.onnx", LEAST, 1.05), "f16-weights": ("{0}.onnx", ["--precision", "f16", *LEAST], 1.05)}
WINOGRAD_BAR = 1.25


def parse_arguments():
    parser = low_precision.parser_of(__doc__, ROWS, ROWS)
    parser.add_argument("--memory", action="store_true", help="compile and print memory, time nothing")
    return low_precision.parsed(parser, ROWS, 0.3)


def weight_bytes(path):
    """Of all numbers in a file that nodes read."""
    import onnx
    from onnx import numpy_helper
    graph = onnx.load(path).graph
    held = [a.t for node in graph.node if node.op_type == "Constant" for a in node.attribute if a.HasField("t")]
    return sum(numpy_helper.to_array(tensor).nbytes for tensor in [*graph.initializer, *held])


def memory_of(path, flags, threads, options):
    """What a compiled model holds, what is alive at once, and how many results between launches are floats."""
    program = options.opfuse_build / "tools" / "opfuse" / "opfuse"
    target = ["--target", options.target] if options.target else []
    with tempfile.TemporaryDirectory(prefix="opfuse-own-") as folder:
        to = pathlib.Path(folder) / "report.json"
        command = [program, "report", path, "--format", "json", "--no-measure", "--no-code", "-o", to, "--threads", threads, *flags, *target]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().split("\n")[0])
        model = json.loads(to.read_text())["models"][0]
    memory, launches = model["memory"], model["launches"]
    floats = [l["name"] for l in launches[:-1] if l["precision"] and set(l["precision"]["outputs"]) & {"f32", "f16", "bf16"}]
    algorithms = [l["algorithm"]["name"] for l in launches if l["algorithm"]]
    return {"constants": int(memory["constant_bytes"]), "stored": int(memory["stored_constant_bytes"]), "arena": int(memory["arena_bytes"]), "alive": max(memory["live"], default=0),
            "floats_between": floats, "winograd": any(name.startswith("f") for name in algorithms)}


def judge_memory(kind, own, base, file_bytes):
    """(text, whether the bar is met or there is none)."""
    weights, arena = own["stored"] / base["stored"], own["arena"] / max(1, base["arena"])
    text = f"weights {weights:.2f}, arena {arena:.2f}"
    if own["stored"] != own["constants"]:
        text += f", weights in memory {own['constants'] / base['constants']:.2f}"
    if kind in ("f16-least", "f16-weights"):
        both = (own["constants"] + own["arena"]) / (base["constants"] + base["arena"])
        return f"{text}, both {both:.2f}; 0.55: {'met' if both <= 0.55 else 'short'}", both <= 0.55
    if not kind.startswith("int8"):
        return text, True
    if not own["floats_between"]:
        met = weights <= 0.30 and arena <= 0.35
        return f"{text}; all codes, 0.30 and 0.35: {'met' if met else 'short'}", met
    of_file, of_alive = own["stored"] / file_bytes, own["arena"] / max(1, own["alive"])
    met = of_file <= 1.05 and of_alive <= 1.10
    return (f"{text}; {len(own['floats_between'])} results are floats, weights {of_file:.2f} of the file's, arena {of_alive:.2f} of what "
            f"is alive, 1.05 and 1.10: {'met' if met else 'short'}"), met


def timed(name, kind, own, theirs, threads, options, folder):
    """The case of peerlib, opfuse on the float file as its only peer."""
    from peerlib import inputs, measure
    from peerlib.contestants import Opfuse
    import onnx
    flags = ROWS[kind][1]

    class Compiled(Opfuse):
        def start(self, path, feeds, threads):
            wide = {n: a.astype("float16") if own.name.endswith(".f16.onnx") and a.dtype == "float32" else a for n, a in feeds.items()}
            return super().start(low_precision.compiled(own, flags, threads, options, folder), wide, threads)

    model = onnx.load(theirs, load_external_data=False)
    shapes = {v.name: inputs.concrete_shape(v, 1, {}) for v in inputs.graph_inputs(model)}
    case = {"model": f"{name} {kind}", "path": theirs, "batch": 1, "flop": 0, "not_counted": [],
            "feeds": inputs.draw(model, shapes, options.seed), "other_feeds": inputs.draw(model, shapes, options.seed + 1)}
    program = options.opfuse_build / "bench" / "opfuse_turns"
    base = Opfuse(program, options.target)
    base.name = "own fp32"
    return measure.run_case(case, [base, Compiled(program, options.target)], None, options, threads)


def row_of(name, kind, case, memory, bar):
    """One line of the table, and whether all its bars are met."""
    text, met = memory
    if case is None:
        return f"| {name} {kind} | {text} |", met
    of = {c["name"]: c for c in case["contestants"]}
    own, base = of["opfuse"], of["own fp32"]
    if own["status"] != "ok" or base["status"] != "ok":
        return f"| {name} {kind} | {case['threads']} | {own['status']}: {own['reason'][:80]} {base['reason'][:80]} |", False
    fast = own["ratio_high"] <= bar
    pairs = f" of {own['pairs']} pairs" if "pairs" in own else ""
    return (f"| {name} {kind} | {case['threads']} | {base['median']:.3g} ({base['best']:.3g}) | {own['median']:.3g} ({own['best']:.3g}) | "
            f"{own['ratio']:.3f} [{own['ratio_low']:.3f}, {own['ratio_high']:.3f}]{pairs} | {bar:.2f}: {'met' if fast else 'short'} | {text} | "
            f"{own['error']:.1e} |"), met and fast


def main():
    options = parse_arguments()
    head = ["model", "memory beside the float file's"] if options.memory else [
        "model", "threads", "own fp32 ms", "ms", "against own fp32 [95 %]", "bar", "memory beside the float file's", "difference of max"]
    if not options.memory:
        from peerlib import report
        print(f"{report.machine()}\n")
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)
    cases, right = [], True
    with tempfile.TemporaryDirectory(prefix="opfuse-own-") as folder:
        for name in low_precision.float_models(options):
            theirs, bases = options.models / f"{name}.onnx", {}
            for kind in options.rows:
                pattern, flags, bar = ROWS[kind]
                own = options.models / pattern.format(name)
                for threads in options.threads[:1] if options.memory else options.threads:
                    if not own.exists() or not theirs.exists():
                        continue
                    try:
                        base = bases.setdefault(threads, memory_of(theirs, [], threads, options))
                        held = memory_of(own, flags, threads, options)
                    except RuntimeError as problem:
                        print(f"| {name} {kind} | {threads} | {problem} |", flush=True)
                        right = False
                        continue
                    memory = judge_memory(kind, held, base, weight_bytes(own))
                    if "least" in flags and base["winograd"]:
                        bar = WINOGRAD_BAR
                    case = None if options.memory else timed(name, kind, own, theirs, threads, options, folder)
                    if case and options.pool:
                        case = low_precision.pooled(case, options.pool)
                    line, met = row_of(name, kind, case, memory, bar)
                    print(line, flush=True)
                    right = right and met
                    cases.append({"model": name, "kind": kind, "threads": threads, "memory": held, "float_memory": base, "met": met, "case": case})
    if options.json:
        options.json.write_text(json.dumps({"schema": "opfuse-own-fp32-1", "cases": cases}, indent=2) + "\n")
    return 0 if right else 1


if __name__ == "__main__":
    environment.enter_virtual_environment("own_fp32")
    sys.exit(main())
