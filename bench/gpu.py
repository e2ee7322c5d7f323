#!/usr/bin/env python3
"""Measures and checks opfuse on a machine with an NVIDIA GPU, a step at a time, each within a budget of seconds.

    bench/gpu.py facts --budget 540 --out DIR       device, copy rate, torch.matmul, every primitive, five models against the interpreter
    bench/gpu.py kernels                            products, convolutions, attention, rows at the models' shapes, beside torch
    bench/gpu.py models                             five models in f16 at batch 1, 32, 128: arrays on the device, graphs replayed
    bench/gpu.py peers                              the same models in torch: eager, torch.compile, max-autotune; once per torch version
    bench/gpu.py sanitizer                          every skeleton under compute-sanitizer
    bench/gpu.py compile                            no GPU: the kernels of all steps into the cache (./dev gpu-kit)

Steps have numbers, 1 to 5, too. Each row goes to DIR/rows.jsonl as it is measured; a row that is there is not measured
again, so a step goes on where it ended. What cannot run is a row that says why. The exit status is 0 when all rows are
there, 1 when one failed, 3 when the budget ended before the last: those are named.

It runs in the folder of a kit (./dev gpu-kit), or with --build DIR in the tree. --dry-run takes the emulated device and
small models: its times mean nothing."""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import gpu_torch  # beside this file
import gpu_work

HERE = pathlib.Path(__file__).resolve().parent
STEPS = ["facts", "kernels", "models", "peers", "sanitizer"]
LEAST = 5.0  # seconds below which nothing is begun


class Skip(Exception):
    """Why a row cannot be had here."""


class Rows:
    """rows.jsonl: a line a row, on disk as soon as it is known."""

    def __init__(self, path, step):
        self.path, self.step, self.known, self.failed = path, step, {}, []
        path.parent.mkdir(parents=True, exist_ok=True)
        for line in path.read_text().splitlines() if path.exists() else []:
            row = json.loads(line)
            if row["status"] == "ok":
                self.known[row["step"], row["what"]] = row

    def add(self, what, status, seconds, **values):
        row = {"step": self.step, "what": what, "status": status, "seconds": round(seconds, 2), **values}
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        if status == "ok":
            self.known[self.step, what] = row
        elif status == "failed":
            self.failed.append(what)
        print(f"{self.step}: {what}: " + (", ".join(f"{k} {v}" for k, v in values.items()) if status == "ok" else f"{status}: {values['why']}"), flush=True)


class Machine:
    """The programs, and what is left of the budget."""

    def __init__(self, args):
        self.args, self.end = args, time.monotonic() + args.budget
        kit = HERE.parent if (HERE.parent / "bin/opfuse").exists() else None
        if args.build:
            self.opfuse, self.tests = args.build / "tools/opfuse/opfuse", args.build / "tests/test_cuda"
        elif kit:
            self.opfuse, self.tests = kit / "bin/opfuse", kit / "bin/test_cuda"
        else:
            sys.exit("neither a kit around this file (./dev gpu-kit makes one) nor --build DIR")
        self.env = dict(os.environ)
        if kit and not args.build:
            self.env["LD_LIBRARY_PATH"] = f"{kit / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")
            self.env["XDG_CACHE_HOME"] = str(kit / "cache")
        self.env.setdefault("VIRTUAL_ENV", sys.prefix)  # where NVRTC's wheel may be
        self.work = args.out / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        self.target = args.target or ("cuda:emulated" if args.dry_run else "cuda:" + self.architecture())

    def left(self):
        return self.end - time.monotonic()

    def run(self, *words, most=None, env=None):
        """(status, out, err); raises TimeoutError when the budget ends."""
        limit = max(1.0, min(self.left(), most or 1e9))
        try:
            done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=limit, env={**self.env, **(env or {})})
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"not done in {limit:.0f} s") from None
        return done.returncode, done.stdout, done.stderr

    def ask(self, *words):
        """A verb's JSON."""
        code, out, err = self.run(self.opfuse, *words, "--json")
        if code:
            lines = (err or out).strip().splitlines() or [f"status {code}"]
            raise RuntimeError(next((l for l in lines if l.startswith("error")), lines[-1]))
        return json.loads(out)

    def architecture(self):
        driver = self.ask("doctor")["cuda_driver"]
        found = re.search(r"\((sm_\d+)\)", driver)
        if not found:
            sys.exit(f"no GPU: {driver}\n(--dry-run takes the emulated device)")
        return {"sm_90": "sm_90a"}.get(found.group(1), found.group(1))

    def models(self):
        return list(gpu_work.REDUCED) if self.args.dry_run else gpu_work.MODELS

    def batches(self):
        return [1] if self.args.dry_run else gpu_work.BATCHES

    def model(self, name, batch):
        return gpu_work.model_text(self.opfuse, name, batch, self.work, self.args.dry_run)


