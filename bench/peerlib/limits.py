"""The FMA rate of this machine, from the program bench/limits.cpp."""
import json
import pathlib
import subprocess

import numpy as np


def build(source, folder):
    """Compile bench/limits.cpp into `folder` (used when the project has not been built)."""
    program = pathlib.Path(folder) / "limits"
    subprocess.run(["c++", "-std=c++20", "-O2", str(source), "-o", str(program), "-pthread"], check=True)
    return program


class FmaRate:
    """Rates in GFLOP/s, measured again and again over a run; rows fma_512 and fma_256, as far as the processor has them."""

    def __init__(self, program):
        self.program, self.samples = program, {}

    def measure(self, threads):
        command = [str(self.program), "--only", "fma_", "--threads", str(threads), "--seconds", "0.25", "--json"]
        rows = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for name, row in rows.items():
            self.samples.setdefault(name, []).append(row[str(threads)])

    def rate(self, row, pick):
        """`pick` is np.median or np.max; a processor without 512-bit registers falls back to its widest row."""
        values = self.samples.get(row) or self.samples.get("fma_256")
        return float(pick(values)) if values else float("nan")

    def as_json(self):
        return {name: {"median": float(np.median(v)), "best": max(v)} for name, v in self.samples.items()}
