#!/usr/bin/env python3
"""Is what the ledger says true? Every edge of models, held against the program that runs.

    python3 bench/ledger_audit.py MODEL... [--opfuse PATH] [--target NAME] [--options="--precision bf16"] [--worst N]

For each model: edges, how many run as one launch, as a view, as a copy, as two launches; and mistakes:
  subject        an edge that is apart without a reason, or whose reason names neither of its ends nor the value
  contradiction  said to be one launch, or a view, while no launch has nodes of both ends and each is in one; or to be two
                 while every launch of one end is a launch of the other
  fields         an edge that is apart without bytes and time of both forms (or what a kernel of both would save at best, where
                 there is none), growth, reads of each element, or what flips it
  names          launches of the same name
The exit status is 1 when there is a mistake.
"""
import argparse
import json
import subprocess
import sys


def document(args, model):
    done = subprocess.run([args.opfuse, "explain", model, "--json", "--target", args.target, *args.options.split()],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{model}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def mistakes_of(doc):
    """(kind, edge) pairs, and counts of what is executed."""
    found, counts = [], {}
    launches = [set(launch["sources"]) for launch in doc["launches"]]
    names = [launch["name"] for launch in doc["launches"]]
    found += [("names", {"producer": name, "consumer": ""}) for name in {n for n in names if names.count(n) > 1}]
    for edge in doc["edges"]:
        executed = edge.get("executed", "")
        counts[executed] = counts.get(executed, 0) + 1
        makes = [i for i, sources in enumerate(launches) if edge["producer"] in sources]
        takes = [i for i, sources in enumerate(launches) if edge["consumer"] in sources]
        apart = makes and takes and not set(makes) & set(takes)
        of_composite = any(names[i] == edge.get("by") for i in makes)  # has the name of the first of its launches
        if executed == "one_launch" and apart and not of_composite:
            found.append(("contradiction", edge))
        if executed == "view" and apart and edge.get("by") != "concat":  # launches of a concat copy its other operands
            found.append(("contradiction", edge))
        if executed != "two_launches":
            continue
        if makes and takes and (set(makes) == set(takes)) and len(makes) == 1:
            found.append(("contradiction", edge))
        reason = edge.get("reason", {})
        text = reason.get("message", "") + " ".join(reason.get("evidence", []))
        ends = (edge["producer"], edge["consumer"], edge["tensor"])
        if not reason.get("code") or not any(end in text for end in ends):
            found.append(("subject", edge))
        if any(field not in edge for field in ("bytes", "time_us", "growth", "recompute", "change")):
            found.append(("fields", edge))
        elif any("apart" not in edge[unit] or not {"joined", "at_best"} & set(edge[unit]) for unit in ("bytes", "time_us")):
            found.append(("fields", edge))
    return found, counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--opfuse", default="opfuse")
    parser.add_argument("--target", default="host")
    parser.add_argument("--options", default="", help="of opfuse explain, one string")
    parser.add_argument("--worst", type=int, default=3, help="examples of each kind of mistake")
    args = parser.parse_args()
    bad = 0
    for model in args.models:
        doc = document(args, model)
        found, counts = mistakes_of(doc)
        kinds = {kind: [e for k, e in found if k == kind] for kind in ("subject", "contradiction", "fields", "names")}
        said = ", ".join(f"{count} {what or 'not said'}" for what, count in sorted(counts.items()))
        print(f"{model}: {len(doc['launches'])} launches; {said}; mistakes: "
              + ", ".join(f"{len(edges)} {kind}" for kind, edges in kinds.items()))
        for kind, edges in kinds.items():
            for edge in edges[:args.worst]:
                print(f"  {kind}: {edge['producer']} -> {edge['consumer']}: {edge.get('executed')} {edge.get('reason', {})}")
        bad += len(found)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
