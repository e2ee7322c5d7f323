#!/usr/bin/env python3
"""Do groups depend on the order of a file's nodes? Models with their nodes in random topological orders, planned again.

    python3 bench/node_order.py MODEL.onnx... [--opfuse PATH] [--target NAME] [--orders 3] [--seed 0]

Groups are compared as sets of node names, with what found them. Needs Python's onnx. The exit status is 1 when a group differs.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import onnx


def shuffled(nodes, rng):
    """Nodes in a random order in which every value is made before it is read (values of outer graphs are always there)."""
    made_by = {name: i for i, node in enumerate(nodes) for name in node.output if name}

    def names_of(node):
        names = list(node.input)
        for attribute in node.attribute:
            for inner in attribute.g.node:
                names += names_of(inner)
        return names
    waits = [{made_by[name] for name in names_of(node) if name in made_by} for node in nodes]
    readers = {}
    for i, before in enumerate(waits):
        for j in before:
            readers.setdefault(j, []).append(i)
    ready, order = [i for i, before in enumerate(waits) if not before], []
    while ready:
        i = ready.pop(rng.randrange(len(ready)))
        order.append(nodes[i])
        for reader in readers.get(i, []):
            waits[reader].discard(i)
            if not waits[reader]:
                ready.append(reader)
    return order


def groups_of(args, model, folder):
    plan = folder / "plan.json"
    done = subprocess.run([args.opfuse, "fuse", model, "--target", args.target, "--plan-out", plan, "--force"], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{model}: {done.stderr.strip()}")
    matches = json.loads(plan.read_text())["matches"]
    return {(m["module"], tuple(sorted(m["nodes"]))) for m in matches if m["apply"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--opfuse", default="opfuse")
    parser.add_argument("--target", default="cpu:avx512")
    parser.add_argument("--orders", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    differ = 0
    for path in args.models:
        rng, model = random.Random(args.seed), onnx.load(path)
        for i, node in enumerate(model.graph.node):  # names made up by position would differ
            node.name = node.name or f"node{i}"
        with tempfile.TemporaryDirectory() as name:
            folder, other = pathlib.Path(name), pathlib.Path(name) / "model.onnx"
            onnx.save(model, other)
            first, nodes, changed = groups_of(args, other, folder), list(model.graph.node), 0
            for _ in range(args.orders):
                order = shuffled(nodes, rng)
                del model.graph.node[:]
                model.graph.node.extend(order)
                onnx.save(model, other)
                again = groups_of(args, other, folder)
                for module, members in sorted(first ^ again)[:4]:
                    print(f"  {'lost' if (module, members) in first else 'new'}: {module} {', '.join(members[:6])}")
                changed += first != again
        differ += changed
        print(f"{path.stem}: {len(first)} groups, {changed} of {args.orders} orders differ", flush=True)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
