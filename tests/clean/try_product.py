#!/usr/bin/env python3
"""What opfuse promises, tried as a newcomer would: from the wheel, in an empty environment, far from the sources.

    ./dev wheel && tests/clean/try_product.py build/wheel/dist/opfuse-*-cp311-*.whl [--python python3.11] [--only 5,7] [--write docs/tried.md]

One row for each promise, with what was run and what it showed; with --only the others keep theirs. onnx and onnxruntime come from PyPI, and PyTorch with --torch.
Exit status 1 if something that is promised did not hold. A row says "not tried" where a tool is missing here, with its name.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
RAY = "ray[data]==2.60.0"
PACKAGES = ("numpy", "onnx==1.23.2", "onnxruntime==1.32.0")
SHORT = ("--duration", "300ms", "--warmup", "30ms")
MODEL = "zoo:mobilenet_v2"


class NotTried(Exception):
    """A tool is missing here; the text names it."""


class Clean:
    """An empty folder with an environment of its own."""

    def __init__(self, folder, python, wheel, torch):
        self.folder = pathlib.Path(folder)
        subprocess.run([python, "-m", "venv", self.folder / "venv"], check=True)
        self.environment = {"PATH": f"{self.folder}/venv/bin:/usr/bin:/bin", "HOME": str(self.folder), "LANG": "C.UTF-8",
                            "XDG_CACHE_HOME": str(self.folder / "cache"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        extra = ("torch", "torchvision", "onnxscript") if torch else ()
        self.run("pip", "install", "--quiet", wheel, *PACKAGES, *extra)

    def run(self, *command, ok=(0,)):
        done = subprocess.run([str(word) for word in command], cwd=self.folder, env=self.environment, text=True, capture_output=True)
        if done.returncode not in ok:
            raise AssertionError(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout[-800:]}{done.stderr[-800:]}")
        return done

    def python(self, text):
        return self.run("python", "-c", text).stdout.strip()

    def size(self, name):
        return (self.folder / name).stat().st_size


def expect(holds, what):
    if not holds:
        raise AssertionError(what)


def optimize(clean, options):
    done = clean.run("opfuse", "optimize", MODEL, "-o", "m.opf", "--report", "r.html", *SHORT, ok=(0, 1))
    said = [" ".join(line.split()) for line in done.stdout.splitlines() if line.split()[:1] in (["proof"], ["time"], ["memory"])]
    expect(len(said) == 3, done.stdout[-600:])
    expect(clean.size("m.opf") > 0 and clean.size("r.html") > 0, "no .opf or no report")
    clean.run("opfuse", "run", "m.opf")
    text = clean.python("import opfuse; r = opfuse.optimize(opfuse.Model.zoo('resnet18'), seconds=0.2); r.executable.inputs(); print('PASSED' if 'PASSED' in str(r) else 'FAILED')")
    return f"exit {done.returncode}: {'; '.join(said)}; in Python on ResNet-18: {text}"


def report(clean, options):
    page = (clean.folder / "r.html").read_text()
    expect("src=\"http" not in page and "href=\"http" not in page.replace("http://www.w3.org", ""), "the page refers to the network")
    for form in ("svg", "dot"):
        clean.run("opfuse", "report", MODEL, "--format", form, "-o", f"g.{form}")
    said = f"{len(page) / 1e6:.1f} MB in one file, svg and dot"
    sys.path.insert(0, str(SOURCE / "tests" / "cli"))
    import browser
    if browser.CHROMIUM is None:
        return said + "; not opened: chromium is missing"
    sys.path.insert(0, str(SOURCE / "bench"))
    from report_opening import large_graph
    (clean.folder / "large.fir").write_text(large_graph(3000))
    for name, model, bar in (("ResNet-50", "zoo:resnet50", 1), ("3,000 nodes", "large.fir", 3)):
        clean.run("opfuse", "report", model, "-o", "o.html", "--duration", "200ms")
        opened = [browser.seconds_to_open(clean.folder / "o.html") for _ in range(5)]
        problems = [problem for _, found in opened for problem in found]
        expect(not problems, f"console: {problems[:3]}")
        seconds = sorted(seconds for seconds, _ in opened)[2]
        said += f"; {name}: {clean.size('o.html') / 1e6:.1f} MB open in {seconds:.2f} s (bar {bar} s: {'met' if seconds <= bar else 'MISSED'})"
    return said + ", console clean"


def profile(clean, options):
    done = clean.run("opfuse", "profile", "m.opf", *SHORT, "--trace", "t.json", "--exportProfile", "p.json", "--exportLayerInfo", "l.json",
                     "--counters")
    events = json.loads((clean.folder / "t.json").read_text())
    kernels = json.loads((clean.folder / "p.json").read_text())["kernels"]
    expect(all(kernel["ms"] > 0 for kernel in kernels), "kernels without time")
    counters = next((line.strip() for line in done.stdout.splitlines() if "counters" in line), "counters: not said")
    groups = clean.run("opfuse", "profile", MODEL, *SHORT, "--vs-unfused", "--json")
    groups = json.loads(groups.stdout)["groups"]
    bench = clean.run("opfuse", "bench", MODEL, *SHORT).stdout
    line = next(line.strip() for line in bench.splitlines() if "first" in line)
    return (f"{len(kernels)} kernels, {len(events['traceEvents'] if isinstance(events, dict) else events)} events of a trace, "
            f"{len(groups)} groups against unfused; {counters}; {line}")


def other_languages(clean, package):
    """The example of each language whose tools are here, and what it prints; else which tool is missing."""
    library = clean.folder / "libopfuse_runtime.so"
    for link in (library, clean.folder / "libopfuse_runtime.so.0"):  # what linkers and what programs look for
        link.symlink_to(package / "libopfuse_runtime.so.0")
    jna = pathlib.Path("/usr/share/java/jna.jar")
    link = f"-L{clean.folder} -Wl,-rpath,{clean.folder}"
    clean.environment |= {"LD_LIBRARY_PATH": str(clean.folder), "CGO_CFLAGS": f"-I{package}/include", "CGO_LDFLAGS": link, "GOCACHE": f"{clean.folder}/gocache"}
    path = os.environ["PATH"]
    rustc, go, mcs, java = (shutil.which(name, path=path) for name in ("rustc", "go", "mcs", "java"))
    folder = SOURCE / "examples"
    ways = (("Rust", "rustc", rustc, [[rustc, "-O", folder / "run_in_rust/run_in_rust.rs", "-o", "run_in_rust", f"-Clink-arg={library}"], ["./run_in_rust"]]),
            ("Go", "go", go, [[go, "build", "-o", "run_in_go", folder / "run_in_go/run_in_go.go"], ["./run_in_go"]]),
            ("C#", "mcs (mono)", mcs, [[mcs, "-out:RunInCSharp.exe", folder / "run_in_csharp/RunInCSharp.cs"], ["mono", "RunInCSharp.exe"]]),
            ("Java", "java with jna.jar", java and jna.exists(), [[java, "-cp", jna, folder / "run_in_java/RunInJava.java"]]))
    versions = {"Rust": [rustc, "--version"], "Go": [go, "version"], "C#": [mcs, "--version"], "Java": [java, "--version"]}
    home = {"HOME": os.environ.get("HOME", "/")}  # rustup's
    for name, tool, found, commands in ways:
        if not found:
            yield f"{name} not tried: no {tool}"
            continue
        version = subprocess.run(versions[name], text=True, capture_output=True, env={**os.environ}).stdout.splitlines()[0]
        for command in commands[:-1]:
            done = subprocess.run(command, cwd=clean.folder, env={**clean.environment, **home}, text=True, capture_output=True)
            expect(done.returncode == 0, f"{name}: {done.stderr[-400:]}")
        yield f"{name} ({version}): " + clean.run(*commands[-1], "m.opf").stdout.strip().splitlines()[0]


def install(clean, options):
    size = pathlib.Path(options.wheel).stat().st_size
    expect(size <= 60_000_000, f"the wheel has {size} bytes")
    package = pathlib.Path(clean.python("import opfuse, os; print(os.path.dirname(opfuse.__file__))"))
    runtime = package / "libopfuse_runtime.so.0"
    expect(runtime.stat().st_size <= 3_000_000, "the runtime library has over 3 MB")
    said = [clean.run("opfuse", "--version").stdout.strip(), f"wheel {size / 1e6:.1f} MB", f"C library {runtime.stat().st_size / 1e6:.2f} MB"]
    if shutil.which("cc", path=clean.environment["PATH"]) is None:
        return ", ".join(said) + "; C not tried: no cc"
    if not (clean.folder / "m.opf").exists():
        clean.run("opfuse", "compile", MODEL, "-o", "m.opf")
    shutil.copy(SOURCE / "examples" / "run_in_c" / "run_in_c.c", clean.folder)
    clean.run("cc", "run_in_c.c", "-I", package / "include", runtime, f"-Wl,-rpath,{package}", "-o", "run_in_c")
    said.append("C: " + clean.run("./run_in_c", "m.opf").stdout.strip().splitlines()[0])
    clean.run("opfuse", "compile", MODEL, "--emit", "object", "out")
    header = next((clean.folder / "out").glob("*.h"))
    (clean.folder / "o.c").write_text(f'#include "out/{header.name}"\nint main(void) {{ return {header.stem}_supported() ? 0 : 1; }}\n')
    clean.run("cc", "-std=c99", "o.c", f"out/{header.stem}.o", "-lm", "-o", "o")
    clean.run("./o")
    said.append("an object file links alone")
    return ", ".join(said) + ", " + "; ".join(other_languages(clean, package))


APIS = """
import asyncio, numpy, onnx, opfuse
steps = []
model = onnx.load("f.onnx")
exe = opfuse.compile(opfuse.load(model), progress=lambda *step: steps.append(step))
assert steps and opfuse.load(model.SerializeToString())
image = numpy.random.default_rng(0).random((1, 3, 224, 224), numpy.float32)
(name,) = [t.name for t in exe.inputs()]
plain = exe.run({name: image})
(out,) = plain
assert (exe.submit({name: image}).result()[out] == plain[out]).all()
assert (asyncio.run(exe.run_async({name: image}))[out] == plain[out]).all()
class Other:  # what is no numpy array and speaks DLPack
    def __dlpack__(self, **kw): return image.__dlpack__(**kw)
    def __dlpack_device__(self): return image.__dlpack_device__()
