#!/usr/bin/env python3
"""The table of README: eight built-in models at 1 and 2 threads, all runs pooled.

    bench/readme_table.py [--minutes 14] [--pool build/readme-table.json] [--write README.md]

Passes over all cases are made until the minutes are used; a pass takes about 5 on 2 quiet cores. Every case of a pass is
added to the pool as it ends, so a run that was cut off goes on where it stopped, and later runs are pooled with earlier ones
of the same processor and the same versions. --minutes 0 only prints the table of the pool. With --write the table replaces
what stands between the two `speed` comments of the file.

Contestants: ONNX Runtime, OpenVINO pinned to fp32, OpenVINO as it comes (it may choose bf16), opfuse. The ratio is opfuse to
the faster of the two that compute in fp32: medians of all runs, 95 % interval of a bootstrap over rounds. Compile and load are
from the file to a runnable program, for opfuse `opfuse compile` with an empty kernel cache and loading the .opf.

Exit status: 0 done, 1 an output differed or a contestant could not run, 2 the command line is wrong.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from types import SimpleNamespace

from peerlib import environment

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = {"resnet50": "ResNet-50", "resnet18": "ResNet-18", "mobilenet_v2": "MobileNetV2", "efficientnet_b0": "EfficientNet-B0",
          "convnext_tiny": "ConvNeXt-T", "unet": "U-Net 256x256", "vit_b_16": "ViT-B/16", "bert_base": "BERT-base, 128 tokens"}
ORT, OPENVINO, AS_IT_COMES, OPFUSE = "ONNX Runtime", "OpenVINO", "OpenVINO as it comes", "opfuse"
FP32 = 1e-4         # largest error of a contestant in fp32, of max |output|
BEGIN, END = "<!-- speed: bench/readme_table.py -->", "<!-- end of speed -->"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--minutes", type=float, default=14, help="no case begins later (default 14)")
    add("--pool", type=pathlib.Path, default=ROOT / "build" / "readme-table.json", metavar="FILE")
    add("--write", type=pathlib.Path, metavar="README.md")
    add("--rounds", type=int, default=4, help="turns per contestant, case and pass (default 4)")
    add("--seconds", type=float, default=0.4, help="length of a turn (default 0.4)")
    add("--models", default=",".join(MODELS), help="a list of built-in models (default: the eight)")
    add("--threads", default="1,2")
    add("--opfuse-build", type=pathlib.Path, default=ROOT / "build" / "release", metavar="DIR")
    options = parser.parse_args()
    options.models = options.models.split(",")
    options.threads = [int(count) for count in options.threads.split(",")]
    if unknown := set(options.models) - set(MODELS):
        parser.error(f"not one of the eight: {', '.join(sorted(unknown))}")
    return options


def compile_model(options, path, threads, folder):
    """The .opf and the seconds of `opfuse compile` with an empty kernel cache."""
    out = pathlib.Path(folder) / "model.opf"
    command = [str(options.opfuse_build / "tools" / "opfuse" / "opfuse"), "compile", str(path), "-o", str(out), "-q",
               "--threads", str(threads)]
    with tempfile.TemporaryDirectory(prefix="opfuse-cache-") as cache:
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "XDG_CACHE_HOME": cache})
        return out, time.perf_counter() - begin


def engines(options, opf):
    from peerlib.contestants import OnnxRuntime, OpenVino, Opfuse

    class Compiled(Opfuse):
        def start(self, path, feeds, threads):
            return super().start(opf, feeds, threads)

    class AsItComes(OpenVino):
        name = AS_IT_COMES

        def __init__(self):
            super().__init__()
            del self.properties["INFERENCE_PRECISION_HINT"]

    return [OnnxRuntime(), OpenVino(), AsItComes(), Compiled(options.opfuse_build / "bench" / "opfuse_turns")]


def measure_case(options, case, threads, folder):
    """One entry of the pool; rounds of milliseconds by contestant."""
    from peerlib import measure
    settings = SimpleNamespace(contexts=1, rounds=options.rounds, seconds=options.seconds)
    opf, compile_seconds = compile_model(options, case["path"], threads, folder)
    contestants = engines(options, opf)
    rows = measure.start_all(contestants, case["path"], case["feeds"], threads)
    try:
        measure.check_outputs(contestants, rows, case["feeds"], case["other_feeds"], FP32)
        if rows[AS_IT_COMES]["status"] == "mismatch":  # the price of its precision; the table says it
            rows[AS_IT_COMES].update(status="ok", reason="")
        running = [c for c in contestants if rows[c.name]["status"] == "ok"]
        samples = measure.take_turns(running, None, settings)
    finally:
        for contestant in contestants:
            contestant.stop()
    entry = {"model": case["model"], "threads": threads, "when": time.strftime("%Y-%m-%d %H:%M"), "compile_s": compile_seconds,
             "rows": {name: {key: row.get(key) for key in ("status", "reason", "version", "load_ms", "error")}
                      for name, row in rows.items()}}
    for name, rounds in samples.items():
        entry["rows"][name]["rounds"] = [[round(float(ms), 5) for ms in turn] for turn in rounds]
    return entry


def load_pool(path, machine):
    """The entries of this machine; others are kept beside them under their own name."""
    pools = json.loads(path.read_text()) if path.exists() else {}
    return pools, pools.setdefault(machine, [])


def save_pool(path, pools):
    part = path.with_suffix(".part")
    part.write_text(json.dumps(pools))
    part.replace(path)


def current(entries):
    """Those of the versions that ran last: numbers of two builds of an engine are not one number."""
    versions = lambda entry: {name: row["version"] for name, row in entry["rows"].items()}  # noqa: E731
    return [entry for entry in entries if versions(entry) == versions(entries[-1])]


def processors():
    return len(os.sched_getaffinity(0))


def machine_name():
    from peerlib import report
    return f"{report.machine().split(', Linux')[0]}, {processors()} processors"


def run_passes(options, pools, entries):
    """Cases in turns, those with the fewest runs first, until the minutes are used. True when all were right."""
    import peers
    end = time.monotonic() + 60 * options.minutes
    models = pathlib.Path(options.pool).parent / "readme-models"
    models.mkdir(parents=True, exist_ok=True)
    prepared, longest, right = {}, {}, True
    while True:
        done = lambda case: sum((e["model"], e["threads"]) == case for e in current(entries)) if entries else 0  # noqa: E731
        case = min(((model, threads) for model in options.models for threads in options.threads), key=done)
        if time.monotonic() + longest.get(case, 30) > end:
            return right
        begin, (model, threads) = time.monotonic(), case
        if model not in prepared:
            path = models / f"{model}.onnx"
            if not path.exists():
                program = options.opfuse_build / "tools" / "opfuse" / "opfuse"
                subprocess.run([str(program), "zoo", model, "-o", str(path), "-q"], check=True, stdout=subprocess.DEVNULL)
            settings = SimpleNamespace(batch=1, dim=[], seed=0)
            prepared[model] = peers.prepare_case(path, settings, models)
        with tempfile.TemporaryDirectory(prefix="opfuse-table-") as folder:
            entries.append(measure_case(options, prepared[model], threads, folder))
        save_pool(options.pool, pools)
        longest[case] = time.monotonic() - begin
        wrong = [f"{name}: {row['reason']}" for name, row in entries[-1]["rows"].items() if row["status"] != "ok"]
        right = right and not wrong
        print(f"{model}, {threads} thread(s): {longest[case]:.0f} s {'; '.join(wrong)}", file=sys.stderr, flush=True)


def pooled(entries, model, threads):
    """Medians, ratio to the faster fp32 peer and its interval, seconds to compile and load; None without a run."""
    import numpy as np
    from peerlib import intervals
    ours = [e for e in entries if (e["model"], e["threads"]) == (model, threads)
            and all(e["rows"][name].get("rounds") for name in (ORT, OPENVINO, OPFUSE))]
    if not ours:
        return None
    rounds = {name: [np.array(turn) for e in ours for turn in e["rows"][name].get("rounds") or []]
              for name in (ORT, OPENVINO, AS_IT_COMES, OPFUSE)}
    medians = {name: float(np.median(np.concatenate(turns))) if turns else None for name, turns in rounds.items()}
    faster = min((ORT, OPENVINO), key=lambda name: medians[name])
    ratio = intervals.ratio_of_medians(rounds[OPFUSE], rounds[faster])
    load = {name: float(np.median([e["rows"][name]["load_ms"] for e in ours])) / 1e3 for name in (ORT, OPENVINO, OPFUSE)}
    return {"median": medians, "ratio": ratio, "compile": float(np.median([e["compile_s"] for e in ours])), "load": load,
            "runs": len(ours), "narrow": max(e["rows"][AS_IT_COMES].get("error") or 0 for e in ours),
            "wide": max(e["rows"][name].get("error") or 0 for e in ours for name in (OPENVINO, OPFUSE))}


def milliseconds(value):
    return "-" if value is None else f"{value:.3g}"


def cells(case):
    if case is None:
        return ["-"] * 3
    ratio, low, high = case["ratio"]
    return [milliseconds(case["median"][OPFUSE]), f"{ratio:.2f} ({low:.2f}-{high:.2f})", milliseconds(case["median"][AS_IT_COMES])]


def table(options, entries, machine):
    entries = current(entries)
    versions = {name: row["version"] for name, row in entries[-1]["rows"].items()}
    cases = {(model, threads): pooled(entries, model, threads) for model in options.models for threads in options.threads}
    counts = [case["runs"] for case in cases.values() if case]
    narrow, wide = (max((case[key] for case in cases.values() if case), default=0) for key in ("narrow", "wide"))
    days = sorted({entry["when"][:10] for entry in entries})
    head = [f"Median ms, batch 1, outputs checked, {min(counts)} run{'s' if min(counts) > 1 else ''} pooled ({days[-1]}), on {machine}. Ratio: opfuse {versions[OPFUSE]} to the "
            f"faster of ONNX Runtime {versions[ORT]} and OpenVINO {versions[OPENVINO]} in fp32 (95 % interval; below 1 opfuse is faster). OpenVINO as "
            f"it comes may choose bf16: outputs differ by up to {narrow:.1g} of their maximum, others by {wide:.1g}. Last column: "
            f"opfuse; ONNX Runtime; OpenVINO.", ""]
    titles = ["model"]
    for threads in options.threads:
        titles += [f"{threads} thread{'s' if threads > 1 else ''}", "ratio", "OpenVINO as it comes"]
    lines = ["| " + " | ".join(titles + ["compile + load, s"]) + " |", "|" + "---|" * (len(titles) + 1)]
    for model in options.models:
        last = cases[model, options.threads[-1]]
        start = "-" if last is None else (f"{last['compile']:.1f}+{last['load'][OPFUSE]:.2f}; {last['load'][ORT]:.1f}; "
                                          f"{last['load'][OPENVINO]:.1f}")
        row = [MODELS[model]] + [cell for threads in options.threads for cell in cells(cases[model, threads])] + [start]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(head + lines) + "\n"


def main():
    options = parse_arguments()
    machine = machine_name()
    options.pool.parent.mkdir(parents=True, exist_ok=True)
    pools, entries = load_pool(options.pool, machine)
    right = run_passes(options, pools, entries)
    if not entries:
        print(f"readme_table: {options.pool} has no runs of this machine ({machine})", file=sys.stderr)
        return 2
    text = table(options, entries, machine)
    print(text, end="")
    if options.write:
        before, begin, rest = options.write.read_text().partition(BEGIN)
        _, end, after = rest.partition(END)
        if not begin or not end:
            print(f"readme_table: {options.write} lacks the lines '{BEGIN}' and '{END}'", file=sys.stderr)
            return 2
        options.write.write_text(before + BEGIN + "\n" + text + END + after)
        print(f"wrote {options.write}", file=sys.stderr)
    return 0 if right else 1


if __name__ == "__main__":
    environment.enter_virtual_environment("readme_table")
    sys.exit(main())