# ---- steps: lists of (row, function that returns its values) ------------------------------------------------------------

def facts(m):
    def device():
        if m.args.dry_run:
            return {"device": "emulated"}
        return {"driver": m.ask("doctor")["cuda_driver"], "smi": (m.run("nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm", "--format=csv,noheader")[1]
                if shutil.which("nvidia-smi") else "").strip()}

    def copies():
        path = m.work / "copy.fir"
        path.write_text(gpu_work.rows("chain", 32 if m.args.dry_run else 131072, 64 if m.args.dry_run else 1024))
        return {"gb_per_s": round(m.ask("profile", path, "--target", m.target)["read_limits"][0]["gb_per_s"], 1)}

    def primitives():
        if not m.tests.exists():
            raise Skip(f"{m.tests} is not there")
        if not m.args.dry_run and "not found" in m.ask("doctor")["cuda_compiler"]:
            raise Skip("NVRTC was not found: pip install nvidia-cuda-nvrtc, or OPFUSE_NVRTC=FILE")
        code, out, err = m.run(m.tests, "--gtest_filter=DeviceKernels.*", "--gtest_brief=1", env={"OPFUSE_GPU_TARGET": m.target})
        if code or "[  PASSED  ] 1 test" not in out:  # a filter that matches nothing passes too
            raise RuntimeError((out + err).strip().splitlines()[-1])
        return {"result": "equal to the interpreter"}

    def compare(name):
        groups = m.ask("compare", m.model(name, 1), "--target", m.target)["groups"]
        return {"groups": len(groups), "worst_of_its_largest": f"{max(g['relative'] for g in groups):.1e}"}

    rows = [("device", device), ("copy", copies)]
    if not m.args.dry_run:
        rows += [("torch.matmul 8192^3", lambda: gpu_torch.kernel("product", (8192, 8192, 8192)))]
        rows += [("every skeleton and primitive", primitives)]  # on the emulated device a test of its own
    return rows + [(f"compare {name}", lambda n=name: compare(n)) for name in m.models()]


def kernels(m):
    def one(kind, name, text, shape):
        path = m.work / "kernel.fir"
        path.write_text(text)
        found = m.ask("profile", path, "--target", m.target)
        values = {"us": round(found["sum_ms"] * 1e3, 2)}
        flop, size = sum(k["flop"] for k in found["kernels"]), sum(k["bytes"] for k in found["kernels"])
        if kind == "rows":
            copy = found["read_limits"][0]["gb_per_s"]
            values.update(gb_per_s=round(size * 1e-6 / found["sum_ms"]), percent_of_copy=round(100 * size * 1e-6 / found["sum_ms"] / copy),
                          wanted=gpu_work.SHARE_WANTED[name.split()[0]])
        else:
            values["tflop_per_s"] = round(flop * 1e-9 / found["sum_ms"], 1)
        if not m.args.dry_run:
            try:
                values["torch_us"] = gpu_torch.kernel(kind, shape, name)["us"]
            except gpu_torch.Missing as e:
                values["torch"] = f"skipped: {e}"
        return values

    return [(f"{kind} {name}", lambda k=kind, n=name, t=text, s=shape: one(k, n, t, s))
            for kind, items in gpu_work.kernel_texts(m.args.dry_run).items() for name, (text, shape) in items.items()]


def models(m):
    def one(name, batch):
        found = m.ask("bench", m.model(name, batch), "--target", m.target, "--resident", "--iterations", 5 if m.args.dry_run else 50,
                      "--duration", "10ms" if m.args.dry_run else "2s", "--warmup", "1ms" if m.args.dry_run else "500ms")
        return {"ms": round(found["latency_ms"]["median"], 4), "best_ms": round(found["latency_ms"]["min"], 4), "runs": found["latency_ms"]["count"],
                "launches": found["kernels"], "arena_bytes": found["arena_bytes"]}

    return [(f"{name} f16 batch {batch}", lambda n=name, b=batch: one(n, b)) for batch in m.batches() for name in m.models()]


