#!/usr/bin/env python3
"""docs/conformance.md from the output of conformance_table.

    make_table.py CASES_FOLDER RESULTS.tsv COMMIT > docs/conformance.md
"""
import collections
import datetime
import pathlib
import re
import sys

STATES = ["compiled", "interpreted", "refused", "off", "wrong", "error", "crash", "hang"]
BUGS = STATES[4:]
HEAD = """# ONNX's own cases

Made by `./dev conformance`: the node, simple, converted and light cases of the Python package onnx {version}, {date}, commit {commit}. Every case
runs in a process of its own, with the suite's tolerances (rtol 1e-3, atol 1e-7 unless the case says otherwise; two units in the last place of bfloat16, as in ONNX's
runner). Inputs that decide shapes are passed as fixed inputs.

* *compiled*: machine code alone gives the expected outputs. *interpreted*: no kernel, but the interpreter does (`--allow-reference`). *refused*: an error names why.
* *off*: the expected value is. It is further from the exact result (fp64) than the tolerance, by at most 16 roundings of the output's largest
  value, as an FFT in f32 is; ours is within the tolerance of the exact result. The runner computes both distances for every case that differs.
* *wrong*, *error* (not a refusal), *crash*, *hang*: bugs.

"""


def read(cases, results):
    rows = []
    for line in results.read_text().splitlines():
        name, state, why = (line.split("\t") + [""])[:3]
        operator = cases / name / "operator"
        rows.append((name, state, why, operator.read_text().strip() if operator.exists() else "?"))
    return rows


def share(n, total):
    return f"{n} ({100 * n / max(1, total):.1f} %)"


def totals(rows):
    count = collections.Counter(state for _, state, _, _ in rows)
    accepted = count["compiled"] + count["interpreted"]
    print(f"{len(rows)} cases: {share(count['compiled'], len(rows))} compiled, {share(accepted, len(rows))} accepted, "
          + ", ".join(f"{count[s]} {s}" for s in STATES[2:]) + ".\n")


def reason(why):
    """One reason for many cases: numbers and names of single cases go."""
    why = re.sub(r'graph input "?[^ "]+"? is of type', "an input is of type", why)
    why = re.sub(r'graph input "?[^ "]+"? is a', "an input is a", why)
    return re.sub(r"^E\d+ \w+: ", "", why) if why.startswith("E0") else why


def reasons(rows):
    groups = collections.defaultdict(list)
    for name, state, why, _ in rows:
        if state in ("refused", "interpreted"):
            groups[reason(why)].append(name)
    print("## What is not compiled, and why\n\n| cases | reason | for instance |\n|---:|---|---|")
    for why, names in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"| {len(names)} | {why.replace('|', '/')} | {names[0].split('/')[1]} |")


def cell(why):
    return re.sub("[^ ]*/test_data_set", "test_data_set", why).replace("|", "/")


def off(rows):
    found = [row for row in rows if row[1] == "off"]
    if found:
        print("\n## Expected values that are off\n\n| case | first element |\n|---|---|")
    for name, _, why, _ in found:
        print(f"| {name} | {cell(why)} |")


def bugs(rows):
    found = [row for row in rows if row[1] in BUGS]
    if found:
        print("\n## Bugs\n\n| case | | |\n|---|---|---|")
    for name, state, why, _ in found:
        print(f"| {name} | {state} | {cell(why)} |")


def operators(rows):
    table = collections.defaultdict(collections.Counter)
    for _, state, _, operator in rows:
        table[operator][state] += 1
    print("\n## By operator\n\n| operator | cases | " + " | ".join(STATES) + " |\n|---|---:|" + "---:|" * len(STATES))
    for operator, count in sorted(table.items()):
        print(f"| {operator} | {sum(count.values())} | " + " | ".join(str(count[s] or "") for s in STATES) + " |")


def main():
    cases, results, commit = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    rows = read(cases, results)
    print(HEAD.format(version=(cases / "version").read_text().strip(), date=datetime.date.today(), commit=commit), end="")
    totals(rows)
    reasons(rows)
    off(rows)
    bugs(rows)
    operators(rows)
    return 1 if any(row[1] in BUGS for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
