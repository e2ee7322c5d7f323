#!/usr/bin/env python3
"""What open dimensions cost: a model compiled with them open, and compiled for the size it is run at, in turns.

    bench/dynamic_cost.py MODEL.onnx --at batch=1 --at batch=8 [--threads 1,2] [--rounds 8] [--seconds 0.3]
        [--folder F] [--compile-only] [--flags="--exact"]

Each --at gives a size to every open dimension (NAME=SIZE,NAME=SIZE); the dimensions that it names are those left open. A row per size
and number of threads: least and median milliseconds of both, ratio (open / fixed) of the least and of the medians with
its 95 % interval, and how far the outputs are apart. Compiled files lie in --folder and are not made again, so that compiling (--compile-only)
and measuring can be done apart. Exit status: 1 if outputs differ by more than 2e-5 of max abs or both ratios exceed --limit.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

from peerlib import environment

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOLERANCE = 2e-5


def sizes(text):
    return {name: int(size) for name, size in (item.split("=") for item in text.split(","))}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("model", type=pathlib.Path, metavar="MODEL.onnx")
    add("--at", type=sizes, action="append", required=True, metavar="NAME=SIZE,...", help="sizes to run at (repeatable)")
    add("--threads", default="1", help="numbers of threads (default 1)")
    add("--rounds", type=int, default=8, help="turns of each contestant")
    add("--seconds", type=float, default=0.3, help="length of a turn")
    add("--limit", type=float, default=1.05, help="largest ratio that passes (default 1.05)")
    add("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    add("--folder", type=pathlib.Path, help="keep compiled files here")
    add("--compile-only", action="store_true", help="fill --folder, measure nothing")
    add("--flags", default="", help="more flags of opfuse compile, for all files")
    return parser.parse_args()


def compiled(options, folder, dims, threads):
    """The .opf for these dimensions, made unless it is there."""
    label = "-".join(f"{name}{size}" for name, size in dims.items())
    flags = options.flags.split()
    path = folder / f"{options.model.stem}-{label}-t{threads}{''.join(flags)}.opf"
    if not path.exists():
        words = [options.build / "tools" / "opfuse" / "opfuse", "compile", options.model, "--threads", threads, "-o", path]
        words += [word for name, size in dims.items() for word in ("--dim", f"{name}={size}")]
        done = subprocess.run([str(word) for word in words + flags], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr.strip())
    return path


def start(options, path, feeds, threads):
    from peerlib.contestants import Opfuse
    engine = Opfuse(options.build / "bench" / "opfuse_turns")
    engine.start(path, feeds, threads)
    return engine


def take_turns(engines, options):
    """A list of milliseconds per contestant and round; the order alternates."""
    import numpy as np
    times = [[] for _ in engines]
    for engine in engines:
        engine.run(2)
    counts = [max(1, round(options.seconds * 1e9 / float(np.median(engine.run(1))))) for engine in engines]
    for turn in range(options.rounds):
        for i in range(len(engines))[::-1 if turn % 2 else 1]:
            engines[i].run(1)
            times[i].append(engines[i].run(counts[i]) * 1e-6)
    return times


def row(options, folder, dims, threads, proto):
    """One line of the table; whether it passes."""
    import numpy as np
    from peerlib import inputs, intervals, measure
    shapes = {value.name: inputs.concrete_shape(value, 1, dims) for value in inputs.graph_inputs(proto)}
    feeds = inputs.draw(proto, shapes, 0)
    files = [compiled(options, folder, names, threads) for names in (dict.fromkeys(dims, "any"), dims)]
    engines = [start(options, path, feeds, threads) for path in files]
    try:
        outputs = [engine.outputs() for engine in engines]
        error = measure.relative_error(*outputs)
        same = all(outputs[0][name].tobytes() == value.tobytes() for name, value in outputs[1].items())
        times = take_turns(engines, options)
    finally:
        for engine in engines:
            engine.stop()
    least = [float(np.concatenate(t).min()) for t in times]
    median = [float(np.median(np.concatenate(t))) for t in times]
    ratio, low, high = intervals.ratio_of_medians(*times)
    label = ", ".join(f"{name}={size}" for name, size in dims.items())
    bits = "same bits" if same else f"{error:.1e}"
    print(f"| {options.model.stem} | {label} | {threads} | {least[0]:.2f} / {median[0]:.2f} | {least[1]:.2f} / {median[1]:.2f} | "
          f"{least[0] / least[1]:.3f} | {ratio:.3f} [{low:.3f}, {high:.3f}] | {bits} |", flush=True)
    return error <= TOLERANCE and min(ratio, least[0] / least[1]) <= options.limit


def measure_all(options, folder):
    import onnx
    proto = onnx.load(options.model, load_external_data=False)
    threads = [int(count) for count in options.threads.split(",")]
    if options.compile_only:
        for count in threads:
            for names in [dict.fromkeys(options.at[0], "any"), *options.at]:
                compiled(options, folder, names, count)
        return True
    print("| model | sizes | threads | open, ms (least / median) | fixed | ratio of least | of medians [95 %] | outputs |")
    print("|---|---|---|---|---|---|---|---|")
    return all([row(options, folder, dims, count, proto) for count in threads for dims in options.at])


def main():
    options = arguments()
    if options.folder:
        options.folder.mkdir(parents=True, exist_ok=True)
        return 0 if measure_all(options, options.folder) else 1
    with tempfile.TemporaryDirectory(prefix="opfuse-dynamic-") as folder:
        return 0 if measure_all(options, pathlib.Path(folder)) else 1


if __name__ == "__main__":
    environment.enter_virtual_environment("dynamic_cost")
    sys.exit(main())
