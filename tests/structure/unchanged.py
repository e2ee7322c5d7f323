#!/usr/bin/env python3
"""Shows that a restructuring changed nothing that users can see: records what compiling makes, and compares later.

    tests/structure/unchanged.py record  FOLDER --opfuse OLD [--full] [MODEL ...]
    tests/structure/unchanged.py compare FOLDER --opfuse NEW [--full] [MODEL ...]

For each model, target and batch the record holds the plan, the program (launches, schedules, layouts, arena) and a hash of
the code section: the machine code of CPUs, the kernels' text of CUDA. `compare` compiles again and names what differs. A case
whose program or code differs is run, old file beside new on the same drawn inputs: the first line says whether outputs agree in
every bit, and with --times both are timed in turns (upper bound of the 95 % interval of the ratio <= 1.03).

Names of kernels hold a hash of their specification's text and are compared without it, schedules without their skeleton.

The quick tier is twelve built-in models for cpu:avx512. --full adds larger ones, cpu:avx2, cpu:baseline and the text of cuda:sm_80,
and for models with a dimension named batch 1, 8 and open. Recording is resumable: a case that is recorded is not compiled again.
--layers N takes N drawn layers (drawn_layers.py) instead of models, --targets others than the tier's.
"""
import argparse
import hashlib
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile

import drawn_layers

QUICK = ["zoo:resnet18", "zoo:resnet50", "zoo:mobilenet_v2", "zoo:mobilenet_v3_large", "zoo:efficientnet_b0",
         "zoo:convnext_tiny", "zoo:vit_b_16", "zoo:swin_t", "zoo:bert_base", "zoo:unet", "zoo:alexnet", "zoo:vgg16"]
MORE = ["zoo:resnet34", "zoo:resnet101", "zoo:resnet152", "zoo:convnext_small"]
TARGETS = ["cpu:avx512", "cpu:avx2", "cpu:baseline", "cuda:sm_80"]
BATCHES = ["1", "8", "any"]
DROPPED = {"opfuse", "model", "seconds", "producer", "format"}  # of inspect --json: of this run and its file


def draw(layers, folder):
    """Paths of graphs of so many layers."""
    paths = []
    for number, text in enumerate(drawn_layers.draw_graphs(layers)):
        paths.append(os.path.join(folder, f"layers{number}.fir"))
        pathlib.Path(paths[-1]).write_text(text)
    return paths


def cases(models, full, targets):
    for model in models:
        for target in targets or (TARGETS if full else TARGETS[:1]):
            for batch in BATCHES if full else BATCHES[:1]:
                yield f"{model.replace('/', '_').replace(':', '_')}-{target.replace(':', '_')}-{batch}", model, target, batch


