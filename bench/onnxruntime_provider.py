#!/usr/bin/env python3
"""What ONNX Runtime costs around opfuse: session.run with the provider beside Executable.run, in turns, and ONNX Runtime's own kernels for comparison.

    PYTHONPATH=FOLDER_OF_opfuse:FOLDER_OF_onnxruntime_ep_opfuse python bench/onnxruntime_provider.py resnet50 mobilenet_v2 [--threads 1] [--seconds 6]

Bar: no slower than opfuse alone by more than 2 % + 20 us (median). Outputs are compared before anything is timed. Exit status 1 where the bar is missed.
"""
import argparse
import statistics
import sys
import tempfile
import time

import numpy
import onnxruntime
import onnxruntime_ep_opfuse
import opfuse


def median_turns(contestants, seconds, turn=0.06):
    """Seconds of a call, by contestant. Turns of 60 ms; the first third is not counted: threads of the others still spin."""
    times = [[] for _ in contestants]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for call, mine in zip(contestants, times):
            start, runs = time.perf_counter(), 0
            while (begin := time.perf_counter()) < start + turn or runs < 3:
                call()
                runs += 1
                if begin > start + turn / 3:
                    mine.append(time.perf_counter() - begin)
    return [statistics.median(mine) for mine in times]


def measure(model, options):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/m.onnx"
        opfuse.Model.zoo(model).save(path, flatten=True)
        executable = opfuse.compile(opfuse.load(path), threads=options.threads)
        context = executable.create_context(threads=options.threads)
        around = onnxruntime.SessionOptions()
        around.intra_op_num_threads = 1  # all nodes are opfuse's: no second pool
        session = onnxruntime.InferenceSession(path, onnxruntime_ep_opfuse.session_options(around, threads=options.threads))
        plain = onnxruntime.SessionOptions()
        plain.intra_op_num_threads = options.threads
        own = onnxruntime.InferenceSession(path, plain, providers=["CPUExecutionProvider"])
        info = session.get_inputs()[0]
        feeds = {info.name: numpy.random.default_rng(0).random(info.shape, numpy.float32)}
        result = executable.outputs()[0].name

        def alone():
            context.bind(info.name, feeds[info.name])
            context.run()
            return context.output(result)
        (inside,) = session.run(None, feeds)
        difference = abs(alone() - inside).max() / abs(inside).max()  # ONNX Runtime folds BatchNorm before it asks the provider
        if difference > 1e-3:
            sys.exit(f"{model}: outputs differ by {difference:.1g} of their maximum")
        a, b, c = median_turns([alone, lambda: session.run(None, feeds), lambda: own.run(None, feeds)], options.seconds)
        met = b <= a * 1.02 + 20e-6
        print(f"{model:16} opfuse alone {a * 1e3:8.3f} ms   in ONNX Runtime {b * 1e3:8.3f} ms ({(b - a) * 1e6:+6.0f} us, {b / a:.3f}x)   "
              f"ONNX Runtime's kernels {c * 1e3:8.3f} ms   bar {'met' if met else 'MISSED'}", flush=True)
        return met


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=6)
    options = parser.parse_args()
    print(f"opfuse {opfuse.__version__}, ONNX Runtime {onnxruntime.__version__}, {options.threads} thread(s)")
    return int(not all([measure(model, options) for model in options.models]))


if __name__ == "__main__":
    sys.exit(main())
