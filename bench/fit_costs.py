#!/usr/bin/env python3
"""Cycles of [costs] in a target's file: how well groups are predicted with them, and a fit of them to this machine.

    python3 bench/fit_costs.py table [--opfuse PATH] [--target NAME]          # predicted and measured, group by group
    python3 bench/fit_costs.py fit [-o mine.toml] [--sweeps 3]                 # fits [costs], prints the table before and after
    python3 bench/fit_costs.py pairs [--count 300] [--seed 0] [--prepared DIR] # one launch or two: is the predicted sign right?
    python3 bench/fit_costs.py margins [--prepared DIR]                        # the same pairs: what [margins] cost and gain

Groups are graphs of one launch each, small enough for the caches, on one thread: maps of each kind of operation, rows,
transposes, elements by themselves. `fit` moves one constant after the other by factors as long as the mean squared logarithm of
predicted / measured falls. `pairs` draws a producer and a consumer and runs them as one launch (--fuse) and as two (--no-fuse),
in turns, and counts the pairs that differ by more than 10 %. `margins` goes over the same times: for each margin the pairs that are decided
as they were measured, and the time of what is then chosen over that of the faster forms. Measure on an idle machine.
"""
import argparse
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

import opf_timer

COSTS = ["simple", "division", "root", "function", "erf", "power", "index_division", "access", "turned", "element", "point", "row",
         "second", "far", "in_row", "tile_vectors", "read_share"]
AXIS = "%k = const dense<-1> : i64[1]\n"


def chain(*ops):
    lines, last = [], "%x"
    for i, op in enumerate(ops):
        lines.append(f"%v{i} = {op.format(last)}")
        last = f"%v{i}"
    return "\n".join(lines), last


def graph(body, result, shape="256,512", more=""):
    return f"graph (%x: f32[{shape}]{more}) {{\n{body}\nreturn {result}\n}}\n"


def groups():
    """Name -> graph of one launch."""
    found = {}
    for name, op in (("relu", "relu({})"), ("abs", "abs({})"), ("sqrt", "sqrt({})"), ("exp", "exp({})"), ("tanh", "tanh({})"),
                     ("erf", "erf({})"), ("log", "log({})"), ("sigmoid", "sigmoid({})")):
        for count in (1, 4):
            found[f"{name} x {count}"] = graph(*chain(*[op] * count))
    found["add"] = graph("%y = add(%x, %z)", "%y", more=", %z: f32[256,512]")
    found["div"] = graph("%y = div(%x, %z)", "%y", more=", %z: f32[256,512]")
    found["pow"] = graph("%y = pow(%x, %z)", "%y", more=", %z: f32[256,512]")
    found["add of a row"] = graph("%y = add(%x, %z)", "%y", more=", %z: f32[512]")
    for rows, columns in ((256, 512), (2048, 64), (64, 2048)):
        shape = f"{rows},{columns}"
        found[f"transpose {shape}"] = graph("%y = transpose(%x) {perm=[1,0]}", "%y", shape)
        found[f"relu of a transpose {shape}"] = graph("%t = transpose(%x) {perm=[1,0]} %y = relu(%t)", "%y", shape)
        found[f"sum of rows {shape}"] = graph(AXIS + "%y = reduce_sum(%x, %k)", "%y", shape)
        found[f"softmax {shape}"] = graph("%y = softmax(%x) {axis=-1}", "%y", shape)
    found["turned heads"] = graph("%y = transpose(%x) {perm=[0,2,1,3]}", "%y", "8,64,8,64")
    found["channels last"] = graph("%y = transpose(%x) {perm=[0,2,3,1]}", "%y", "1,64,56,56")
    found["every second"] = graph(
        "%b = const dense<0> : i64[1] %e = const dense<512> : i64[1] %a = const dense<1> : i64[1] %s = const dense<2> : i64[1]\n"
        "%t = slice(%x, %b, %e, %a, %s) %y = relu(%t)", "%y")
    weights = "%g = const rand<1> : f32[{0}] %b = const rand<2> : f32[{0}] "
    for rows, columns in ((256, 512), (3136, 96)):
        norm = "{{axis=-1}} ".format()
        found[f"norm {rows},{columns}"] = graph(weights.format(columns) + f"%y = layer_norm(%x, %g, %b) {norm}", "%y", f"{rows},{columns}")
        found[f"sum and norm {rows},{columns}"] = graph(weights.format(columns) + f"%s = add(%x, %z) %y = layer_norm(%s, %g, %b) {norm}",
                                                        "%s, %y", f"{rows},{columns}", f", %z: f32[{rows},{columns}]")
    found["max pool"] = graph("%y = max_pool(%x) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]}", "%y", "1,64,56,56")
    found["parts of a concat"] = graph("%a = tanh(%x) %e = exp(%z) %c = concat(%a, %e) {axis=1} %y = neg(%c)", "%y", "1,16,56,56",
                                       ", %z: f32[1,16,56,56]")
    found["depth to space"] = graph("%y = depth_to_space(%x) {blocksize=2}", "%y", "1,64,32,32")
    return found


