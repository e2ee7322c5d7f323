#!/usr/bin/env python3
"""Runs the tests of a sanitizer's build in batches and keeps what is done, so that a run can be stopped and goes on.

    run_sanitized.py BUILD_FOLDER [--minutes M] [--batch N] [--only REGEX] [--report]

Test programs run as `./dev test` runs them, in a few processes each; --only takes single tests (their names: ctest -N).
BUILD_FOLDER/sanitized.tsv has a line per finished test: commit, name, passed or failed, seconds. Tests that passed on this
commit are not run again; --report only counts. Exit 1 when a test of this commit failed, 3 when the time was over first.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree

OPTIONS = {
    # LeakSanitizer's tracer needs ptrace; gtest and LLVM's library pair new and free across libraries.
    # Without the rest kernels' programs take twice as long: few frames of each allocation, a small quarantine, stacks as they are.
    "ASAN_OPTIONS": "detect_leaks=0:alloc_dealloc_mismatch=0:abort_on_error=1:malloc_context_size=4:quarantine_size_mb=32:detect_stack_use_after_return=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    # An interrupt ends the command while its threads run.
    "TSAN_OPTIONS": f"halt_on_error=1:second_deadlock_stack=1:report_thread_leaks=0:suppressions={pathlib.Path(__file__).resolve().parent}/tsan.supp",
}


def selection(only):
    return [] if only else ["-C", "whole", "-LE", "single"]


def all_tests(build, only):
    command = ["ctest", "--test-dir", build, "--show-only=json-v1", *selection(only)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [test["name"] for test in json.loads(text)["tests"]]


def finished(state, commit):
    done = {}
    if state.exists():
        for line in state.read_text().splitlines():
            made, name, verdict, seconds = line.split("\t")
            if made == commit:
                done[name] = (verdict, float(seconds))
    return done


def run_batch(build, numbers, flags):
    junit = build / "sanitized.xml"
    junit.unlink(missing_ok=True)
    command = ["ctest", "--test-dir", build, *selection(flags.only), "-I", "0,0,0," + ",".join(map(str, numbers)), "-j", str(flags.jobs),
               "--output-on-failure", "--output-junit", junit.resolve()]
    log = subprocess.run(command, capture_output=True, text=True, env={**OPTIONS, **os.environ}).stdout
    with open(build / "sanitized.log", "a") as file:
        file.write(log)
    for case in xml.etree.ElementTree.parse(junit).getroot().iter("testcase"):
        verdict = {"run": "passed", "disabled": "passed", "notrun": "passed"}.get(case.get("status"), "failed")
        yield case.get("name"), verdict, float(case.get("time", 0))


def report(names, done):
    failed = [name for name, (verdict, _) in done.items() if verdict == "failed"]
    print(f"{len(done)} of {len(names)} tests done, {len(failed)} failed, {sum(s for _, s in done.values()) / 60:.0f} minutes")
    for name in failed:
        print(f"  FAILED {name}")
    return bool(failed)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="")
    parser.add_argument("--report", action="store_true")
    flags = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    state, end = flags.build / "sanitized.tsv", time.time() + 60 * flags.minutes
    names = all_tests(flags.build, flags.only)
    done = finished(state, commit)
    todo = [i + 1 for i, name in enumerate(names) if done.get(name, ("", 0))[0] != "passed" and re.search(flags.only, name)]
    for first in range(0, 0 if flags.report else len(todo), flags.batch):
        if time.time() > end:
            report(names, done)
            return 3
        for name, verdict, seconds in run_batch(flags.build, todo[first:first + flags.batch], flags):
            done[name] = (verdict, seconds)
            with open(state, "a") as file:
                file.write(f"{commit}\t{name}\t{verdict}\t{seconds:.2f}\n")
        print(f"{len(done)} of {len(names)}", flush=True)
    return 1 if report(names, done) else 0


if __name__ == "__main__":
    sys.exit(main())
