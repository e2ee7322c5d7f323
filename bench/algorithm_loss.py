#!/usr/bin/env python3
"""How good is the choice of convolution algorithms?

    bench/algorithm_loss.py [MODEL ...] [--opfuse PATH] [--threads 1,2] [--rounds 5]

Profiles a model with every algorithm forced wherever it fits, in turns, each layer in network order (so with the caches as
they are there), and compares what the compiler chooses by itself with the fastest of each layer. `loss` is the time of the
chosen ones over that of the fastest, all convolutions with a choice together, beside the share of the whole model.
Status 1 when a loss exceeds --limit.
"""
import argparse
import json
import statistics
import subprocess
import sys

ALGORITHMS = ("direct", "f2", "f4x2", "f4")


def profile(opfuse, model, threads, extra, seconds):
    command = [opfuse, "profile", model, "--threads", str(threads), "--duration", seconds, "--json", *extra]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["kernels"]


def algorithm_of(schedule):
    knobs = dict(word.split("=") for word in schedule.split())
    if "winograd_h" not in knobs:
        return "direct"
    h, w = knobs["winograd_h"], knobs["winograd_w"]
    return f"f{h}" if h == w else f"f{h}x{w}"


def medians(runs):
    return [statistics.median(run[i]["ms"] for run in runs) for i in range(len(runs[0]))]


def measure(opfuse, model, threads, rounds, seconds, growth):
    runs = {name: [] for name in (*ALGORITHMS, "chosen")}
    bound = ["--max-weight-growth", growth] if growth else []
    for _ in range(rounds):
        for name in ALGORITHMS:
            runs[name].append(profile(opfuse, model, threads, ["--algorithm", name], seconds))
        runs["chosen"].append(profile(opfuse, model, threads, bound, seconds))
    times = {name: medians(runs[name]) for name in runs}
    chosen = [algorithm_of(k["schedule"]) for k in runs["chosen"][0]]
    made = {name: [algorithm_of(k["schedule"]) for k in runs[name][0]] for name in ALGORITHMS}
    rows = []
    for i, kernel in enumerate(runs["chosen"][0]):
        options = {name: times[name][i] for name in ALGORITHMS if made[name][i] == name}
        if len(options) > 1:
            rows.append((kernel["kernel"], chosen[i], options))
    return rows, sum(times["chosen"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["zoo:resnet50", "zoo:resnet18", "zoo:unet"])
    parser.add_argument("--opfuse", default="build/release/tools/opfuse/opfuse")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", default="0.3s")
    parser.add_argument("--max-weight-growth", default="", help="for the choice (default: the compiler's own bound)")
    parser.add_argument("--limit", type=float, default=0.05)
    arguments = parser.parse_args()
    failed = False
    for model in arguments.models:
        for threads in map(int, arguments.threads.split(",")):
            rows, total = measure(arguments.opfuse, model, threads, arguments.rounds, arguments.seconds,
                                  arguments.max_weight_growth)
            taken = sum(options[name] for _, name, options in rows)
            best = sum(min(options.values()) for _, _, options in rows)
            print(f"{model}, {threads} threads: {len(rows)} convolutions with a choice")
            for kernel, name, options in rows:
                marks = "  ".join(f"{'*' if o == name else ' '}{o} {ms:.3f}" for o, ms in options.items())
                print(f"  {marks}   {kernel}")
            loss = taken / best - 1 if best else 0
            print(f"  loss {100 * loss:.1f} % of these layers, {100 * (taken - best) / total:.1f} % of the model")
            failed |= loss > arguments.limit
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
