#!/usr/bin/env python3
"""What takes longer than `./dev test` may: each check once, its result with date and commit in docs/long-tests.md.

    run_long.py BUILD_FOLDER [--only NAME ...] [--minutes M] [--again] [--list]

A check that passed on this commit is not run again (--again: it is). --minutes bounds the fuzz. Checks that need Python's onnx
use OPFUSE_ONNX_PYTHON (python3 unless set) and are skipped by name without it. The table keeps the rows of checks that did
not run. Exit 1 when a check of this run failed.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/long-tests.md"
HEAD = """# Tests that take longer

Made by `./dev test --long`: what `./dev test` has no time for, with the date and commit of the last run. `./dev test --long --list` says what each
check does; `--only NAME` runs one. ASan, UBSan and TSan have a command of their own, `./dev test --sanitize address|thread`; damaged files have
`./dev fuzz --reader NAME` ([fuzzing](fuzzing.md)).

| check | what it shows | result | s | date | commit |
|---|---|---|---:|---|---|
"""


def output(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


class Checks:
    def __init__(self, build, minutes):
        self.opfuse = str(build / "tools/opfuse/opfuse")
        self.python = os.environ.get("OPFUSE_ONNX_PYTHON", "python3")
        zoo = json.loads(output(self.opfuse, "zoo", "--json"))
        self.models = ["zoo:" + model["name"] for model in (zoo["models"] if isinstance(zoo, dict) else zoo)]
        self.rows = {
            "proofs": ("`compare` of every built-in model: each kernel, then the model", [[self.opfuse, "compare", m] for m in self.models]),
            "ledger": ("what `explain` says of every edge of them, held against the program that runs",
                       [[sys.executable, "bench/ledger_audit.py", "--opfuse", self.opfuse, *self.models]]),
            "conformance": ("ONNX's own cases ([the table](conformance.md))", [["./dev", "conformance"]]),
            "plans": ("plans of 5,000 random graphs: groups are kernels, no cycles, equal values, never predicted slower than apart",
                      [[str(build / "tests/drawn_plans"), "--graphs", "5000"]]),
            "mutants": ("changed CUDA kernels on the emulated device: the tests of results see them",
                        [[str(build / "tests/test_cuda"), "--gtest_filter=MutatedKernels.*", "--gtest_brief=1"]]),
            "nvrtc": ("every case of the CUDA tests compiled for sm_90a: no spills",
                      [[str(build / "tests/test_cuda"), "--gtest_filter=EachNvrtc.*", "--gtest_brief=1"]]),
            "fuzz": (f"random graphs in random configurations, {minutes} minutes", [["./dev", "fuzz", "--minutes", str(minutes)]]),
            "large-graphs": ("graphs of 10,000 nodes: inspect, explain, fuse, compile",
                             [[self.python, "bench/large_graphs.py", "time", self.opfuse, "--nodes", "10000"]]),
        }
        self.needs_onnx = {"conformance", "large-graphs"}

    def missing(self, name):
        if name not in self.needs_onnx:
            return None
        found = subprocess.run([self.python, "-c", "import onnx"], capture_output=True, check=False).returncode == 0
        return None if found else f"{self.python} has no package onnx (set OPFUSE_ONNX_PYTHON)"

    def run(self, name):
        """Whether every command of the check passed, and its seconds."""
        start, passed = time.monotonic(), True
        for command in self.rows[name][1]:
            print("   ", *command, flush=True)
            done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
            if done.returncode != 0:
                passed = False
                print(f"failed, exit status {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}", flush=True)
        return passed, round(time.monotonic() - start)


def read_rows():
    rows = {}
    for line in PAGE.read_text().splitlines() if PAGE.exists() else []:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 6 and cells[0] != "check":
            rows[cells[0]] = cells
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--minutes", type=int, default=30, help="of the fuzz (default: %(default)s)")
    parser.add_argument("--again", action="store_true", help="also what passed on this commit")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    checks = Checks(options.build.resolve(), options.minutes)
    if unknown := set(options.only or []) - set(checks.rows):
        parser.error(f"there is no check named {', '.join(sorted(unknown))}; the checks are {', '.join(checks.rows)}")
    if options.list:
        for name, (what, _) in checks.rows.items():
            print(f"{name:14} {what}")
        return 0
    commit, rows, failed = output("git", "rev-parse", "--short", "HEAD"), read_rows(), False
    for name in options.only or checks.rows:
        if not options.again and name in rows and rows[name][2] == "passed" and rows[name][5] == commit:
            print(f"==> {name}: passed on this commit")
            continue
        if why := checks.missing(name):
            print(f"==> {name}: skipped, {why}")
            continue
        print(f"==> {name}", flush=True)
        passed, seconds = checks.run(name)
        failed |= not passed
        print(f"    {name}: {'passed' if passed else 'FAILED'}, {seconds} s", flush=True)
        rows[name] = [name, checks.rows[name][0], "passed" if passed else "**failed**", str(seconds), f"{datetime.date.today()}", commit]
        PAGE.write_text(HEAD + "".join(f"| {' | '.join(rows[n])} |\n" for n in checks.rows if n in rows))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