PRODUCERS = {"relu": "%a = relu(%x)", "tanh": "%a = tanh(%x)", "exp": "%a = exp(%x)", "square": "%a = mul(%x, %x)",
             "scale": "%a = mul(%x, %z)", "turn": "%a = transpose(%x) {perm=[0,1,3,2]}",
             "space": "%d = depth_to_space(%x) {blocksize=2} %a = space_to_depth(%d) {blocksize=2}",
             "means": "%k = const dense<2,3> : i64[2] %a = reduce_mean(%x, %k)", "softmax": "%a = softmax(%x) {axis=-1}"}
CONSUMERS = {"relu": "%y = relu(%a)", "gelu": "%y = sigmoid(%a)", "add": "%y = add(%a, %z)", "softmax": "%y = softmax(%a) {axis=-1}",
             "sum": "%n = const dense<3> : i64[1] %y = reduce_sum(%a, %n)",
             "max_pool": "%y = max_pool(%a) {kernel_shape=[2,2], strides=[2,2]}",
             "avg_pool": "%y = average_pool(%a) {kernel_shape=[3,3], strides=[1,1]}",
             "turn": "%y = transpose(%a) {perm=[0,2,3,1]}", "conv1x1": "%w = const rand<1> : f32[64,32,1,1] %y = conv(%a, %w)",
             "depthwise": "%w = const rand<1> : f32[32,1,3,3] %y = conv(%a, %w) {group=32, pads=[1,1,1,1]}"}


def opfuse(args, *command):
    return subprocess.run([args.opfuse, *map(str, command)], capture_output=True, text=True, check=False)


def predicted(args, model, target, *flags):
    done = opfuse(args, "explain", model, "--json", "--target", target, *flags)
    if done.returncode:
        return None
    rows = json.loads(done.stdout)["launches"]
    return sum(row["predicted_us"] for row in rows), len(rows)


def measured(args, model, *flags):
    """Microseconds of the fastest run."""
    done = opfuse(args, "bench", model, "--json", "--threads", "1", "--target", args.target, "--duration", "50ms", "--warmup", "10ms",
                  *flags)
    return 1000 * json.loads(done.stdout)["latency_ms"]["min"] if done.returncode == 0 else None


def write_groups(folder):
    files = {}
    for name, text in groups().items():
        files[name] = folder / (name.replace(" ", "_").replace(",", "x") + ".fir")
        files[name].write_text(text)
    return files


def least(args, files):
    """Microseconds of each group, the least of turns."""
    times = {}
    for _ in range(args.rounds):
        for name, file in files.items():
            time = measured(args, file)
            if time is not None:
                times[name] = min(time, times.get(name, math.inf))
    return times


