#!/usr/bin/env python3
"""Writes the golden files of the formats that an opfuse writes: `small-FORMAT.opf` and `plan-SCHEMA.json` of small.fir,
`loops-VERSION.opf` and `open-VERSION.opf` by the version of the section "program".

    tests/data/golden/make.py build/release/tools/opfuse/opfuse

A release that raises a version runs it once and commits what it wrote; files of the version before stay as that release wrote
them, and those before are removed with the code that read them. tests/driver/golden_test.cpp runs all files that are here, or
reads the remedy. small-4.opf and plan-1.json are those of commit 407517e, loops-1.opf and open-1.opf of 8eaf1ea.
"""
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = 2  # src/runtime/sections.cpp


def main():
    opfuse = pathlib.Path(sys.argv[1]).resolve()
    versions = json.loads(subprocess.run([opfuse, "--version", "--json"], check=True, capture_output=True).stdout)
    schema = versions["plan_schema"].split("/")[1]
    common = ["--target", "cpu:baseline", "--threads", "1", "--no-cache"]
    for model, flags, name in [("small.fir", ["--specialize", "n=2"], f"small-{versions['artifact_format']}.opf"),
                               ("loops.fir", [], f"loops-{PROGRAM}.opf"),
                               ("open.fir", ["--dim", "n=any"], f"open-{PROGRAM}.opf")]:
        subprocess.run([opfuse, "compile", model, *common, *flags, "-o", name], check=True, cwd=HERE, capture_output=True)
    subprocess.run([opfuse, "fuse", "small.fir", "--target", "cpu:baseline", "--plan-out", f"plan-{schema}.json"],
                   check=True, cwd=HERE, capture_output=True)


main()
