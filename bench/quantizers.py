#!/usr/bin/env python3
"""opfuse quantize beside ONNX Runtime's quantiser and NNCF: SQNR at the output, time per sample, peak memory.

    bench/quantizers.py [--opfuse PATH] [--models resnet50,vit_b_16,bert_base] [--samples 16] [--judge 8] [--json out.json]

Models are opfuse's built-in ones with random weights; samples are drawn here, those for judging with other seeds than those for
calibration. Every quantiser runs in a process of its own, whose processor time (model loading and compiling included, kernel
cache empty) and largest resident memory are taken; opfuse's memory stands beside what it may be: that of `opfuse run`, 2048 bins of 8 B a tensor, 64 MB. ONNX Runtime without graph optimisation computes what each file says. Needs numpy,
onnx, onnxruntime; a quantiser that is not installed has its row say so.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = "resnet50,vit_b_16,bert_base"
TRANSFORMERS = ("vit", "bert", "swin", "minilm")


def draw(path, seed):
    """One array by input: images of low frequencies and noise, tokens, a mask of ones."""
    import numpy
    import onnxruntime
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    random = numpy.random.default_rng(seed)
    feed = {}
    for given in session.get_inputs():
        shape = [size if isinstance(size, int) else 1 for size in given.shape]
        if "int" in given.type:
            table = 2 if "mask" in given.name or "type" in given.name else 1000
            low = 1 if "mask" in given.name else 0
            feed[given.name] = random.integers(low, max(table, low + 1), shape).astype("int64" if "64" in given.type else "int32")
        elif len(shape) == 4:
            y, x = numpy.mgrid[0:shape[2], 0:shape[3]] / shape[2]
            image = numpy.zeros(shape, numpy.float32)
            for _ in range(4):
                a, b, phase = random.uniform(-6, 6, 3)
                image += (random.normal(size=(*shape[:2], 1, 1)) * numpy.sin(2 * numpy.pi * (a * x + b * y) + phase)).astype(numpy.float32)
            feed[given.name] = image + 0.1 * random.standard_normal(shape).astype(numpy.float32)
        else:
            feed[given.name] = random.standard_normal(shape).astype(numpy.float32)
    return feed


# ---- one quantiser, in its own process: quantizers.py --child NAME MODEL OUT FOLDER ------------------------------------------

class SamplesIn:
    """Read one after another, as often as they are asked for."""

    def __init__(self, folder):
        self.paths = sorted(pathlib.Path(folder).glob("*.npz"))

    def __len__(self):
        return len(self.paths)

    def __iter__(self):
        import numpy
        return (dict(numpy.load(path)) for path in self.paths)


def quantise_with_ort(model, out, folder, method):
    from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.samples = iter(SamplesIn(folder))

        def get_next(self):
            return next(self.samples, None)

    prepared = str(out) + ".prepared.onnx"
    quant_pre_process(str(model), prepared)
    quantize_static(prepared, str(out), Reader(), quant_format=QuantFormat.QDQ, per_channel=True, activation_type=QuantType.QUInt8,
                    weight_type=QuantType.QInt8, calibrate_method=getattr(CalibrationMethod, method))
    os.remove(prepared)


def quantise_with_nncf(model, out, folder):
    import nncf
    import onnx
    samples = SamplesIn(folder)
    options = {"model_type": nncf.ModelType.TRANSFORMER} if any(word in str(model) for word in TRANSFORMERS) else {}
    made = nncf.quantize(onnx.load(str(model)), nncf.Dataset(samples), subset_size=len(samples), **options)
    onnx.save(made, str(out))


def child(arguments):
    name, model, out, folder = arguments
    if name.startswith("ort"):
        quantise_with_ort(model, out, folder, {"ort": "MinMax", "ort_entropy": "Entropy"}[name])
    else:
        quantise_with_nncf(model, out, folder)


# ---- the table ---------------------------------------------------------------------------------------------------------------

def contestants(opfuse):
    def own(*flags):
        return lambda model, out, folder: [str(opfuse), "quantize", str(model), "--calibrate", str(folder), "-o", str(out), "--compare-samples", "0", *flags]

    def other(name):
        return lambda model, out, folder: [sys.executable, __file__, "--child", name, str(model), str(out), str(folder)]

    return {"opfuse (cpu, mse)": own(), "opfuse (cpu, minmax)": own("--method", "minmax"),
            "opfuse (cpu, mse, bias correction)": own("--bias-correction"),
            "opfuse (onnxruntime)": own("--for", "onnxruntime"), "opfuse (cpu, all points)": own("--keep-float", "none"),
            "ONNX Runtime (MinMax)": other("ort"), "NNCF": other("nncf")}


def measured(command):
    """Seconds of processor time and MB of a process; its last words where it fails. Through a small process: a child's largest
    memory counts that of what forked it."""
    said = subprocess.run([sys.executable, "-I", __file__, "--measure", *command], stdout=subprocess.PIPE, text=True, check=True)
    return tuple(json.loads(said.stdout))


def measure(command):
    with tempfile.TemporaryDirectory(prefix="quantizers-cache-") as cache:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "XDG_CACHE_HOME": cache})
        words = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = usage.ru_utime + usage.ru_stime
    lines = words.strip().splitlines() or ["exit %d" % process.returncode]
    problem = "" if process.returncode == 0 else next((line for line in lines if line.startswith("error")), lines[-1])
    print(json.dumps([seconds, usage.ru_maxrss / 1024, problem]))


BINS, BYTES, ALLOWED = 2048, 8, 64  # what statistics of a tensor hold, and MB beside


def bound_of(run_mb, out):
    """MB that quantising may take: what `opfuse run` takes, statistics of each tensor with a pair, ALLOWED."""
    import onnx
    pairs = sum(node.op_type == "QuantizeLinear" for node in onnx.load(str(out), load_external_data=False).graph.node)
    return run_mb + pairs * BINS * BYTES / 2**20 + ALLOWED


def run_model(path, feeds):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return [session.run(None, feed)[0] for feed in feeds]


def sqnr(want, got):
    import numpy
    signal = sum(float((w.astype(numpy.float64) ** 2).sum()) for w in want)
    noise = sum(float(((w.astype(numpy.float64) - g) ** 2).sum()) for w, g in zip(want, got))
    return 10 * numpy.log10(signal / noise) if noise > 0 else float("inf")


def table_of(name, options, folder):
    import numpy
    model = folder / f"{name}.onnx"
    subprocess.run([str(options.opfuse), "zoo", name, "-o", str(model)], check=True, capture_output=True)
    data = folder / f"{name}.calibration"
    data.mkdir()
    for seed in range(options.samples):
        numpy.savez(data / f"{seed:04}.npz", **draw(model, seed))
    heldout = [draw(model, 100_000 + seed) for seed in range(options.judge)]
    want = run_model(model, heldout)
    _, run_mb, _ = measured([str(options.opfuse), "run", str(model)])
    rows = []
    for title, command in contestants(options.opfuse).items():
        if options.only and not any(word in title for word in options.only.split(",")):
            continue
        out = folder / "quantised.onnx"
        out.unlink(missing_ok=True)
        seconds, megabytes, problem = measured(command(model, out, data))
        row = {"model": name, "quantiser": title, "seconds": seconds, "seconds_per_sample": seconds / options.samples,
               "peak_mb": megabytes, "run_mb": run_mb, "problem": problem}
        if not problem and title.startswith("opfuse"):
            row["bound_mb"] = bound_of(run_mb, out)
        if not problem:
            row["sqnr"] = float(sqnr(want, run_model(out, heldout)))
            row["file_mb"] = out.stat().st_size / 1e6
        rows.append(row)
        print("| {model} | {quantiser} | {0} | {seconds:.1f} s | {seconds_per_sample:.2f} s | {peak_mb:.0f} MB{2} | {1} |".format(
            f"{row['sqnr']:.1f} dB" if not problem else problem[:60], f"{row['file_mb']:.0f} MB" if not problem else "",
            f" of {row['bound_mb']:.0f}" if "bound_mb" in row else "", **row), flush=True)
    return rows


def main():
    if sys.argv[1:2] == ["--child"]:
        return child(sys.argv[2:])
    if sys.argv[1:2] == ["--measure"]:
        return measure(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--opfuse", type=pathlib.Path, default=ROOT / "build/release/tools/opfuse/opfuse")
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--samples", type=int, default=16)
    parser.add_argument("--judge", type=int, default=8)
    parser.add_argument("--only", default="", help="rows whose name has one of these words")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    print(f"{options.samples} samples to calibrate, {options.judge} others to judge; processors: {os.cpu_count()}\n")
    print("| model | quantiser | SQNR | time | per sample | peak memory | file |\n|---|---|---|---|---|---|---|")
    rows = []
    with tempfile.TemporaryDirectory(prefix="quantizers-") as folder:
        for name in options.models.split(","):
            rows += table_of(name, options, pathlib.Path(folder))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0 if all(not row["problem"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