assert (exe.run({name: Other()})[out] == plain[out]).all()
assert "<table" in opfuse.plan(opfuse.Model.zoo("resnet18"))._repr_html_()
n = opfuse.Network()
x = n.input("x", [1, 8, 16, 16])
w = numpy.ones((8, 8, 3, 3), numpy.float32) / 72
y = n.op("relu", n.add(n.conv(x, weights=w, pad=1), x))
n.output("y", y)
m = n.model()
print("ModelProto, bytes, progress, async, DLPack, notebook, Network: ok")
"""


def apis(clean, options):
    clean.run("opfuse", "fuse", MODEL, "-o", "f.onnx")
    said = clean.python(APIS)
    if not options.torch:
        return said + "; torch not tried: --torch installs it"
    shutil.copytree(SOURCE / "tests" / "python", clean.folder / "python_tests", dirs_exist_ok=True)
    clean.run("pip", "install", "--quiet", "pytest")
    torch = clean.run("python", "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "python_tests/test_torch.py").stdout.strip().splitlines()[-1]
    return said + f"; torch {clean.python('import torch; print(torch.__version__)')}: {torch}"


FUSED = """
import numpy, onnx, onnxruntime, opfuse
m = onnx.load("f.onnx"); onnx.checker.check_model(m, full_check=True)
calls = [n for n in m.graph.node if n.domain]
assert calls and all(n.doc_string for n in calls) and m.producer_name == "opfuse"
assert any(n.attribute for n in calls) and m.metadata_props and len(m.graph.value_info) >= len(calls) - 1
image = numpy.random.default_rng(0).random((1, 3, 224, 224), numpy.float32)
s = onnxruntime.InferenceSession("f.onnx", providers=["CPUExecutionProvider"])
(name,) = [i.name for i in s.get_inputs()]
want = s.run(None, {name: image})[0]
(got,) = opfuse.compile(opfuse.load("f.onnx")).run({name: image}).values()
error = abs(got - want).max() / abs(want).max()
assert error < 1e-3, error
print(f"{len(calls)} calls, {len(m.graph.value_info)} edges with types, checker: ok, ONNX Runtime differs by {error:.1g}")
"""


def fused(clean, options):
    back = next(line.strip() for line in clean.run("opfuse", "fuse", MODEL, "-o", "f.onnx").stdout.splitlines() if "read back" in line)
    return f"{back}; {clean.python(FUSED)}"


def tune(clean, options):
    done = json.loads(clean.run("opfuse", "tune", MODEL, "--time", "20s", "--json", *SHORT).stdout)
    expect(done["schedules"] > 0, "no schedule was measured")
    expect(not done["kept"] or done["tuned_over_untuned"]["high"] < 1, "kept although it is not faster")
    gain = "one program" if done["same"] else f"{done['untuned_ms'] / done['tuned_ms']:.2f}x as predicted"
    return (f"{done['schedules']} schedules of {done['kernels']} kernels in {done['seconds']:.0f} s, {len(done['changed'])} kernels faster; "
            f"{gain}, {'kept' if done['kept'] else 'not kept'}")


PROVIDER = """
import numpy, onnxruntime, onnxruntime_ep_opfuse
options = onnxruntime_ep_opfuse.session_options(threads=2)
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
session = onnxruntime.InferenceSession("flat.onnx", options)
image = numpy.random.default_rng(0).random((1, 3, 224, 224), numpy.float32)
(name,) = [i.name for i in session.get_inputs()]
want = onnxruntime.InferenceSession("flat.onnx", providers=["CPUExecutionProvider"]).run(None, {name: image})[0]
error = abs(session.run(None, {name: image})[0] - want).max() / abs(want).max()
assert session.get_providers()[0] == "OpfuseExecutionProvider" and error < 1e-3, error
print(f"ONNX Runtime {onnxruntime.__version__}: the whole model on opfuse, differs from its own kernels by {error:.1g}")
"""


def provider(clean, options):
    wheels = sorted(pathlib.Path(options.wheel).resolve().parent.glob("onnxruntime_ep_opfuse-*.whl"))
    if not wheels:
        raise NotTried("no wheel of onnxruntime-ep-opfuse beside the other: ./dev wheel makes it")
    clean.run("pip", "install", "--quiet", wheels[-1])
    clean.run("opfuse", "fuse", MODEL, "--flatten", "-o", "flat.onnx")
    said = clean.python(PROVIDER)
    environment = {**clean.environment, "OPFUSE_EP": clean.python("import onnxruntime_ep_opfuse as e, os; print(os.path.dirname(e.__file__))"),
                   "OPFUSE_BINARY": str(clean.folder / "venv/bin/opfuse")}
    tests = subprocess.run([clean.folder / "venv/bin/python", "-B", "-m", "unittest", "test_provider"], cwd=SOURCE / "tests/onnxruntime", env=environment,
                           text=True, capture_output=True)
    expect(tests.returncode == 0, tests.stderr[-800:])
    return f"{wheels[-1].name}; {said}; its tests: {tests.stderr.strip().splitlines()[-1]}"


def ancestors(pid):
    while pid > 1:
        yield pid
        pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def kill_a_worker(top):
    """SIGKILL to one of the Ray workers below the process `top`."""
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(b"ray::MapWorker") and top in ancestors(int(entry.name)):
                os.kill(int(entry.name), signal.SIGKILL)
                return
        except (FileNotFoundError, ProcessLookupError):  # ended meanwhile
            pass
    raise AssertionError("no worker to kill")


IMAGES = 300
DRAWN = f"""
import numpy, pathlib
from PIL import Image
numbers = numpy.random.default_rng(0)
pathlib.Path("photos").mkdir()
for i in range({IMAGES} - 1):
    small = numbers.integers(0, 256, (8, 10, 3), dtype=numpy.uint8)
    Image.fromarray(small).resize((320, 256), Image.Resampling.BICUBIC).save(f"photos/{{i:04}}.jpg", quality=85)
