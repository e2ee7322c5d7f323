#!/usr/bin/env python3
"""What an export by opfuse costs other runtimes: the original model, the export as functions and the flat export in turns.

    bench/install_peers.sh
    bench/export_cost.py MODEL.onnx ... [--threads 2] [--rounds 8] [--seconds 0.4] [--opfuse PROGRAM] [--check-only]

For each model and runtime it prints the medians, their ratio to the original and whether the outputs have the same bits; the
row "again" is the original a second time, so its ratio is what the machine's noise alone gives. onnx.checker judges both files.
Exit status: 0 all is well, 1 a file was refused, values differ beyond 1e-5 of max abs, or a ratio of medians is above 1.03 and
above that of "again". OpenVINO (2026.4) does not load functions of the model's own: it reads the flat form, and the functions after
onnx.inliner put them in place ("inlined").
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

from peerlib import environment

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT, TOLERANCE = 1.03, 1e-5


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("models", nargs="+", type=pathlib.Path, metavar="MODEL.onnx")
    add("--threads", type=int, default=2)
    add("--rounds", type=int, default=8, help="turns per file")
    add("--seconds", type=float, default=0.4, help="length of a turn")
    add("--opfuse", default=str(ROOT / "build" / "release" / "tools" / "opfuse" / "opfuse"), metavar="PROGRAM")
    add("--check-only", action="store_true", help="check and compare, take no times")
    return parser.parse_args()


def exports(model, folder, program):
    """{form: path}; both files pass onnx.checker."""
    import onnx
    import onnx.inliner
    files = {"original": model, "again": model}
    for form, flags in (("functions", []), ("flat", ["--flatten"])):
        files[form] = pathlib.Path(folder) / f"{model.stem}.{form}.onnx"
        subprocess.run([program, "fuse", str(model), "-o", str(files[form]), *flags], check=True, capture_output=True)
        onnx.checker.check_model(str(files[form]), full_check=True)
    files["inlined"] = pathlib.Path(folder) / f"{model.stem}.inlined.onnx"
    onnx.save(onnx.inliner.inline_local_functions(onnx.load(files["functions"])), files["inlined"])
    return files


def worst_difference(outputs, reference):
    """(equal bits, largest error relative to max abs)"""
    import numpy as np
    worst, same = 0.0, True
    for name, want in reference.items():
        got = outputs[name]
        same = same and got.shape == want.shape and got.tobytes() == want.tobytes()
        scale = float(np.abs(want).max()) or 1.0
        worst = max(worst, float(np.abs(got.astype("f8") - want.astype("f8")).max()) / scale)
    return same, worst


def in_turns(engines, rounds, seconds):
    """Medians of milliseconds, every engine once per round, the order reversed every other round."""
    import numpy as np
    times = {form: [] for form in engines}
    counts = {form: max(3, int(seconds * 1e9 / np.median(engine.run(3)))) for form, engine in engines.items()}
    for turn in range(rounds):
        for form in list(engines)[::-1 if turn % 2 else 1]:
            engines[form].run(1)
            times[form].append(np.median(engines[form].run(counts[form])) * 1e-6)
    return {form: float(np.median(values)) for form, values in times.items()}


def run_engine(kind, files, feeds, options):
    engines = {}
    for form, path in files.items():
        engines[form] = kind()
        engines[form].start(path, feeds, options.threads)
    reference, ok = engines["original"].outputs(), True
    medians = {} if options.check_only else in_turns(engines, options.rounds, options.seconds)
    for form, engine in engines.items():
        if form == "original" or (form == "again" and not medians):
            continue
        same, error = worst_difference(engine.outputs(), reference)
        ratio = medians[form] / medians["original"] if medians else 1.0
        noise = medians["again"] / medians["original"] if medians else 1.0
        good = error <= TOLERANCE and (ratio <= max(LIMIT, noise) or form == "again")
        ok = ok and good
        cost = f"{medians['original']:9.3f} ms -> {medians[form]:9.3f} ms  ratio {ratio:.3f}  " if medians else ""
        bits = "same bits" if same else f"differs by {error:.1e} of max abs"
        print(f"  {kind.name:<13} {form:<10} {cost}{bits}  {'ok' if good else 'FAILED'}", flush=True)
    for engine in engines.values():
        engine.stop()
    return ok


def main():
    options = arguments()
    import onnx
    from peerlib import inputs
    from peerlib.contestants import OnnxRuntime, OpenVino
    ok = True
    for model in options.models:
        proto = onnx.load(model)
        shapes = {value.name: inputs.concrete_shape(value, 1, {}) for value in inputs.graph_inputs(proto)}
        feeds = inputs.draw(proto, shapes, 0)
        with tempfile.TemporaryDirectory(prefix="opfuse-export-") as folder:
            files = exports(model, folder, options.opfuse)
            calls = onnx.load(files["functions"], load_external_data=False)
            print(f"{model.stem}: {len(calls.functions)} functions, {len(calls.graph.node)} nodes; onnx.checker passes")
            for engine, left_out in ((OnnxRuntime, "inlined"), (OpenVino, "functions")):
                forms = {form: path for form, path in files.items() if form != left_out}
                ok = run_engine(engine, forms, feeds, options) and ok
    return 0 if ok else 1


if __name__ == "__main__":
    environment.enter_virtual_environment("export_cost")
    sys.exit(main())
