#!/usr/bin/env python3
"""Does what the ledger says would change an edge change it? Drawn edges of models, each change applied by itself.

    python3 bench/hints.py MODEL... [--opfuse PATH] [--count 200] [--attacks 100] [--seed 0] [--prepare DIR]
    python3 bench/hints.py --measure DIR

For --count edges that are two launches or a copy and have a change: the model is lowered with that change, and the edge must
be one launch or a view then. For --attacks edges with `no_change_flips`: forcing the two (--fuse) must fail, or leave two
launches. --prepare also compiles both programs of each change that flips, and --measure, by itself and on an idle machine, runs
them in turns (opfuse's Python module and numpy) and compares the sign of the difference, of the launches at which they differ,
with the predicted one, where they differ by more than 10 %. Prints the share of no_change_flips of each model.
The exit status is 1 below 95 % flips, or when an attack succeeds.
"""
import argparse
import collections
import json
import pathlib
import random
import shlex
import statistics
import subprocess
import sys
import time

import opf_timer


def opfuse(args, *command):
    return subprocess.run([args.opfuse, *map(str, command)], capture_output=True, text=True, check=False)


def ledger(args, model, *flags):
    done = opfuse(args, "explain", model, "--json", "--target", args.target, *flags)
    if done.returncode:
        return None, done.stderr.strip()
    return json.loads(done.stdout), ""


def is_apart(edge):
    return edge.get("executed") in ("two_launches", "copy")


def same_edge(document, edge):
    return next((e for e in document["edges"] if (e["producer"], e["consumer"]) == (edge["producer"], edge["consumer"])), None)


class Launches:
    """A compiled model, and how often it launches the same nodes."""

    def __init__(self, path):
        import numpy
        import opfuse as api
        executable = api.Executable.load(str(path))
        self.context = executable.create_context(threads=1, profile=True)
        draw = numpy.random.default_rng(0)
        for info in executable.inputs():
            real = info.dtype.startswith("float")
            array = draw.standard_normal(info.shape) if real else draw.integers(0, 2, info.shape)
            self.context.bind(info.name, array.astype(info.dtype))
        self.context.run()
        self.nodes = [tuple(info.sources) for info in self.context.launches()]
        self.counts = collections.Counter(self.nodes)

    def turn(self, seconds):
        self.context.run()  # the program before left its own data in the caches
        runs, end = [], time.perf_counter() + seconds
        while not runs or time.perf_counter() < end:
            self.context.run()
            runs.append(list(self.context.launch_nanoseconds()))
        return [statistics.median(column) * 1e-3 for column in zip(*runs)]

    def of(self, times, touched):
        return sum(time for nodes, time in zip(self.nodes, times) if touched.intersection(nodes))


def apart_and_joined(base, changed):
    """Microseconds of the launches that have a node of a launch that only one of the two programs has, or has oftener: a
    whole model varies by more than these take, and a launch may keep its nodes and do more or less (means of a convolution)."""
    one, other = Launches(base), Launches(changed)
    differing = (one.counts - other.counts) + (other.counts - one.counts)
    touched = {node for nodes in differing for node in nodes}
    turns = [[program.of(program.turn(0.1), touched) for program in (one, other)] for _ in range(4)]
    return [min(column) for column in zip(*turns)]


def prepare(args, index, model, edge, change):
    """Both programs as files, and a row for --measure."""
    predicted = edge.get("time_us", {})
    if "joined" not in predicted:
        return
    made = {"base": args.prepare / (pathlib.Path(model).stem + ".opf"), "changed": args.prepare / f"{index}.opf"}
    for form, flags in (("base", []), ("changed", change)):
        if made[form].exists() and form == "base":
            continue
        if opfuse(args, "compile", model, "--force", "-o", made[form], "--threads", "1", "--target", args.target, *flags).returncode:
            return
    args.rows.append({"model": model, "change": edge["change"], "code": edge["reason"]["code"], "apart": predicted["apart"],
                      "joined": predicted["joined"], **{form: path.name for form, path in made.items()}})
    (args.prepare / "rows.json").write_text(json.dumps(args.rows, indent=1))


