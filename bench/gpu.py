#!/usr/bin/env python3
"""One call for a machine with an NVIDIA GPU: builds, checks every primitive and whole models, compute-sanitizer, copy
bandwidth, kernels and models timed (beside PyTorch where it is installed); the table comes last, JSON with --json FILE.

    bench/gpu.py --build build/release                       on the GPU's own architecture
    bench/gpu.py --build build/release --dry-run             the same path on the emulated device, small models

Times of opfuse are the device's own (events between launches, their sum per run); PyTorch's are events around replays.
Steps that cannot run here are named with the reason, never left out silently."""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

CHAIN = """graph @chain(%x: {t}, %z: {t}) {{
  %a = add(%x, %z)
  %b = relu(%a)
  %y = mul(%b, %z)
  return %y
}}
"""
SOFTMAX = """graph @rows(%x: {t}) {{
  %y = softmax(%x) {{axis = 1}}
  return %y
}}
"""
REDUCED = {"resnet18": 32, "mobilenet_v2": 32, "vit_b_16": 32}  # resolution in a dry run; emulated, ViT takes a minute
WANTED = {"elementwise chain": 90, "softmax": 85}  # percent of the copy bandwidth, at 256 MB


def run(words, **extra):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **extra)
    return done.returncode, done.stdout, done.stderr


class Report:
    def __init__(self):
        self.rows, self.facts, self.failed = [], {}, []

    def add(self, step, what, value, note=""):
        self.rows.append((step, what, value, note))
        print(f"{step}: {what}: {value} {note}", file=sys.stderr, flush=True)

    def fail(self, step, what, why):
        self.failed.append(f"{step} {what}")
        self.add(step, what, "FAILED", why.strip().splitlines()[-1] if why.strip() else "")

    def print(self):
        widths = [max(len(str(r[i])) for r in self.rows) for i in range(3)]
        for row in self.rows:
            print("  ".join(str(c).ljust(w) for c, w in zip(row, widths + [0])).rstrip())
        print("FAILED: " + ", ".join(self.failed) if self.failed else "all steps passed")


def architecture(opfuse):
    _, out, _ = run([opfuse, "doctor", "--json"])
    driver = json.loads(out)["cuda_driver"]
    found = re.search(r"\((sm_\d+)\)", driver)
    if not found:
        sys.exit(f"no GPU: {driver}\n(--dry-run takes the emulated device)")
    return {"sm_90": "sm_90a"}.get(found.group(1), found.group(1))