def loss(args, files, times, target):
    logs = []
    for name, file in files.items():
        found = predicted(args, file, target)
        if found and name in times and found[1] == 1:
            logs.append(math.log(found[0] / times[name]))
    return sum(value * value for value in logs) / len(logs) if logs else math.inf  # a constant out of its range predicts nothing


def show(args, files, times, target):
    print(f"{'group':32} predicted  measured  ratio")
    for name, file in files.items():
        found = predicted(args, file, target)
        if found and name in times:
            print(f"{name:32} {found[0]:9.1f} {times[name]:9.1f} {found[0] / times[name]:6.2f}" + ("" if found[1] == 1 else "  (several launches)"))


def target_text(args, costs):
    lines = "\n".join(f"{name} = {costs[name]:.4g}" for name in COSTS)
    return f'schema = 1\nextends = "{args.target}"\n\n[costs]\n{lines}\n'


def costs_of(args):
    document = json.loads(opfuse(args, "targets", "show", args.target, "--json").stdout)
    return {name: document["costs"][name] for name in COSTS}


def fit(args, files, times, folder):
    costs, path = costs_of(args), folder / "fitted.toml"

    def loss_with(trial):
        path.write_text(target_text(args, trial))
        return loss(args, files, times, path)
    best = loss_with(costs)
    print(f"root mean square of log(predicted / measured): {math.sqrt(best):.3f}")
    for sweep in range(args.sweeps):
        factors = (1.5, 1 / 1.5) if sweep == 0 else (1.2, 1 / 1.2)
        for name in COSTS:
            for factor in factors:
                while True:
                    trial = {**costs, name: costs[name] * factor}
                    found = loss_with(trial)
                    if found >= best * 0.998:
                        break
                    costs, best = trial, found
        print(f"sweep {sweep + 1}: {math.sqrt(best):.3f}  " + ", ".join(f"{n} {costs[n]:.3g}" for n in COSTS), flush=True)
    path.write_text(target_text(args, costs))
    return path


def pair_text(producer, consumer, side):
    size = f"1,32,{side},{side}"
    z = "1,32,1,1"
    return graph(PRODUCERS[producer] + ' @"p"\n' + CONSUMERS[consumer] + ' @"c"', "%y", size, f", %z: f32[{z}]")


def prices(args, model):
    """What the ledger says of p -> c kept apart: microseconds as one launch and as two; None where nothing is left to choose."""
    done = opfuse(args, "explain", model, "--json", "--target", args.target, "--no-fuse", "p", "c")
    edges = json.loads(done.stdout)["edges"] if done.returncode == 0 else []
    times = next((e.get("time_us", {}) for e in edges if (e["producer"], e["consumer"]) == ("p", "c")), {})
    return (times["joined"], times["apart"]) if "joined" in times else None


def prepare_pairs(args, folder):
    """Compiles both forms of each drawn pair; a row of pairs.json has the prices, or nothing where there is no choice."""
    random.seed(args.seed)
    kinds = [(p, c, s) for p in PRODUCERS for c in CONSUMERS for s in (14, 28, 56, 112)]
    random.shuffle(kinds)
    rows = []
    for producer, consumer, side in kinds[:args.count]:
        row = {"pair": [producer, consumer, side], "price": None}
        rows.append(row)
        model = folder / "pair.fir"
        model.write_text(pair_text(producer, consumer, side))
        price = prices(args, model)
        if not price:
            continue
        made = [opfuse(args, "compile", model, "--force", "-o", folder / f"{len(rows)}{form}.opf", "--target", args.target,
                       "--threads", "1", form, "p", "c") for form in FORMS]
        if not any(m.returncode for m in made):
            row["price"] = price
    (folder / "pairs.json").write_text(json.dumps(rows))


FORMS = ("--fuse", "--no-fuse")


