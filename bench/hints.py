#!/usr/bin/env python3
"""Does what the ledger says would change an edge change it? Drawn edges of models, each change applied by itself.

    python3 bench/hints.py MODEL... [--opfuse PATH] [--count 200] [--attacks 100] [--seed 0] [--times]

For --count edges that are two launches or a copy and have a change: the model is lowered with that change, and the edge must
be one launch or a view then. For --attacks edges with `no_change_flips`: forcing the two (--fuse) must fail, or leave two
launches. --times also runs both forms in turns and compares the sign of the difference with the predicted one, where they
differ by more than 10 %. Prints the share of no_change_flips of each model. The exit status is 1 below 95 % flips, or when an
attack succeeds.
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


def least(args, model, *flags):
    done = opfuse(args, "bench", model, "--json", "--threads", "1", "--target", args.target, "--duration", "200ms", *flags)
    return json.loads(done.stdout)["latency_ms"]["min"] if done.returncode == 0 else None


def sign_is_right(args, model, edge, change):
    """None where measured times differ by less than 10 % of the predicted difference's launches, or were not had."""
    times = edge.get("time_us", {})
    if "joined" not in times:
        return None
    joined, apart = [], []
    for _ in range(3):
        apart.append(least(args, model))
        joined.append(least(args, model, *change))
    if None in joined + apart:
        return None
    gained = 1000 * (min(apart) - min(joined))  # microseconds
    if abs(gained) < 0.1 * min(times["apart"], times["joined"]):
        return None
    return (gained > 0) == (times["apart"] > times["joined"])


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