def build(args):
    """Configures a folder that is not there yet, and brings the command line and the tests of kernels up to date."""
    root = pathlib.Path(__file__).resolve().parent.parent
    commands = [["cmake", "--build", args.build, "--target", "opfuse_cli", "test_cuda"]]
    if not (args.build / "CMakeCache.txt").exists():
        commands.insert(0, ["cmake", "-S", root, "-B", args.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"])
    for command in commands:
        code, out, err = run(command)
        if code:
            sys.exit(f"{' '.join(map(str, command))} failed:\n{(out + err)[-4000:]}")


def sanitizer(args, report):
    """Every skeleton under each of compute-sanitizer's tools."""
    if args.dry_run:
        return report.add("sanitizer", "compute-sanitizer", "skipped", "(it watches GPUs; the dry run has none)")
    if not shutil.which("compute-sanitizer"):
        return report.add("sanitizer", "compute-sanitizer", "skipped", "(not on the PATH)")
    env = dict(os.environ, OPFUSE_GPU_TARGET=args.target)
    for tool in ["memcheck", "racecheck", "initcheck", "synccheck"]:
        code, out, err = run(["compute-sanitizer", "--tool", tool, "--error-exitcode", 9, args.build / "tests/test_cuda",
                              "--gtest_filter=DeviceKernels.*", "--gtest_brief=1"], env=env)
        report.add("sanitizer", tool, "clean") if code == 0 else report.fail("sanitizer", tool, out + err)


def golden(args, report):
    env = dict(os.environ, OPFUSE_GPU_TARGET=args.target)
    code, out, err = run([args.build / "tests/test_cuda", "--gtest_filter=DeviceKernels.*", "--gtest_brief=1"], env=env)
    if code == 0 and "[  PASSED  ] 1 test" in out:  # a filter that matches nothing passes too
        report.add("golden", "every skeleton and primitive", "ok")
    else:
        report.fail("golden", "primitives", out + err)


def zoo_models(args, folder):
    """(name, file): the built-in models; in a dry run one of each kind, reduced."""
    code, out, err = run([args.opfuse, "zoo", "--json"])
    if code:
        sys.exit(err)
    names = [m["name"] for m in json.loads(out)["models"]]
    if args.dry_run:
        names = [n for n in names if n in REDUCED]
    for name in names:
        extra = ["--resolution", REDUCED[name], "--width", 0.125, "--classes", 10] if args.dry_run else []
        path = folder / f"{name}.onnx"
        code, out, err = run([args.opfuse, "zoo", name, "-o", path, *extra])
        if code:
            sys.exit(err)
        yield name, path


def correctness(args, report, models):
    for name, path in models:
        code, out, err = run([args.opfuse, "compare", path, "--target", args.target, "--json"])
        if code:
            report.fail("compare", name, err or out)
            continue
        worst = max(g["relative"] for g in json.loads(out)["groups"])
        report.add("compare", name, f"ok, worst group {worst:.1e} of its max")


def profile(args, path):
    code, out, err = run([args.opfuse, "profile", path, "--target", args.target, "--json"])
    return (json.loads(out), "") if code == 0 else (None, err)


def kernels(args, report, folder):
    megabytes = 4 if args.dry_run else 256  # of each operand
    for name, text in [("elementwise chain", CHAIN), ("softmax", SOFTMAX)]:
        for dtype, size in [("f32", 4), ("f16", 2)]:
            if args.dry_run and (text is CHAIN) != (dtype == "f32"):
                continue  # emulated, each profile takes half a minute
            shape = f"[{megabytes * 1024 // size},1024]"
            path = folder / "kernel.fir"
            path.write_text(text.format(t=dtype + shape))
            result, why = profile(args, path)
            if not result:
                report.fail("kernel", f"{name} {dtype}", why)
                continue
            copy = result["read_limits"][0]["gb_per_s"]
            report.facts["copy_gb_per_s"] = max(copy, report.facts.get("copy_gb_per_s", 0))
            total = sum(k["bytes"] for k in result["kernels"]) * 1e-6 / result["sum_ms"]
            percent, wanted = 100 * total / copy, WANTED[name]
            below = f", below the {wanted} % that it should reach" if percent < wanted and not args.dry_run else ""
            report.add("kernel", f"{name} {dtype}{shape}", f"{total:.0f} GB/s", f"{percent:.0f} % of copies{below}")


def models_timed(args, report, models):
    for name, path in models:
        result, why = profile(args, path)
        report.add("model", f"{name} fp32 batch 1", f"{result['sum_ms']:.3f} ms") if result else report.fail("model", name, why)


def peers(args, report, folder):
    """fp16 channels-last at batch 1, 32, 128: PyTorch eager, torch.compile, opfuse on the exported model."""
    try:
        import torch
        import torchvision
    except ImportError as e:
        return report.add("peers", "PyTorch", "skipped", f"({e})")
    if not torch.cuda.is_available():
        return report.add("peers", "PyTorch", "skipped", "(torch sees no GPU)")

    def timed(call):
        for _ in range(20):
            call()
        torch.cuda.synchronize()
        times = []
        for _ in range(50):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            call()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))
        return sorted(times)[len(times) // 2]

    for name in ["resnet50", "mobilenet_v2"]:
        model = getattr(torchvision.models, name)(weights=None).cuda().half().eval()
        for batch in [1, 32, 128]:
            x = torch.randn(batch, 3, 224, 224, device="cuda", dtype=torch.half)
            path = folder / f"{name}_{batch}.onnx"
            with torch.no_grad():
                torch.onnx.export(model, x, str(path), input_names=["input"], output_names=["output"])
                last, xl = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
                eager = timed(lambda: last(xl))
                compiled_model = torch.compile(last, mode="max-autotune")
                compiled = timed(lambda: compiled_model(xl))
            result, why = profile(args, path)
            mine = f"{result['sum_ms']:.3f} ms" if result else f"failed: {why.strip()[:80]}"
            report.add("peers", f"{name} fp16 batch {batch}", mine, f"eager {eager:.3f} ms, torch.compile {compiled:.3f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--target", help="cuda:sm_XX; default: the GPU's own")
    parser.add_argument("--dry-run", action="store_true", help="the emulated device, reduced models; times mean nothing")
    parser.add_argument("--no-build", action="store_true", help="take the build as it is")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    if not args.no_build:
        build(args)
    args.opfuse = args.build / "tools/opfuse/opfuse"
    args.target = args.target or ("cuda:emulated" if args.dry_run else "cuda:" + architecture(args.opfuse))
    report = Report()
    report.add("target", args.target, "dry run: times mean nothing" if args.dry_run else "")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        golden(args, report)
        models = list(zoo_models(args, folder))
        correctness(args, report, models)
        sanitizer(args, report)
        kernels(args, report, folder)
        models_timed(args, report, models[:1] if args.dry_run else models)  # emulated, a run takes seconds
        peers(args, report, folder)
    if "copy_gb_per_s" in report.facts:
        report.add("copy", "device memory, read and written", f"{report.facts['copy_gb_per_s']:.0f} GB/s")
    else:
        report.add("copy", "device memory, read and written", "not measured", "(no kernel step passed)")
    if args.json:
        args.json.write_text(json.dumps({"target": args.target, "dry_run": args.dry_run, "rows": report.rows, "failed": report.failed}, indent=1))
    report.print()
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