def measure_pairs(args, folder):
    library = opf_timer.library_beside(args.opfuse)
    right, clear, skipped, differ = 0, 0, 0, 0
    rows = json.loads((folder / "pairs.json").read_text())
    print(f"{'producer':10} {'consumer':10} side  predicted joined/apart  measured joined/apart")
    for i, row in enumerate(rows, 1):
        if not row["price"]:
            skipped += 1
            continue
        programs = [opf_timer.Program(library, folder / f"{i}{form}.opf") for form in FORMS]
        joined, apart = opf_timer.in_turns(programs, args.rounds, 0.008)
        error = opf_timer.difference(*programs) if row["pair"][2] == 14 else 0  # the same kernels at every side
        differ += error > 1e-4
        for program in programs:
            program.close()
        ratio = joined / apart
        if not abs(math.log(ratio)) > math.log(1.1):
            continue
        clear += 1
        agrees = (ratio < 1) == (row["price"][0] < row["price"][1])
        right += agrees
        producer, consumer, side = row["pair"]
        print(f"{producer:10} {consumer:10} {side:4}  {row['price'][0] / row['price'][1]:22.2f}  {ratio:21.2f}"
              + ("" if agrees else "   WRONG"), flush=True)
    print(f"{len(rows)} pairs: {clear} differ by more than 10 %, {right} of them with the predicted sign; {skipped} leave nothing to "
          f"choose; {differ} with other outputs")
    return 0 if clear and right >= 0.9 * clear and not differ else 1


MARGINS = (0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)


def measure_margins(args, folder):
    """[margins] decide pairs by the share that one launch is predicted to save: prologues of contractions, and all others."""
    library = opf_timer.library_beside(args.opfuse)
    found = {"fusion": [], "prologue": []}
    for i, row in enumerate(json.loads((folder / "pairs.json").read_text()), 1):
        if not row["price"]:
            continue
        programs = [opf_timer.Program(library, folder / f"{i}{form}.opf") for form in FORMS]
        times = opf_timer.in_turns(programs, args.rounds, 0.008)
        for program in programs:
            program.close()
        found["prologue" if row["pair"][1] in CONTRACTIONS else "fusion"].append((1 - row["price"][0] / row["price"][1], *times))
    for name, rows in found.items():
        print(f"{name}: {len(rows)} pairs")
        for margin in MARGINS:
            right = [(joined < apart) == (saved > margin) for saved, joined, apart in rows if abs(math.log(joined / apart)) > math.log(1.1)]
            lost = [(joined if saved > margin else apart) / min(joined, apart) for saved, joined, apart in rows]
            mean = math.exp(sum(map(math.log, lost)) / max(len(lost), 1))
            print(f"  {margin:4.2f}  {sum(right)} of {len(right)} that differ by more than 10 % as measured; time of the choice {mean:.3f} of the faster form")
    return 0


CONTRACTIONS = ("conv1x1",)


def pairs(args, folder):
    """Compiling wants no idle machine, so the two parts can run apart."""
    measure = measure_margins if args.what == "margins" else measure_pairs
    if args.prepared is None:
        prepare_pairs(args, folder)
        return measure(args, folder)
    if (args.prepared / "pairs.json").exists():
        return measure(args, args.prepared)
    args.prepared.mkdir(parents=True, exist_ok=True)
    prepare_pairs(args, args.prepared)
    print(f"compiled into {args.prepared}: the same command again measures")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["table", "fit", "pairs", "margins"])
    parser.add_argument("--opfuse", default="opfuse")
    parser.add_argument("--target", default="cpu:avx512")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="the fitted file")
    parser.add_argument("--sweeps", type=int, default=3)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--prepared", type=pathlib.Path, help="of pairs: a folder; compiles into it first, measures what is there then")
    parser.add_argument("--rounds", type=int, default=3, help="turns; the least time counts")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if args.what in ("pairs", "margins"):
            return pairs(args, folder)
        files = write_groups(folder)
        times = least(args, files)
        show(args, files, times, args.target)
        if args.what == "fit":
            path = fit(args, files, times, folder)
            show(args, files, times, path)
            print(path.read_text())
            if args.output:
                args.output.write_text(path.read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
