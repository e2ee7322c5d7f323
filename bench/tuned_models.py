#!/usr/bin/env python3
"""What `opfuse tune` gains on the eight models of the README: tuned against as predicted, in turns, by tune's own check.

    bench/tuned_models.py [--models resnet18,mobilenet_v2] [--threads 1] [--time 5m] [--timings FILE] [--opfuse PATH]

Prints a row per model and the geometric mean, in which a model whose tuned program was not kept counts as 1. Without --timings
nothing is kept between runs. Exit status 1 if a kept program is slower.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

from readme_table import MODELS

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--threads", default="1")
    parser.add_argument("--time", default="5m")
    parser.add_argument("--timings")
    parser.add_argument("--opfuse", default=ROOT / "build/release/tools/opfuse/opfuse")
    options = parser.parse_args()
    gains, slower = [], False
    print("| model | kernels | schedules | search | kernels faster | as predicted | tuned | gain [95 %] | |\n|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for model in options.models.split(","):
            file = options.timings or pathlib.Path(folder) / f"{model}.json"
            command = [options.opfuse, "tune", f"zoo:{model}", "--time", options.time, "--threads", options.threads, "--timings", file, "--json"]
            done = json.loads(subprocess.run(list(map(str, command)), check=True, text=True, capture_output=True).stdout)
            ratio = done["tuned_over_untuned"]
            kept = done["kept"]
            gains.append(1 / ratio["estimate"] if kept else 1)
            slower |= kept and ratio["low"] > 1
            times = ["-", "-", "-"] if done["same"] else [f"{done['untuned_ms']:.2f} ms", f"{done['tuned_ms']:.2f} ms",
                                                          f"{1 / ratio['estimate']:.3f} [{1 / ratio['high']:.3f}, {1 / ratio['low']:.3f}]"]
            cells = [MODELS[model], done["kernels"], done["schedules"], f"{done['seconds']:.0f} s", len(done["changed"]), *times,
                     "same program" if done["same"] else "kept" if kept else "not kept"]
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)
    print(f"\ngeometric mean of the gain: {math.exp(sum(map(math.log, gains)) / len(gains)):.3f}")
    return int(slower)


if __name__ == "__main__":
    sys.exit(main())
