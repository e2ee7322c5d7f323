#!/usr/bin/env python3
"""Does what the ledger says would change an edge change it? Drawn edges of models, each change applied by itself.

    python3 bench/hints.py MODEL... [--opfuse PATH] [--count 200] [--attacks 100] [--seed 0] [--times]

For --count edges that are two launches or a copy and have a change: the model is lowered with that change, and the edge must
be one launch or a view then. For --attacks edges with `no_change_flips`: forcing the two (--fuse) must fail, or leave two
launches. --times also profiles both programs in turns and compares the sign of the difference, of the launches that only one
of them has, with the predicted one, where they differ by more than 10 %. Prints the share of no_change_flips of each model.
The exit status is 1 below 95 % flips, or when an attack succeeds.
"""
import argparse
import json
import random
import shlex
import subprocess
import sys


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


def launches(args, model, *flags):
    """Microseconds of each launch, by its nodes; None where it does not run."""
    done = opfuse(args, "profile", model, "--json", "--threads", "1", "--target", args.target, "--duration", "200ms", *flags)
    if done.returncode:
        return None
    times = {}
    for kernel in json.loads(done.stdout)["kernels"]:
        nodes = tuple(kernel["nodes"])
        times[nodes] = times.get(nodes, 0) + 1000 * kernel["ms"]
    return times


def sign_is_right(args, model, edge, change):
    """Of the launches that only one of the two programs has; None where these differ by less than 10 %, or were not had.

    A whole model varies by more than two of its launches take.
    """
    predicted = edge.get("time_us", {})
    if "joined" not in predicted:
        return None
    turns = [(launches(args, model), launches(args, model, *change)) for _ in range(3)]
    if any(None in turn for turn in turns):
        return None
    alone = lambda one, other: sum(time for nodes, time in one.items() if nodes not in other)  # noqa: E731
    apart = min(alone(one, other) for one, other in turns)
    joined = min(alone(other, one) for one, other in turns)
    if abs(apart - joined) < 0.1 * min(apart, joined):
        return None
    return (apart > joined) == (predicted["apart"] > predicted["joined"])


def try_changes(args, drawn):
    flips, failures, signs = 0, [], []
    for model, edge in drawn:
        change = shlex.split(edge["change"])
        document, error = ledger(args, model, *change)
        after = same_edge(document, edge) if document else None
        if after and not is_apart(after):
            flips += 1
            if args.times:
                signs.append(sign_is_right(args, model, edge, change))
        else:
            failures.append((model, edge, error or f"still {after and after.get('executed')}"))
    return flips, failures, [s for s in signs if s is not None]


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
    parser.add_argument("models", nargs="+")
    parser.add_argument("--opfuse", default="opfuse")
    parser.add_argument("--target", default="host")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--attacks", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--times", action="store_true")
    args = parser.parse_args()
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
    flips, failures, signs = try_changes(args, drawn)
    for model, edge, why in failures[:20]:
        print(f"  no flip: {model}: {edge['change']} ({edge['reason']['code']}): {why.splitlines()[0][:200]}")
    print(f"{len(drawn)} changes applied, {flips} flip ({100 * flips / max(len(drawn), 1):.1f} %)")
    if signs:
        print(f"{len(signs)} measured differences above 10 %, {sum(signs)} with the predicted sign")
    drawn_proofs = random.sample(proofs, min(args.attacks, len(proofs)))
    gave_way = attack(args, drawn_proofs)
    for model, edge in gave_way:
        print(f"  gave way: {model}: {edge['producer']} -> {edge['consumer']} ({edge['reason']['code']})")
    print(f"{len(drawn_proofs)} no_change_flips attacked, {len(gave_way)} gave way")
    return 1 if gave_way or flips < 0.95 * len(drawn) else 0


if __name__ == "__main__":
    sys.exit(main())
