#!/usr/bin/env python3
"""Holds ONNX Runtime to what the interpreter expects of random graphs.

    fuzz_models --models 200 --dump DIR; onnxruntime_check.py DIR

Each DIR/seedN has model.onnx, in_NAME.npy, out_NAME.npy and tolerance_NAME.npy. A model that ONNX Runtime does not load or run
is counted with its reason; a result outside the tolerances is a finding: the interpreter, the writer or ONNX Runtime is wrong.
"""
import collections
import pathlib
import re
import sys

import numpy
import onnxruntime


def session_of(path):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # its own rewrites are not the question
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def outside(name, got, folder):
    want, tolerance = numpy.load(folder / f"out_{name}.npy"), numpy.load(folder / f"tolerance_{name}.npy")
    if got.shape != want.shape:
        return f"{name} has shape {list(got.shape)}, expected {list(want.shape)}"
    with numpy.errstate(all="ignore"):
        far = ~((numpy.abs(got.astype(numpy.float64) - want) <= 4 * tolerance + 1e-6) | (got == want) | numpy.isinf(tolerance))
    if not far.any():
        return None
    at = tuple(numpy.argwhere(far)[0]) if far.ndim else ()
    return f"{name}{list(map(int, at))} is {got[at]:.9g}, expected {want[at]:.9g} +- {tolerance[at]:.2g} ({int(far.sum())} of {far.size})"


def check(folder):
    try:
        session = session_of(str(folder / "model.onnx"))
        feeds = {i.name: numpy.load(folder / f"in_{i.name}.npy") for i in session.get_inputs()}
        results = session.run(None, feeds)
    except Exception as error:  # noqa: BLE001: every refusal of the peer is a reason
        return "not run", re.sub(r"'[^']*'|\(v?\w+\d+\)|node name: \S+", "...", str(error).split("\n")[0])[:110]
    problems = [p for p in (outside(o.name, r, folder) for o, r in zip(session.get_outputs(), results)) if p]
    return ("different", problems[0]) if problems else ("equal", "")


def main():
    counts, reasons = collections.Counter(), collections.Counter()
    for folder in sorted(pathlib.Path(sys.argv[1]).glob("seed*"), key=lambda p: int(p.name[4:])):
        verdict, detail = check(folder)
        counts[verdict] += 1
        if verdict == "different":
            print(f"{folder.name}: {detail}", flush=True)
        elif detail:
            reasons[detail] += 1
    print(dict(counts))
    for reason, count in reasons.most_common():
        print(f"  {count} not run: {reason}")
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
