"""The engines under test, each behind the same five calls.

    start(path, feeds, threads) -> load milliseconds     run(count) -> array of nanoseconds, one per run
    outputs() -> {name: array}                           images(seconds) -> runs per second of all contexts together
    stop()

Peers run in this process with inputs and outputs bound once, so that a timed call neither allocates nor copies at the
boundary. opfuse runs in a child process that times itself through the public API. Python costs a peer 2 to 6 microseconds
per call; that is in its numbers.
"""
import pathlib
import subprocess
import tempfile
import threading
import time

import numpy as np
import onnxruntime
import openvino


TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i8": np.int8, "u8": np.uint8, "i32": np.int32,
         "i64": np.int64, "bool": np.bool_}


class Unavailable(Exception):
    """The contestant cannot take part; the text says why and what to do."""


def timed_runs(call, count):
    nanoseconds = np.empty(count)
    for i in range(count):
        start = time.perf_counter_ns()
        call()
        nanoseconds[i] = time.perf_counter_ns() - start
    return nanoseconds


def images_per_second(calls, seconds):
    """Every call in a thread of its own, over and over, for about `seconds`."""
    done = [0] * len(calls)
    start = time.perf_counter()

    def work(i):
        while time.perf_counter() - start < seconds:
            calls[i]()
            done[i] += 1

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.perf_counter() - start)


class InProcess:
    """What the two peers share: a list of calls, one per context, over bound buffers."""

    def start(self, path, feeds, threads):
        begin = time.perf_counter()
        self.load(str(path), threads)
        elapsed = (time.perf_counter() - begin) * 1e3
        bound = [self.bind(feeds) for _ in range(self.contexts)]
        self.calls = [call for call, _ in bound]
        self.calls[0]()
        self.results = bound[0][1]
        return elapsed

    def run(self, count):
        return timed_runs(self.calls[0], count)

    def images(self, seconds):
        return images_per_second(self.calls, seconds)

    def outputs(self):
        return {name: array.copy() for name, array in self.results.items()}

    def stop(self):
        self.calls = self.results = None


class OnnxRuntime(InProcess):
    name = "ONNX Runtime"
    fma = "fma_512"

    def __init__(self, contexts=1, optimized=True):
        self.contexts = contexts
        self.version = onnxruntime.__version__
        self.level = "ORT_ENABLE_ALL" if optimized else "ORT_DISABLE_ALL"
        if not optimized:
            self.name = "ONNX Runtime, no optimisation"
        self.settings = (f"graph optimisation {self.level}, sequential, spinning threads (default), memory pattern and arena on, "
                         "IO binding with preallocated outputs")

    def load(self, path, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, self.level)
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def bind(self, feeds):
        binding = self.session.io_binding()
        for name, array in feeds.items():
            binding.bind_cpu_input(name, array)
        names = [output.name for output in self.session.get_outputs()]
        shapes = self.session.run(names, feeds)  # the shapes of the outputs, also where the model leaves them open
        results = {name: np.empty_like(value) for name, value in zip(names, shapes)}
        for name, array in results.items():
            binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        keep = (binding, feeds, results)
        return (lambda: self.session.run_with_iobinding(keep[0])), results

    def stop(self):
        super().stop()
        self.session = None


class OpenVino(InProcess):
    name = "OpenVINO"
    fma = "fma_512"

    def __init__(self, contexts=1):
        self.contexts = contexts
        self.version = openvino.__version__.split("-")[0]
        hint = "LATENCY" if contexts == 1 else "THROUGHPUT"
        self.properties = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": hint, "NUM_STREAMS": contexts}
        self.settings = f"f32 pinned, hint {hint}, {contexts} stream(s), preallocated shared input and output tensors"

    def load(self, path, threads):
        properties = {**self.properties, "INFERENCE_NUM_THREADS": threads * self.contexts}
        self.model = openvino.Core().compile_model(path, "CPU", properties)

    def bind(self, feeds):
        request = self.model.create_infer_request()
        for name, array in feeds.items():
            request.set_tensor(name, openvino.Tensor(array, shared_memory=True))
        request.infer()
        results = {}
        for port in self.model.outputs:
            array = np.empty_like(request.get_tensor(port).data)
            request.set_tensor(port, openvino.Tensor(array, shared_memory=True))
            results.update({name: array for name in port.get_names()})  # the ONNX name is among them
        keep = (request, feeds, results)  # the request does not own the arrays behind its tensors
        return (lambda: keep[0].infer(share_outputs=True)), results

    def stop(self):
        super().stop()
        self.model = None


class Opfuse:
    """The child process bench/opfuse_turns.cpp; see there for the protocol."""
    name = "opfuse"

    def __init__(self, program, target=None, contexts=1, fused=True, exact=False):
        self.program, self.target, self.contexts = program, target, contexts
        self.flags = ([] if fused else ["--unfused"]) + (["--exact"] if exact else [])
        if self.flags:
            self.name = "opfuse, " + ", ".join(flag[2:] for flag in self.flags)
        self.version, self.process = "", None
        self.fma = "fma_256" if target and "avx2" in target else "fma_512"
        self.settings = f"target {target or 'host'}, public API, caller's buffers bound, {contexts} context(s)"

    def start(self, path, feeds, threads):
        if self.program is None or not pathlib.Path(self.program).exists():
            raise Unavailable(f"the program {self.program or 'opfuse_turns'} is not there: build it (./dev build) or name "
                              "it with --opfuse")
        command = [str(self.program), str(path), "--threads", str(threads), "--contexts", str(self.contexts)]
        command += ["--target", self.target] if self.target else []
        command += self.flags
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.version, milliseconds = self.answer()
        self.folder = tempfile.TemporaryDirectory(prefix="opfuse-peers-")
        for i, (name, array) in enumerate(feeds.items()):
            file = pathlib.Path(self.folder.name) / f"input{i}"
            array.tofile(file)
            kind = next((kind for kind, dtype in TYPES.items() if array.dtype == dtype), str(array.dtype))
            self.ask("input", name, kind, ",".join(map(str, array.shape)), file)
        self.ask("run", 1)
        return float(milliseconds)

    def ask(self, *words):
        """Send one line of tab-separated words; the fields of the answer."""
        print(*words, sep="\t", file=self.process.stdin, flush=True)
        return self.answer()

    def answer(self):
        """The fields behind `ok`; `error TEXT` and a child that died are exceptions."""
        line = self.process.stdout.readline().rstrip("\n")
        status, *fields = line.split("\t")
        if status != "ok":
            raise RuntimeError(line.removeprefix("error\t") or f"opfuse_turns ended, status {self.process.wait()}")
        return fields

    def run(self, count):
        return np.array(self.ask("run", count), dtype=float)

    def images(self, seconds):
        count, nanoseconds = self.ask("images", seconds)
        return int(count) / float(nanoseconds) * 1e9

    def outputs(self):
        results = {}
        for i, name in enumerate(self.ask("outputs")):
            file = pathlib.Path(self.folder.name) / f"output{i}"
            kind, sizes = self.ask("output", name, file)
            results[name] = np.fromfile(file, TYPES[kind]).reshape([int(size) for size in sizes.split(",") if size])
        return results

    def stop(self):
        if self.process is None:
            return
        self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process = None