def measure(args):
    """Rows are measured once: what was cut off goes on where it ended."""
    path, began = args.measure / "rows.json", time.monotonic()
    opf_timer.flush_subnormals()
    rows = json.loads(path.read_text())
    for row in rows:
        if "measured" not in row and time.monotonic() - began < args.seconds:
            row["measured"] = apart_and_joined(args.measure / row["base"], args.measure / row["changed"])
            path.write_text(json.dumps(rows, indent=1))
    done = [row for row in rows if row.get("measured")]
    clear = [r for r in done if abs(r["measured"][0] - r["measured"][1]) > 0.1 * min(r["measured"])]
    right = [r for r in clear if (r["measured"][0] > r["measured"][1]) == (r["apart"] > r["joined"])]
    for row in clear:
        if row not in right:
            print(f"  wrong sign: {row['model']}: {row['change']} ({row['code']}): predicted {row['apart']:.1f} -> {row['joined']:.1f} us, "
                  f"measured {row['measured'][0]:.1f} -> {row['measured'][1]:.1f} us")
    print(f"{len(done)} of {len(rows)} changes measured, {len(clear)} differ by more than 10 %, {len(right)} with the predicted sign")
    return 0 if clear and len(right) >= 0.85 * len(clear) else 1


def try_changes(args, drawn):
    flips, failures = 0, []
    for index, (model, edge) in enumerate(drawn):
        change = shlex.split(edge["change"])
        document, error = ledger(args, model, *change)
        after = same_edge(document, edge) if document else None
        if after and not is_apart(after):
            flips += 1
            if args.prepare:
                prepare(args, index, model, edge, change)
        else:
            failures.append((model, edge, error or f"still {after and after.get('executed')}"))
    return flips, failures


def attack(args, drawn):
    gave_way = []
    for model, edge in drawn:
        document, _ = ledger(args, model, "--fuse", edge["producer"], edge["consumer"])
        after = same_edge(document, edge) if document else None
        if after and not is_apart(after):
            gave_way.append((model, edge))
    return gave_way


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--opfuse", default="opfuse")
    parser.add_argument("--target", default="host")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--attacks", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--prepare", type=pathlib.Path, help="a folder for both programs of each change that flips")
    parser.add_argument("--measure", type=pathlib.Path, help="a folder that --prepare filled")
    parser.add_argument("--seconds", type=float, default=1e9, help="with --measure: no row begins after so many")
    args = parser.parse_args()
    if args.measure:
        return measure(args)
    args.rows = []
    if args.prepare:
        args.prepare.mkdir(parents=True, exist_ok=True)
    hints, proofs = [], []
    for model in args.models:
        document, error = ledger(args, model)
        if not document:
            print(f"{model}: {error.splitlines()[0] if error else 'failed'}")
            continue
        apart = [e for e in document["edges"] if is_apart(e)]
        fixed = [e for e in apart if e.get("change") == "no_change_flips"]
        print(f"{model}: {len(document['edges'])} edges, {len(apart)} apart, {len(fixed)} no_change_flips", flush=True)
        proofs += [(model, e) for e in fixed]
        hints += [(model, e) for e in apart if e.get("change", "").startswith("--")]
    random.seed(args.seed)
    drawn = random.sample(hints, min(args.count, len(hints)))
    flips, failures = try_changes(args, drawn)
    for model, edge, why in failures[:20]:
        print(f"  no flip: {model}: {edge['change']} ({edge['reason']['code']}): {why.splitlines()[0][:200]}")
    print(f"{len(drawn)} changes applied, {flips} flip ({100 * flips / max(len(drawn), 1):.1f} %)")
    drawn_proofs = random.sample(proofs, min(args.attacks, len(proofs)))
    gave_way = attack(args, drawn_proofs)
    for model, edge in gave_way:
        print(f"  gave way: {model}: {edge['producer']} -> {edge['consumer']} ({edge['reason']['code']})")
    print(f"{len(drawn_proofs)} no_change_flips attacked, {len(gave_way)} gave way")
    return 1 if gave_way or flips < 0.95 * len(drawn) else 0


if __name__ == "__main__":
    sys.exit(main())
