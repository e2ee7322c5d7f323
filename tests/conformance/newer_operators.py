#!/usr/bin/env python3
"""ONNX's own node cases of operators that are newer than Debian's libonnx-testdata, minted by the Python package onnx.

    newer_operators.py OPFUSE [OPERATOR...]

Every case runs in the interpreter and compiled. What opfuse refuses must name a feature of the list below; anything else
that fails, fails the script. Without the package (onnx >= 1.19) it exits 77.
"""
import pathlib
import subprocess
import sys
import tempfile

OPERATORS = ["Attention", "RMSNormalization", "RotaryEmbedding"]
# Part of the error's text -> why opfuse does not run the case.
REFUSED = {
    "nonpad_kv_seqlen": "caches outside the operator",
    "left_window_size": "sliding windows (opset 25)",
    "right_window_size": "sliding windows (opset 25)",
}


def cases(operators):
    try:
        from onnx.backend.test.case.node import collect_testcases
    except ImportError:
        sys.exit(77)
    seen = set()
    for operator in operators:
        for case in collect_testcases(operator):
            own = case.model is not None and operator in {n.op_type for n in case.model.graph.node}
            if own and case.name not in seen:  # not the variants that are written as function bodies
                seen.add(case.name)
                yield case


def run(opfuse, case, folder, reference):
    import numpy
    import onnx

    model = folder / "model.onnx"
    onnx.save(case.model, model)
    inputs, outputs = case.data_sets[0]
    command = [opfuse, "run", str(model)]
    command += ["--reference"] if reference else ["--exact", "--no-cache", "--allow-reference"]
    half = any(a.dtype.itemsize == 2 for a in outputs)
    command += ["--rtol", "2e-2" if half else "1e-4", "--atol", "1e-2" if half else "1e-5"]
    for flag, infos, arrays in (("--input", case.model.graph.input, inputs), ("--expect", case.model.graph.output, outputs)):
        for info, array in zip(infos, arrays):
            path = folder / f"{flag[2:]}_{len(command)}.pb"
            path.write_bytes(onnx.numpy_helper.from_array(numpy.asarray(array), info.name).SerializeToString())
            command += [flag, f"{info.name}={path}"]
    result = subprocess.run(command, capture_output=True, text=True)
    return result.returncode, result.stdout + result.stderr


def main():
    opfuse, operators = sys.argv[1], sys.argv[2:] or OPERATORS
    passed, refused, failed = 0, 0, []
    for case in cases(operators):
        for reference in (True, False):
            with tempfile.TemporaryDirectory() as folder:
                code, text = run(opfuse, case, pathlib.Path(folder), reference)
            if code == 0:
                passed += 1
            elif reference and any(part in text for part in REFUSED):
                refused += 1
                break  # an operator that is not read is not compiled either
            else:
                failed.append((case.name, "interpreter" if reference else "compiled", text))
    for name, how, text in failed:
        print(f"FAILED {name} ({how})\n  " + "\n  ".join(text.strip().splitlines()[-6:]))
    print(f"{passed} runs passed, {refused} cases refused as stated, {len(failed)} runs failed")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
