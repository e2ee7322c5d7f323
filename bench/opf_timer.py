"""Compiled models timed in this process through the C API, with inputs drawn once: no compiler, no process for each run.

    a, b = Program(lib, "joined.opf"), Program(lib, "apart.opf")
    times = in_turns([a, b], rounds=5, seconds=0.01)      # least microseconds of each
    difference(a, b)                                      # of the outputs, of their max
"""
import ctypes
import math
import mmap
import pathlib
import platform
import random
import struct
import time

# opfuse_type -> struct code and bytes, of the types whose inputs are drawn
KINDS = {0: ("f", 4), 1: ("d", 8), 4: ("b", 1), 5: ("B", 1), 8: ("i", 4), 10: ("q", 8), 12: ("B", 1)}


COMPARED = 20_000


def flush_subnormals():
    """This thread takes subnormal numbers for 0, where it knows how (x86). Drawn weights let the data of deep models with gates
    shrink below 2^-126, where an addition takes a hundred cycles: the same product then takes 9 us in one layer and 115 in another."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"\x0f\xae\x17\xc3")  # ldmxcsr [rdi]; ret
    mask_all, flush, zeros = 0x1F80, 0x8000, 0x40
    load = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    load(ctypes.addressof(ctypes.c_uint32(mask_all | flush | zeros)))


class Array(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("type", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p)]


class TensorInfo(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("type", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64))]


class ContextOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("threads", ctypes.c_int32), ("reserved", ctypes.c_int32),
                ("device", ctypes.c_int32), ("device_results", ctypes.c_int32)]


def library_beside(opfuse):
    """libopfuse_runtime.so of the build that has this command."""
    for folder in pathlib.Path(opfuse).resolve().parents:
        found = folder / "lib" / "libopfuse_runtime.so"
        if found.exists():
            return ctypes.CDLL(str(found))
    raise SystemExit(f"no lib/libopfuse_runtime.so above {opfuse}: build it (target opfuse_runtime)")


DRAWN = 8191  # values, then the same again: a prime, so that rows differ


def drawn(kind, count, generator):
    code, size = KINDS[kind]
    values = [generator.gauss(0, 1) if code in "fd" else generator.randrange(2) for _ in range(min(count, DRAWN))]
    period = struct.pack(f"{len(values)}{code}", *values)
    return ctypes.create_string_buffer((period * (count // max(len(values), 1) + 1))[:count * size])


class Program:
    def __init__(self, library, path, threads=1, seed=0):
        self.library, self.arrays = library, []
        library.opfuse_last_error.restype = ctypes.c_char_p
        library.opfuse_input_count.restype = library.opfuse_output_count.restype = ctypes.c_size_t
        executable, self.context = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("opfuse_load", str(path).encode(), ctypes.byref(executable))
        options = ContextOptions(ctypes.sizeof(ContextOptions), threads, 0, 0, 0)
        self.call("opfuse_context_create", executable, ctypes.byref(options), ctypes.byref(self.context))
        self.outputs = [self.info("opfuse_output_info", executable, i).name
                        for i in range(library.opfuse_output_count(executable))]
        generator = random.Random(seed)
        for i in range(library.opfuse_input_count(executable)):
            info = self.info("opfuse_input_info", executable, i)
            data = drawn(info.type, math.prod(info.shape[d] for d in range(info.rank)), generator)
            self.arrays.append(data)
            array = Array(ctypes.sizeof(Array), info.type, info.rank, info.shape, ctypes.addressof(data))
            self.call("opfuse_bind", self.context, info.name, ctypes.byref(array))
        self.executable = executable
        self.run()

    def call(self, name, *arguments):
        if getattr(self.library, name)(*arguments):
            raise RuntimeError(self.library.opfuse_last_error().decode())

    def info(self, name, executable, index):
        info = TensorInfo(ctypes.sizeof(TensorInfo))
        self.call(name, executable, ctypes.c_size_t(index), ctypes.byref(info))
        return info

    def run(self):
        if self.library.opfuse_run(self.context):
            raise RuntimeError(self.library.opfuse_last_error().decode())

    def least(self, seconds):
        """Microseconds of the fastest run."""
        run, context, clock, best = self.library.opfuse_run, self.context, time.perf_counter_ns, math.inf
        run(context)  # the program before left its own data in the caches
        end = clock() + int(1e9 * seconds)
        while True:
            start = clock()
            run(context)
            now = clock()
            best = min(best, now - start)
            if now >= end:
                return best * 1e-3

    def results(self):
        """Of each f32 output every n-th element, COMPARED at most."""
        lists = []
        for name in self.outputs:
            array = Array(ctypes.sizeof(Array))
            self.call("opfuse_output", self.context, name, ctypes.byref(array))
            count = math.prod(array.shape[d] for d in range(array.rank))
            if array.type == 0:
                lists.append((ctypes.c_float * count).from_address(array.data)[::count // COMPARED + 1])
        return lists

    def close(self):
        self.library.opfuse_context_free(self.context)
        self.library.opfuse_free(self.executable)


def in_turns(programs, rounds, seconds):
    least = [math.inf] * len(programs)
    for _ in range(rounds):
        for i, program in enumerate(programs):
            least[i] = min(least[i], program.least(seconds))
    return least


def difference(a, b):
    """Largest difference of the outputs, of their max."""
    worst = 0.0
    for x, y in zip(a.results(), b.results()):
        most = max((abs(v) for v in x), default=0) or 1
        worst = max([worst, *(abs(p - q) / most for p, q in zip(x, y))])
    return worst
