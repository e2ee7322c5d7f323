#!/usr/bin/env python3
"""How good is the choice of convolution algorithms?

    bench/algorithm_loss.py [MODEL ...] [--threads 1,2] [--batch 1,8] [--runs 3] [--record FILE | --recorded FILE]

Times every algorithm of every convolution in network order (`opfuse explain --measure`: the whole model with each algorithm in
turns) and compares what the cost model chooses by itself with the fastest of each layer. `loss` is the time of the chosen
ones over that of the fastest, all convolutions with a choice together: once without a bound on the growth of weights, and
once within the compiler's own bound, against the fastest choice within it. --record writes the times to a file, which a test
of the compiler holds the cost model against; --recorded takes them from there. Status 1 when a loss exceeds --limit.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ALGORITHMS = ("direct", "f2", "f4x2", "f4")
NO_BOUND = str(1 << 50)
GRAIN = 100_000  # bytes; of the table that finds the fastest choice within a bound


def explain(options, model, batch, threads, *extra):
    command = [options.opfuse, "explain", model, "--json", "--threads", str(threads), "--dim", f"N={batch}", *extra]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [row for row in json.loads(done.stdout)["algorithms"] if len(row["costs"]) > 1]


def costs_of(row):
    return {cost["algorithm"]: cost["cost"] for cost in row["costs"]}


def measure(options, model, batch, threads):
    """Node -> algorithm -> milliseconds: the least over some runs of the median of each."""
    times = {}
    for _ in range(options.runs):
        for row in explain(options, model, batch, threads, "--measure", "--max-weight-growth", NO_BOUND):
            known = times.setdefault(row["node"], {})
            for name, ns in costs_of(row).items():
                known[name] = min(known.get(name, ns / 1e6), ns / 1e6)
    return times


def fastest_within(rows, times, bound):
    """The least time of a choice whose weights grow by at most `bound`."""
    slots = int(bound) // GRAIN + 1
    best = [0.0] * slots
    for row in rows:
        now = times[row["node"]]
        steps = [(max(0, -(-cost["weight_growth"] // GRAIN)), now[cost["algorithm"]]) for cost in row["costs"]]
        best = [min((best[at - size] + ms for size, ms in steps if size <= at), default=1e9) for at in range(slots)]
    return best[-1]


def compare(options, model, batch, threads, times):
    free = explain(options, model, batch, threads, "--max-weight-growth", NO_BOUND)
    bound = explain(options, model, batch, threads)
    for row in free:
        now = times[row["node"]]
        cost = costs_of(row)
        marks = "  ".join(f"{'*' if name == row['algorithm'] else ' '}{name} {ms:.3f} ({cost[name] / options.clock / 1e6:.3f})"
                          for name, ms in now.items() if name in cost)
        if options.verbose:
            print(f"  {marks}   {row['node']}")
    taken = sum(times[row["node"]][row["algorithm"]] for row in free)
    best = sum(min(times[row["node"]].values()) for row in free)
    taken_bound = sum(times[row["node"]][row["algorithm"]] for row in bound)
    grown = sum(row["weight_growth"] for row in bound)
    best_bound = fastest_within(bound, times, max(options.growth, grown))
    losses = taken / best - 1, taken_bound / best_bound - 1
    print(f"{model} batch {batch}, {threads} threads: loss {100 * losses[0]:.1f} % of {best:.2f} ms in {len(free)} convolutions; "
          f"within the bound {100 * losses[1]:.1f} % of {best_bound:.2f} ms, {grown / 1e6:.0f} MB")
    return max(losses)


def write_model(options, name, folder):
    path = str(pathlib.Path(folder) / f"{name}.onnx")
    subprocess.run([options.opfuse, "zoo", name, "--batch", "N", "-o", path], check=True, capture_output=True)
    return path


def read_times(path):
    cases = {}
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith("#"):
            continue
        model, batch, threads, node, *times = line.split()
        case = cases.setdefault((model, int(batch), int(threads)), {})
        case[node] = {name: float(ms) for name, ms in zip(ALGORITHMS, times) if ms != "-"}
    return cases


def write_times(path, header, cases):
    lines = [f"# {line}" for line in header]
    for (model, batch, threads), times in cases.items():
        for node, now in times.items():
            lines.append(" ".join([model, str(batch), str(threads), node,
                                   *(f"{now[name]:.4f}" if name in now else "-" for name in ALGORITHMS)]))
    pathlib.Path(path).write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("models", nargs="*", default=["resnet50", "resnet18", "vgg16", "unet"], help="names of `opfuse zoo`")
    add("--opfuse", default="build/release/tools/opfuse/opfuse")
    add("--threads", default="1,2")
    add("--batch", default="1,8")
    add("--runs", type=int, default=3)
    add("--growth", type=float, default=45e6, help="the default bound on the growth of weights, bytes")
    add("--clock", type=float, default=3.8, help="GHz, to show predicted cycles as times")
    add("--limit", type=float, default=0.05)
    add("--verbose", action="store_true", help="every layer: measured ms (predicted)")
    add("--record", metavar="FILE", help="add the times to this file, in place of older ones of the same case")
    add("--recorded", metavar="FILE", help="take the times from this file")
    add("--machine", default="a machine", help="for the first line of the file")
    options = parser.parse_args()
    worst = 0
    old = options.recorded or options.record
    cases = read_times(old) if old and pathlib.Path(old).exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        for model in options.models:
            path = write_model(options, model, folder)
            for batch in map(int, options.batch.split(",")):
                for threads in map(int, options.threads.split(",")):
                    key = (model, batch, threads)
                    if not options.recorded:
                        cases[key] = measure(options, path, batch, threads)
                        if options.record:
                            header = (f"milliseconds of a convolution by algorithm, in network order; {options.machine}",
                                      "model batch threads node " + " ".join(ALGORITHMS))
                            write_times(options.record, header, cases)
                    if key in cases:
                        worst = max(worst, compare(options, path, batch, threads, cases[key]))
    sys.exit(1 if worst > options.limit else 0)


if __name__ == "__main__":
    main()
