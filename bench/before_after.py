#!/usr/bin/env python3
"""Models beside ONNX Runtime and OpenVINO, with an earlier opfuse in the same turns: the table of docs/benchmarks.md.

    bench/before_after.py --models DIR --before PROGRAM [--minutes 4] [--only NAME,...] [--threads 1,2]
    bench/before_after.py --models DIR --minutes 0 --write docs/benchmarks.md

PROGRAM is bench/opfuse_turns of the earlier build (without it the table has no such columns); DIR has NAME.onnx with weights.
Contestants take turns in one run, fp32, the same inputs, outputs checked; Dropout nodes are taken out first, which OpenVINO
refuses in training mode. Each case is added to the pool as it ends, fewest runs first, until the minutes are used, so a long
table is measured in short quiet calls. Ratios are of medians with the 95 % interval of a bootstrap over rounds: to the faster
peer, and to the earlier build. --write replaces what stands between the two `before-after` comments of the file.

Exit status: 0 done, 1 an output differed or a contestant could not run, 2 the command line is wrong.
"""
import argparse
import pathlib
import sys
import tempfile
import time
from types import SimpleNamespace

from peerlib import environment

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = {"mobilenet_v2": "MobileNetV2", "efficientnet_v2_s": "EfficientNetV2-S", "swin_t": "Swin-T", "pvt_v2_b0": "PVT-v2-B0",
          "segformer_b0": "SegFormer-B0", "poolformer_s12": "PoolFormer-S12", "densenet121": "DenseNet-121",
          "inception_v3": "Inception-v3", "shufflenet_v2_x1_0": "ShuffleNetV2"}
ORT, OPENVINO, BEFORE, NOW = "ONNX Runtime", "OpenVINO", "opfuse, before", "opfuse"
FP32 = 1e-4  # largest error of a contestant, of max |output|
BEGIN, END = "<!-- before-after: bench/before_after.py -->", "<!-- end of before-after -->"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--models", type=pathlib.Path, required=True, metavar="DIR", help="folder of NAME.onnx with weights")
    add("--before", type=pathlib.Path, metavar="PROGRAM", help="opfuse_turns of an earlier build")
    add("--before-name", default="", metavar="TEXT", help="what that build is, for the table: a commit")
    add("--only", default=",".join(MODELS), metavar="NAME,...")
    add("--threads", default="1,2")
    add("--minutes", type=float, default=4, help="no case begins later (default 4)")
    add("--rounds", type=int, default=5, help="turns per contestant and case (default 5)")
    add("--seconds", type=float, default=0.25, help="length of a turn (default 0.25)")
    add("--pool", type=pathlib.Path, default=ROOT / "build" / "before-after.json", metavar="FILE")
    add("--opfuse-build", type=pathlib.Path, default=ROOT / "build" / "release", metavar="DIR")
    add("--write", type=pathlib.Path, metavar="FILE.md")
    options = parser.parse_args()
    options.only = options.only.split(",")
    options.threads = [int(count) for count in options.threads.split(",")]
    if missing := [name for name in options.only if options.minutes and not (options.models / f"{name}.onnx").exists()]:
        parser.error(f"{options.models} has no {', '.join(missing)}.onnx")
    return options


def engines(options):
    from peerlib.contestants import OnnxRuntime, OpenVino, Opfuse
    chosen = [OnnxRuntime(), OpenVino(), Opfuse(options.opfuse_build / "bench" / "opfuse_turns")]
    if options.before:
        chosen.insert(2, Opfuse(options.before))
        chosen[2].name = BEFORE
    return chosen


def measure_case(options, case, threads):
    """An entry of the pool: per contestant its rounds of milliseconds, or why there are none."""
    from peerlib import measure
    contestants = engines(options)
    rows = measure.start_all(contestants, case["path"], case["feeds"], threads)
    try:
        measure.check_outputs(contestants, rows, case["feeds"], case["other_feeds"], FP32)
        running = [c for c in contestants if rows[c.name]["status"] == "ok"]
        samples = measure.take_turns(running, None, SimpleNamespace(contexts=1, rounds=options.rounds, seconds=options.seconds))
    finally:
        for contestant in contestants:
            contestant.stop()
    kept = {name: {key: row.get(key) for key in ("status", "reason", "version", "error")} for name, row in rows.items()}
    for name, rounds in samples.items():
        kept[name]["rounds"] = [[round(float(ms), 5) for ms in turn] for turn in rounds]
    return {"model": case["model"], "threads": threads, "when": time.strftime("%Y-%m-%d %H:%M"), "rows": kept}


def without_dropout(path, folder):
    """The model with Dropout nodes bypassed: the identity where nothing is trained."""
    import onnx
    model = onnx.load(path)
    nodes = model.graph.node
    passed = {n.output[0]: n.input[0] for n in nodes if n.op_type == "Dropout"}
    if not passed:
        return path
    for node in nodes:
        for i, name in enumerate(node.input):
            while name in passed:
                name = passed[name]
            node.input[i] = name
    kept = [n for n in nodes if n.op_type != "Dropout"]
    del nodes[:]
    nodes.extend(kept)
    onnx.save(model, pathlib.Path(folder) / path.name)
    return pathlib.Path(folder) / path.name