pathlib.Path("photos/broken.jpg").write_bytes(b"no picture")
"""


def cluster(clean, options):
    """A folder of images on a local cluster, one of its two workers killed; the table is that of one process."""
    if clean.run("pip", "install", "--quiet", RAY, "pillow", ok=(0, 1)).returncode:
        raise NotTried(f"{RAY} cannot be installed for this Python")
    clean.python(DRAWN)
    clean.run("opfuse", "compile", "zoo:resnet50", "--threads", "1", "-o", "one.opf")
    shutil.copy(SOURCE / "examples" / "run_in_ray" / "classify_folder.py", clean.folder)
    one = clean.run("python", "classify_folder.py", "one.opf", "photos", "one.csv", "--workers", "0").stdout.strip()
    running = subprocess.Popen([clean.folder / "venv/bin/python", "classify_folder.py", "one.opf", "photos", "two.csv", "--workers", "2", "--batch", "8"],
                               cwd=clean.folder, env=clean.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    told = killed_at = 0
    for line in running.stderr:
        if progress := re.match(rf"(\d+) of {IMAGES} images, .* left$", line):
            told += 1
            if not killed_at and int(progress[1]) > 40:
                killed_at = int(progress[1])
                kill_a_worker(running.pid)
    two = running.stdout.read().strip()
    expect(running.wait() == 0 and told and killed_at, f"status {running.returncode}, {told} lines of progress, killed at {killed_at}: {two}")
    expect((clean.folder / "one.csv").read_text() == (clean.folder / "two.csv").read_text(), "the tables differ")
    version = clean.python("import ray; print(ray.__version__)")
    return (f"Ray {version}, 2 workers, one killed after {killed_at} of {IMAGES} images: {told} lines of progress, the same table as one process "
            f"({one.split(': ', 1)[1]})")


PROMISES = (("1 optimize", optimize), ("2 report", report), ("3 profile, bench", profile), ("4 tune", tune), ("5 install without compiling", install),
            ("6 APIs", apis), ("7 ONNX Runtime plug-in", provider), ("8 several machines", cluster), ("9 fused ONNX", fused))


def try_all(options, folder):
    clean = Clean(folder, options.python, str(pathlib.Path(options.wheel).resolve()), options.torch)
    rows = []
    for name, attempt in PROMISES:
        if options.only and name.split()[0] not in options.only.split(","):
            continue
        begin = time.perf_counter()
        try:
            rows.append((name, "ok", attempt(clean, options)))
        except NotTried as reason:
            rows.append((name, "not tried", str(reason)))
        except Exception as problem:  # whatever went wrong is the result
            rows.append((name, "FAILED", f"{type(problem).__name__}: {problem}"))
        print(f"{name}: {rows[-1][1]} ({time.perf_counter() - begin:.0f} s)\n    {rows[-1][2]}", flush=True)
    return rows


def with_kept(rows, options):
    """The rows, and those of the page that --only left alone."""
    kept = {}
    if options.only and options.write.exists():
        for line in options.write.read_text().splitlines():
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            if len(cells) == 3 and cells[0] in dict(PROMISES):
                kept[cells[0]] = tuple(cells)
    new = {row[0]: row for row in rows}
    return [new.get(name) or kept[name] for name, _ in PROMISES if name in new or name in kept]


def page(rows, options):
    version = subprocess.run([options.python, "--version"], text=True, capture_output=True).stdout.strip()
    lines = ["# Tried in a clean environment", "",
             f"By `tests/clean/try_product.py` on {time.strftime('%Y-%m-%d')}, {version}, {platform.system()} {platform.machine()}: `{pathlib.Path(options.wheel).name}` "
             "and packages of PyPI in an empty environment.", "", "| promise | result | what it showed |", "|---|---|---|"]
    return "\n".join(lines + [f"| {name} | {result} | {said.replace('|', ' ')} |" for name, result, said in rows]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--torch", action="store_true", help="also PyTorch, about 900 MB")
    parser.add_argument("--only", default="", help="numbers of promises: 5,7")
    parser.add_argument("--write", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="opfuse-clean-") as folder:
        rows = try_all(options, folder)
    if options.write:
        options.write.write_text(page(with_kept(rows, options), options))
    return 1 if any(result == "FAILED" for _, result, _ in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