def call(opfuse, *arguments):
    done = subprocess.run([opfuse, *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def digest(data):
    return hashlib.sha256(data).hexdigest()


def record_one(opfuse, model, target, batch, folder, name):
    """The record of one case; the .opf stays beside it for `compare`."""
    cuda = target.startswith("cuda")
    with tempfile.TemporaryDirectory() as work:
        opf = os.path.join(work, "m.opf")
        emitted = os.path.join(work, "kernels")
        flags = ["--target", target, "--threads", "2", "--no-cache"]
        flags += ["--dim", f"batch={batch}"] if has_batch(opfuse, model) else []
        flags += ["--emit", "cuda", emitted] if cuda else ["-o", opf]
        code, out, err = call(opfuse, "compile", model, *flags, "--json")
        if code != 0:
            return {"refused": err.strip().splitlines()[:1]}
        report = json.loads(out)
        plan = call(opfuse, "explain", model, "--target", target, "--json")[1]
        entry = {"plan": digest(plan.encode()), "launches": report["launches"], "kernels": report["kernels"],
                 "arena_bytes": report["arena_bytes"], "constant_bytes": report["constant_bytes"], "notes": report["notes"]}
        if cuda:
            texts = sorted(pathlib.Path(emitted).rglob("*"))
            entry["code"] = digest(b"".join(p.read_bytes() for p in texts if p.is_file()))
            return entry
        inspected = json.loads(call(opfuse, "inspect", opf, "--json")[1])
        entry["program"] = {key: value for key, value in inspected.items() if key not in DROPPED}
        os.replace(opf, os.path.join(folder, name + ".opf"))
        return entry


def has_batch(opfuse, model):
    if model.startswith("zoo:"):
        return False
    inspected = json.loads(call(opfuse, "inspect", model, "--json")[1] or "{}")
    return "batch" in inspected.get("dynamic_dims", [])


def normal(entry, key=""):
    """Without what only names things: a kernel's hash of its specification's text, and the skeleton in front of a schedule."""
    if isinstance(entry, dict):
        return {k: normal(v, k) for k, v in entry.items()}
    if isinstance(entry, list):
        return [normal(v, key) for v in entry]
    if isinstance(entry, str):
        entry = re.sub(r"^([a-z_]+)_[0-9a-f]{16}$", r"\1", entry)
        if key == "schedule":
            entry = " ".join(word for word in entry.split() if "=" in word)
    return entry


def differences(old, new, path=""):
    if isinstance(old, dict) and isinstance(new, dict):
        return [d for key in sorted((old.keys() | new.keys()) - DROPPED) for d in differences(old.get(key), new.get(key), f"{path}.{key}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [d for i, (a, b) in enumerate(zip(old, new)) for d in differences(a, b, f"{path}[{i}]")]
    return [] if old == new else [f"{path}: {str(old)[:90]} -> {str(new)[:90]}"]


def same_bits(opfuse, old, new):
    with tempfile.TemporaryDirectory() as work:
        for opf, side in ((old, "old"), (new, "new")):
            code, _, err = call(opfuse, "run", opf, "--seed", "7", "--output-dir", os.path.join(work, side))
            if code != 0:
                return f"does not run: {err.strip().splitlines()[:1]}"
        for path in sorted(pathlib.Path(work, "old").glob("*.npy")):
            if path.read_bytes() != pathlib.Path(work, "new", path.name).read_bytes():
                return f"output {path.stem} differs"
    return ""


def upper_ratio(opfuse, old, new, rounds=12):
    """Time of the new file over the old one's, in turns: upper end of the 95 % interval of the ratio of medians."""
    times = {old: [], new: []}
    for _ in range(rounds):
        for opf in (old, new):
            code, out, err = call(opfuse, "bench", opf, "--threads", "1", "--warmup", "50ms", "--duration", "300ms", "--json")
            if code != 0:
                sys.exit(f"unchanged: bench of {opf}: {err.strip()}")
            times[opf].append(json.loads(out)["latency_ms"]["median"])
    draw = random.Random(7)
    ratios = sorted(statistics.median(draw.choices(times[new], k=rounds)) / statistics.median(draw.choices(times[old], k=rounds))
                    for _ in range(2000))
    return ratios[int(0.975 * len(ratios))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("folder")
    parser.add_argument("models", nargs="*", help="instead of the tier's")
    parser.add_argument("--opfuse", default="build/release/tools/opfuse/opfuse")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--layers", type=int, default=0, metavar="N")
    parser.add_argument("--targets", type=lambda text: text.split(","), help="comma-separated")
    parser.add_argument("--times", action="store_true", help="with compare: time old and new code in turns where it differs")
    given = parser.parse_args()
    os.makedirs(given.folder, exist_ok=True)
    models = given.models or (draw(given.layers, given.folder) if given.layers else QUICK + (MORE if given.full else []))
    changed = count = 0
    with tempfile.TemporaryDirectory() as fresh:
        for name, model, target, batch in cases(models, given.full, given.targets):
            path = pathlib.Path(given.folder, name + ".json")
            if given.what == "record":
                if not path.exists():
                    entry = record_one(given.opfuse, model, target, batch, given.folder, name)
                    path.write_text(json.dumps(entry, indent=1, sort_keys=True))
                count += 1
                print(f"recorded {name}", flush=True)
                continue
            if not path.exists():
                sys.exit(f"unchanged: no record of {name} in {given.folder}: record it with the older opfuse first")
            old = json.loads(path.read_text())
            new = record_one(given.opfuse, model, target, batch, fresh, name)
            found = differences(normal(old), normal(new))
            if any(d.startswith(".program") for d in found) and not target.startswith("cuda"):
                files = os.path.join(given.folder, name + ".opf"), os.path.join(fresh, name + ".opf")
                found.insert(0, same_bits(given.opfuse, *files) or "outputs equal in every bit")
                if given.times:
                    found.insert(1, f"time: at most {upper_ratio(given.opfuse, *files):.3f} of the old file's")
            count += 1
            changed += bool(found)
            print(f"{'CHANGED' if found else 'same   '} {name}", flush=True)
            for line in found[:8]:
                print("    " + line)
    print(f"{count} cases, {changed} changed" if given.what == "compare" else f"{count} cases recorded")
    sys.exit(1 if changed else 0)


if __name__ == "__main__":
    main()
