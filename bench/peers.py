#!/usr/bin/env python3
"""opfuse beside ONNX Runtime and OpenVINO: the same model, inputs and threads, in turns, outputs checked.

    bench/install_peers.sh
    bench/peers.py [MODEL.onnx ...] [--threads 1,2] [--batch 1] [--json out.json] [--svg out.svg]
    bench/peers.py MODEL.onnx --contexts 2 --threads 1        images/s of two contexts with one thread each
    bench/peers.py MODEL.onnx --unfused                       opfuse without fusion beside ONNX Runtime without optimisation

Without a model it measures the built-in ones, exported by `opfuse zoo NAME -o x.onnx`. Exit status: 0 everything ran and
agreed, 1 an output differed or a contestant could not run (its row says why), 2 the command line or a model is wrong.
"""
import argparse
import functools
import json
import math
import pathlib
import subprocess
import sys
import tempfile

from peerlib import environment

ROOT = pathlib.Path(__file__).resolve().parent.parent
ZOO = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "mobilenet_v2")


def fail(problem):
    print(f"peers: {problem}", file=sys.stderr)
    sys.exit(2)


def number_list(text):
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of positive numbers such as 1,2")
    return numbers


def dimension(text):
    name, _, size = text.partition("=")
    if not name or not size.isdigit() or int(size) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=SIZE")
    return name, int(size)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("models", nargs="*", type=pathlib.Path, metavar="MODEL.onnx")
    add("--threads", type=number_list, default=[1, 2], help="threads per context, a list (default 1,2)")
    add("--contexts", type=int, default=1, help="measure images/s of this many contexts at once")
    add("--batch", type=int, default=1, help="leading dimension of the inputs")
    add("--dim", type=dimension, action="append", default=[], metavar="NAME=SIZE", help="a named dimension")
    add("--rounds", type=int, default=12, help="turns per contestant (default 12)")
    add("--seconds", type=float, default=0.5, help="length of a turn (default 0.5)")
    add("--tolerance", type=float, default=1e-4, help="largest error relative to max |output| (default 1e-4)")
    add("--seed", type=int, default=0, help="of the inputs")
    add("--target", help="opfuse's target, such as cpu:avx2; its share is then of the 256-bit rate")
    add("--opfuse", type=pathlib.Path, metavar="PROGRAM", help="opfuse_turns (default: from --opfuse-build)")
    add("--opfuse-build", type=pathlib.Path, default=ROOT / "build" / "release", metavar="DIR", help="build folder")
    add("--unfused", action="store_true", help="the baselines: opfuse with the empty plan, ONNX Runtime unoptimised")
    add("--exact", action="store_true", help="opfuse with --exact (no Winograd) as one more contestant")
    add("--only-peers", action="store_true", help="leave opfuse out on purpose")
    add("--json", type=pathlib.Path, metavar="FILE")
    add("--svg", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    if min(options.contexts, options.batch, options.rounds) < 1 or options.seconds <= 0:
        parser.error("--contexts, --batch, --rounds and --seconds must be positive")
    options.opfuse = options.opfuse or options.opfuse_build / "bench" / "opfuse_turns"
    return options


def zoo_models(options, folder):
    """Export the built-in models."""
    program = options.opfuse_build / "tools" / "opfuse" / "opfuse"
    if not program.exists():
        fail(f"no model given, and {program} is not there to export the built-in ones: build it, or name a model")
    paths = []
    for name in ZOO:
        paths.append(pathlib.Path(folder) / f"{name}.onnx")
        subprocess.run([str(program), "zoo", name, "-o", str(paths[-1])], check=True, stdout=subprocess.DEVNULL)
    return paths


def prepare_case(path, options, folder):
    """Fix the shapes, draw the inputs, count the work."""
    import onnx
    from peerlib import flops, inputs
    try:
        model = onnx.load(path)
        shapes = {value.name: inputs.concrete_shape(value, options.batch, dict(options.dim))
                  for value in inputs.graph_inputs(model)}
        fixed = inputs.with_shapes(model, shapes)
        feeds = inputs.draw(model, shapes, options.seed)
        flop, not_counted = flops.count(fixed or model, feeds)
    except Exception as problem:  # onnx and ONNX Runtime have a zoo of exceptions of their own
        fail(f"{path}: {problem}")
    name = path.stem
    if fixed is not None:
        path = pathlib.Path(folder) / f"{name}.fixed.onnx"
        onnx.save(fixed, path)
    return {"model": name, "path": path, "batch": next(iter(shapes.values()), (1,))[0], "feeds": feeds,
            "other_feeds": inputs.draw(model, shapes, options.seed + 1), "flop": flop, "not_counted": not_counted}


def fma_meters(options, folder):
    """One FmaRate per number of processors; None, said aloud, when bench/limits is neither built nor can be compiled."""
    from peerlib import limits
    program = options.opfuse_build / "bench" / "limits"
    if not program.exists():
        print(f"peers: {program} is not there; compiling bench/limits.cpp for this run", file=sys.stderr)
        try:
            program = limits.build(ROOT / "bench" / "limits.cpp", folder)
        except (OSError, subprocess.CalledProcessError) as problem:
            print(f"peers: no FMA rate in this run, shares are left out: {problem}", file=sys.stderr)
            return lambda processors: None
    return functools.cache(lambda processors: limits.FmaRate(program, processors))


def contestants(options):
    from peerlib.contestants import OnnxRuntime, OpenVino, Opfuse
    chosen = [OnnxRuntime(options.contexts, optimized=not options.unfused)]
    if not options.unfused:
        chosen.append(OpenVino(options.contexts))
    if not options.only_peers:
        chosen.append(Opfuse(options.opfuse, options.target, options.contexts, fused=not options.unfused))
        if options.exact:
            chosen.append(Opfuse(options.opfuse, options.target, options.contexts, exact=True))
    return chosen


def finite(value):
    """JSON has no NaN and no infinity: null."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_outputs(cases, options):
    from peerlib import plot, report
    if options.json:
        settings = {"rounds": options.rounds, "seconds": options.seconds, "tolerance": options.tolerance,
                    "seed": options.seed, "target": options.target or "host"}
        document = {"schema": "opfuse-peers-1", "machine": report.machine(), "settings": settings, "cases": cases}
        options.json.write_text(json.dumps(finite(document), indent=2, allow_nan=False) + "\n")
        print(f"wrote {options.json}")
    if options.svg:
        caption = f"fp32, in turns, medians; {report.machine()}"
        options.svg.write_text(plot.svg(cases, caption))
        print(f"wrote {options.svg}")


def main():
    options = parse_arguments()
    from peerlib import measure, report
    with tempfile.TemporaryDirectory(prefix="opfuse-peers-") as folder:
        prepared = [prepare_case(path, options, folder) for path in options.models or zoo_models(options, folder)]
        meters = fma_meters(options, folder)
        cases = []
        for case in prepared:
            for threads in options.threads:
                cases.append(measure.run_case(case, contestants(options), meters(threads * options.contexts),
                                              options, threads))
                print(report.case_table(cases[-1]) + "\n", flush=True)
        print(report.footer(cases))
        write_outputs(cases, options)
    return 0 if all(row["status"] == "ok" for case in cases for row in case["contestants"]) else 1


if __name__ == "__main__":
    environment.enter_virtual_environment("peers")
    sys.exit(main())
