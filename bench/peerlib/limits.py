"""The FMA rate of this machine, from the program bench/limits.cpp."""
import json
import pathlib
import subprocess

import numpy as np


def build(source, folder):
    """Compile bench/limits.cpp into `folder` (used when the project has not been built)."""
    program = pathlib.Path(folder) / "limits"
    library = source.parent.parent / "src"
    subprocess.run(["c++", "-std=c++20", "-O2", "-I", str(library), str(source),
                    str(library / "profile" / "passes_per_second.cpp"), "-o", str(program), "-pthread"], check=True)
    return program


class FmaRate:
    """Rates in GFLOP/s of rows fma_512 and fma_256 (as far as the processor has them), measured again and again.

    The median is of the present case, so that it shares the machine's mood with the runs beside it; the best is of the whole
    run, because a limit that was reached once is reachable.
    """

    def __init__(self, program, processors):
        self.program, self.processors = program, processors
        self.present, self.best = {}, {}

    def begin_case(self):
        self.present = {}

    def measure(self):
        command = [str(self.program), "--only", "fma_", "--threads", str(self.processors), "--seconds", "0.25", "--json"]
        rows = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for name, row in rows.items():
            rate = row[str(self.processors)]
            self.present.setdefault(name, []).append(rate)
            self.best[name] = max(rate, self.best.get(name, 0.0))

    def widest(self, row):
        """A processor without 512-bit registers has its limit in the 256-bit row."""
        return row if row in self.best else "fma_256"

    def median_rate(self, row):
        return float(np.median(self.present[self.widest(row)]))

    def best_rate(self, row):
        return self.best[self.widest(row)]

    def as_json(self):
        return {name: {"median": self.median_rate(name), "best": self.best[name]} for name in self.present}
