#!/usr/bin/env python3
"""Models that were once wrong, in a folder: each compiled for every target of this host and with flags, run at several
sizes, against ONNX Runtime; freed memory is filled, so reads of it show.

    run_repro.py FOLDER [--opfuse BINARY] [--only NAME,...] [-v]

Open dimensions stay open in the .opf and take the sizes of SIZES; where ONNX Runtime refuses a size, a run has to as well
(exit status 3 or 4). A file NAME_x.npy is the input x of NAME.onnx. Exit status 1 where something is wrong, 77 without
onnx and onnxruntime.
"""
import argparse
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
TARGETS = (["--target", "cpu:avx512"], ["--target", "cpu:avx2"], ["--target", "cpu:baseline"], ["--exact"],
           ["--no-chains"])
COUNTS = tuple(range(1, 8))
SIZES = {
    "dyn_broadcast": [{"N": n} for n in COUNTS],
    "d_bmm": [{"N": n} for n in COUNTS],
    "d_where": [{"N": n} for n in COUNTS],
    "d_gather": [{"N": n} for n in COUNTS],
    "d_concat": [{"N": n, "M": m} for n, m in itertools.product((1, 2, 5), repeat=2)],
    "d_conv": [{"N": n, "C": c, "H": h, "W": w} for n in (1, 3) for c in (1, 2, 3, 4)
               for h, w in ((1, 1), (5, 7), (8, 8), (2, 9))],
    "d_avgceil_pad": [{"W": w} for w in range(1, 14)],
    "maxpool_ceil_open": [{"N": n, "H": h, "W": h} for n in (1, 2) for h in (112, 224, 111, 1, 2, 3, 17)],
    "dyn_resize_scales_linear": [{"batch": n} for n in COUNTS],
    "dyn_resize_sizes_nearest": [{"batch": n} for n in COUNTS],
}
FIXED = {"affine_grid_2d_expanded": {"size": [2, 3, 5, 6]}, "segv_min": {"size": [2, 3, 5, 6]}}  # they decide shapes
CANCELS = {"b11_conv_clip_bigk": 1e-3}  # sums of thousands, clipped to ones
INFINITE = {"identity": ("x", [1, 1, 1], "id_expect_inf.npy")}  # no finite result is that


class Folder:
    def __init__(self, options):
        self.options, self.wrong, self.runs = options, 0, 0
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="opfuse-repro-"))

    def call(self, *arguments):
        return subprocess.run([self.options.opfuse, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                              env={**os.environ, "MALLOC_PERTURB_": "129", "MALLOC_CONF": "junk:true"})

    def say(self, ok, what, detail=""):
        self.wrong += not ok
        if not ok or self.options.verbose:
            print(("ok     " if ok else "WRONG  ") + what, detail.strip().replace("\n", " | ")[:600] if not ok else "",
                  flush=True)

    def expect_exit(self, codes, *arguments):
        done = self.call(*arguments)
        self.say(done.returncode in codes, " ".join(map(str, arguments)), f"exit {done.returncode} {done.stderr}")
        return done.returncode == 0

    def model(self, path):
        import onnx
        import onnxruntime
        name, model = path.stem, onnx.load(str(path))
        weights = {tensor.name for tensor in model.graph.initializer}
        inputs = [value for value in model.graph.input if value.name not in weights]
        session_options = onnxruntime.SessionOptions()
        session_options.log_severity_level = 4
        session_options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            session = onnxruntime.InferenceSession(str(path), session_options, providers=["CPUExecutionProvider"])
        except Exception as error:  # it has exceptions of its own for every kind
            session = None
            print(f"{name}: ONNX Runtime does not load it ({str(error)[:80]}); runs are not compared")
        fixed = [word for key, value in FIXED.get(name, {}).items() for word in ("--input", f"{key}={value}")]
        self.expect_exit([0], "inspect", path)
        for verb in ("check", "explain", "compare"):
            self.expect_exit([0], verb, path, *[word.replace(" ", "") for word in fixed])
        sizes = SIZES.get(name, [{}])
        opened = [word for symbol in sizes[0] for word in ("--dim", f"{symbol}=any")]
        program = self.work / "m.opf"
        for flags in TARGETS:
            made = self.expect_exit([0], "compile", path, "-o", program, *opened, *flags,
                                    *[word.replace(" ", "") for word in fixed])
            for number, size in enumerate(sizes if made else []):
                self.run(path, program, session, inputs, model.graph.output, size, number, " ".join(flags))
        if name in INFINITE:
            value, numbers, expected = INFINITE[name]
            self.expect_exit([1], "run", program, "--input", f"{value}={numbers}".replace(" ", ""), "--expect",
                             f"{model.graph.output[0].name}={path.parent / expected}")

    def run(self, path, program, session, inputs, outputs, size, number, flags):
        import numpy
        import onnx
        draw = numpy.random.default_rng(number)
        arrays, given = {}, []
        for value in inputs:
            tensor = value.type.tensor_type
            shape = [size.get(dim.dim_param, dim.dim_value) for dim in tensor.shape.dim]
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            file = path.parent / f"{path.stem}_{value.name}.npy"
            array = numpy.array(FIXED[path.stem][value.name]) if value.name in FIXED.get(path.stem, {}) else \
                numpy.load(file) if file.exists() and number == 0 else 3 * draw.standard_normal(shape)
            if list(array.shape) != shape:
                array = 3 * draw.standard_normal(shape)
            arrays[value.name] = array.astype(dtype)
            if value.name not in FIXED.get(path.stem, {}):
                numpy.save(self.work / f"{value.name}.npy", arrays[value.name])
                given += ["--input", f"{value.name}={self.work / value.name}.npy"]
        self.runs += 1
        what = f"{path.stem} {flags} {size or ''}"
        expected = None
        if session:
            try:
                expected = session.run(None, arrays)
            except Exception:
                pass
        done = self.call("run", program, *given, "--output-dir", self.work / "out")
        if expected is None:
            return self.say(session is None or done.returncode in (3, 4), f"{what}: sizes that do not fit",
                            f"exit {done.returncode} {done.stderr}")
        if done.returncode:
            return self.say(False, what, f"exit {done.returncode} {done.stderr}")
        for output, right in zip(outputs, expected):
            got = numpy.load(self.work / "out" / f"{output.name}.npy")
            same_type = got.shape == right.shape and got.dtype == right.dtype
            largest = max(1.0, float(numpy.abs(right).max(initial=0)))
            off = float(numpy.abs(got.astype("f8") - right.astype("f8")).max(initial=0)) / largest if same_type else 0
            self.say(same_type and off <= CANCELS.get(path.stem, 2e-5), f"{what}: {output.name}",
                     f"{got.dtype}{got.shape} for {right.dtype}{right.shape}, off by {off:.1e} of the largest")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--opfuse", default=str(ROOT / "build/release/tools/opfuse/opfuse"))
    parser.add_argument("--only", default="", metavar="NAME,...")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    try:
        import numpy  # noqa: F401
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as missing:
        print(missing)
        return 77
    paths = [p for p in sorted(options.folder.glob("*.onnx")) if not options.only or p.stem in options.only.split(",")]
    folder = Folder(options)
    for path in paths:
        folder.model(path)
    print(f"{len(paths)} models, {folder.runs} runs, {folder.wrong} wrong")
    return 1 if folder.wrong or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