def peers(m):
    def one(name, batch, mode):
        if m.args.dry_run:
            raise Skip("torch sees no emulated device")
        code, out, err = m.run(sys.executable, HERE / "gpu_torch.py", name, str(batch), mode, most=150)
        if code == 77:
            raise Skip(out.strip())
        if code:
            raise RuntimeError((err.strip().splitlines() or ["no output"])[-1])
        return json.loads(out)

    return [(f"torch {mode} {name} f16 batch {batch}", lambda n=name, b=batch, o=mode: one(n, b, o))
            for batch in m.batches() for name in m.models() for mode in gpu_torch.MODES]


def sanitizer(m):
    def one(tool):
        if m.args.dry_run:
            raise Skip("it watches GPUs")
        if not shutil.which("compute-sanitizer"):
            raise Skip("compute-sanitizer is not on the PATH")
        if not m.tests.exists():
            raise Skip(f"{m.tests} is not there")
        code, out, err = m.run("compute-sanitizer", "--tool", tool, "--error-exitcode", "9", m.tests, "--gtest_filter=DeviceKernels.*", "--gtest_brief=1",
                               env={"OPFUSE_GPU_TARGET": m.target})
        if code:
            raise RuntimeError((out + err).strip().splitlines()[-1])
        return {"result": "clean"}

    return [(tool, lambda t=tool: one(t)) for tool in ["memcheck", "racecheck", "synccheck", "initcheck"]]


def compile_all(m):
    """The kernels that the other steps need; `compare` needs those of the groups alone, too."""
    def one(path):
        found = m.ask("compile", path, "--target", m.target, "-o", m.work / "compiled.opf")
        (m.work / "compiled.opf").unlink()
        return {"kernels": found["kernels"]}

    def text(number, content):
        path = m.work / f"kernel-{number}.fir"
        path.write_text(content)
        return one(path)

    rows = [(f"{name} batch {batch}", lambda n=name, b=batch: one(m.model(n, b))) for batch in m.batches() for name in m.models()]
    texts = [(f"{kind} {name}", content) for kind, items in gpu_work.kernel_texts(m.args.dry_run).items() for name, (content, _) in items.items()]
    texts.append(("copy", gpu_work.rows("chain", 32 if m.args.dry_run else 131072, 64 if m.args.dry_run else 1024)))
    return rows + [(name, lambda i=i, c=content: text(i, c)) for i, (name, content) in enumerate(texts)]


def go(m, rows, items):
    left = []
    for what, call in items:
        if (rows.step, what) in rows.known:
            continue
        if m.left() < LEAST:
            left.append(what)
            continue
        begin = time.monotonic()
        try:
            rows.add(what, "ok", time.monotonic() - begin, **call())
        except (Skip, gpu_torch.Missing) as e:
            rows.add(what, "skipped", time.monotonic() - begin, why=str(e))
        except TimeoutError as e:
            if m.left() < LEAST:
                left.append(what)
            else:
                rows.add(what, "failed", time.monotonic() - begin, why=str(e))
        except Exception as e:  # noqa: BLE001 -- the rows behind it are measured all the same
            rows.add(what, "failed", time.monotonic() - begin, why=f"{type(e).__name__}: {e}")
    if left:
        print(f"the budget of {m.args.budget:g} s has ended; left: " + ", ".join(left), flush=True)
    return 1 if rows.failed else 3 if left else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=[*STEPS, *"12345", "compile"])
    parser.add_argument("--budget", type=float, default=540, help="seconds (540)")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(os.environ.get("OUT", "build/gpu")), help="folder of rows.jsonl ($OUT, else build/gpu)")
    parser.add_argument("--build", type=pathlib.Path, help="a build folder, instead of a kit")
    parser.add_argument("--target", help="cuda:sm_XX; default: the GPU's own")
    parser.add_argument("--dry-run", action="store_true", help="the emulated device, small models; times mean nothing")
    args = parser.parse_args()
    step = STEPS[int(args.step) - 1] if args.step.isdigit() else args.step
    m = Machine(args)
    rows = Rows(args.out / "rows.jsonl", step)
    table = {"facts": facts, "kernels": kernels, "models": models, "peers": peers, "sanitizer": sanitizer, "compile": compile_all}
    return go(m, rows, table[step](m))


if __name__ == "__main__":
    sys.exit(main())
