#!/usr/bin/env python3
"""What the test programs of a whole run reported, test by test: `./dev test` runs them in a few processes.

    tally.py BUILD_FOLDER

Prints how many tests ran, those that were skipped, and for each that failed the command that runs it alone.
"""
import json
import pathlib
import sys

SHOWN = 40


def tests(report):
    for suite in json.loads(report.read_text())["testsuites"]:
        for test in suite["testsuite"]:
            yield f"{suite['name']}.{test['name']}", test["result"], bool(test.get("failures"))


def main():
    build = pathlib.Path(sys.argv[1])
    ran, skipped, failed = 0, [], []
    for report in sorted((build / "whole").glob("*.json")):
        program = report.stem.rpartition("_")[0]
        for name, result, failures in tests(report):
            ran += result == "COMPLETED"
            if result == "SKIPPED":
                skipped.append(f"{program}/{name}")
            if failures:
                failed.append(f"{build}/tests/test_{program} --gtest_filter='{name}'")
    print(f"{ran} tests of {len({p.stem.rpartition('_')[0] for p in (build / 'whole').glob('*.json')})} programs ran, "
          f"{len(failed)} of them failed, {len(skipped)} were skipped")
    for name in skipped[:SHOWN]:
        print(f"  skipped {name}")
    if len(skipped) > SHOWN:
        print(f"  and {len(skipped) - SHOWN} more: \"SKIPPED\" in {build}/whole/*.json")
    for command in failed:
        print(f"  failed: {command}")


if __name__ == "__main__":
    main()