def run_cases(options, entries, save):
    """Until the minutes are used; True when every contestant ran and agreed."""
    import peers
    end, longest, right, prepared = time.monotonic() + 60 * options.minutes, 0, True, {}
    cases = [(name, threads) for name in options.only for threads in options.threads]
    with tempfile.TemporaryDirectory(prefix="opfuse-before-after-") as folder:
        while time.monotonic() + longest < end:
            begin = time.monotonic()
            name, threads = min(cases, key=lambda case: sum((e["model"], e["threads"]) == case for e in entries))
            if name not in prepared:
                path = without_dropout(options.models / f"{name}.onnx", folder)
                prepared = {name: peers.prepare_case(path, SimpleNamespace(batch=1, dim=[], seed=0), folder)}
            entries.append(measure_case(options, prepared[name], threads))
            save()
            longest = max(longest, time.monotonic() - begin)
            wrong = [f"{who}: {row['reason']}" for who, row in entries[-1]["rows"].items() if row["status"] != "ok"]
            right = right and not wrong
            print(f"{name}, {threads} thread(s): {time.monotonic() - begin:.0f} s {'; '.join(wrong)}", file=sys.stderr, flush=True)
    return right


def pooled(entries, model, threads):
    """Rounds of all runs of a case by contestant, in step."""
    import numpy as np
    ours = [e for e in entries if (e["model"], e["threads"]) == (model, threads)
            and all(e["rows"].get(name, {}).get("rounds") for name in (ORT, OPENVINO, NOW))]
    both = [e for e in ours if e["rows"].get(BEFORE, {}).get("rounds")]
    rounds = lambda name, of: [np.array(turn) for e in of for turn in e["rows"][name]["rounds"]]  # noqa: E731
    return {name: rounds(name, ours) for name in (ORT, OPENVINO, NOW)} | {BEFORE: rounds(BEFORE, both)}, rounds(NOW, both)


def row_of(entries, model, threads):
    """A case by column; None without a run of all three."""
    import numpy as np
    from peerlib import intervals
    rounds, now_beside_before = pooled(entries, model, threads)
    if not rounds[NOW]:
        return None
    median = {name: float(np.median(np.concatenate(turns))) for name, turns in rounds.items() if turns}
    ratio = lambda a, b: "{:.2f} [{:.2f}, {:.2f}]".format(*intervals.ratio_of_medians(a, b))  # noqa: E731
    faster = min((ORT, OPENVINO), key=lambda name: median[name])
    cell = lambda name: f"{median[name]:.3g}" if name in median else "-"  # noqa: E731
    return {"model, threads": f"{MODELS.get(model, model)}, {threads}", "before": cell(BEFORE), "now": cell(NOW),
            "now / before": ratio(now_beside_before, rounds[BEFORE]) if rounds[BEFORE] else "-", ORT: cell(ORT),
            OPENVINO: cell(OPENVINO), "now / faster peer": ratio(rounds[NOW], rounds[faster])}


def table(options, entries, machine):
    versions = {name: row["version"] for name, row in entries[-1]["rows"].items()}
    rows = {(m, t): row_of(entries, m, t) for m in options.only for t in options.threads}
    counts = [sum((e["model"], e["threads"]) == case for e in entries) for case, row in rows.items() if row]
    rows = [row for row in rows.values() if row]
    if not rows:
        return "no case has runs of opfuse and both peers\n"
    earlier = any(row["before"] != "-" for row in rows)
    columns = [name for name in rows[0] if earlier or "before" not in name]
    before = f" Before: {options.before_name or 'an earlier build'}." if earlier else ""
    head = [f"Median ms, batch 1, fp32, outputs checked, {entries[-1]['when'][:10]}, on {machine}; {min(counts)} to {max(counts)} runs of a case "
            f"pooled.{before} ONNX Runtime {versions[ORT]}, OpenVINO {versions[OPENVINO]}; ratios with their 95 % interval, below 1 opfuse is "
            "faster.", "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join(head + ["| " + " | ".join(row[name] for name in columns) + " |" for row in rows]) + "\n"


def write_between(path, text):
    before, begin, rest = path.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        print(f"before_after: {path} lacks the lines '{BEGIN}' and '{END}'", file=sys.stderr)
        return False
    path.write_text(before + BEGIN + "\n" + text + END + after)
    print(f"wrote {path}", file=sys.stderr)
    return True


def main():
    import readme_table
    options = parse_arguments()
    machine = readme_table.machine_name()
    options.pool.parent.mkdir(parents=True, exist_ok=True)
    pools, entries = readme_table.load_pool(options.pool, machine)
    right = not options.minutes or run_cases(options, entries, lambda: readme_table.save_pool(options.pool, pools))
    if not entries:
        print(f"before_after: {options.pool} has no runs of this machine ({machine})", file=sys.stderr)
        return 2
    text = table(options, entries, machine)
    print(text, end="")
    if options.write and not write_between(options.write, text):
        return 2
    return 0 if right else 1


if __name__ == "__main__":
    environment.enter_virtual_environment("before_after")
    sys.exit(main())
