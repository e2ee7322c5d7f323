#!/usr/bin/env python3
"""Where the time of a model goes: launches of `opfuse profile` gathered by kernel, as a Markdown table.

    bench/profile_table.py [--opfuse PROGRAM] [--threads N] [--slices 6] MODEL [ARGUMENTS OF opfuse profile ...]

Each launch counts with its least mean over short slices, since on a shared machine whole seconds run slower. The limit of a
kernel is the multiply-add rate of the same run; lost = time - FLOP / that rate. `--json FILE` keeps the rows."""
import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def profile(options):
    words = [options.opfuse, "profile", options.model, "--threads", str(options.threads), "--json"]
    words += ["--duration", options.slice, "--warmup", "100ms", *options.rest]
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr.strip() or f"profile_table: {words[0]} ended with {done.returncode}")
    return json.loads(done.stdout)


def kind_of(launch):
    """The module, or the operators, that a launch computes, without the numbers of its layer."""
    name = re.sub(r"\[\d+\]$", "", launch["kernel"]).split("__")[0]
    return launch["pattern"] or name


def gather(slices):
    """Launches in order, each with its least time."""
    best = [dict(launch) for launch in slices[0]["kernels"]]
    for document in slices[1:]:
        for launch, again in zip(best, document["kernels"], strict=True):
            launch["ms"] = min(launch["ms"], again["ms"])
    return best


def rows_of(launches, rate):
    rows = {}
    for launch in launches:
        row = rows.setdefault((kind_of(launch), launch["symbol"]), dict.fromkeys(("launches", "ms", "flop", "bytes"), 0))
        row["kernel"], row["schedule"] = kind_of(launch), launch["schedule"]
        row["launches"] += 1
        for key in ("ms", "flop", "bytes"):
            row[key] += launch[key]
    for row in rows.values():
        row["limit_ms"] = row["flop"] / rate / 1e6
        row["lost_ms"] = row["ms"] - row["limit_ms"]
    return sorted(rows.values(), key=lambda row: -row["lost_ms"])


def show(document, rows, options):
    total = sum(row["ms"] for row in rows)
    limit = sum(row["limit_ms"] for row in rows)
    print(f"{pathlib.Path(options.model).stem}, {options.threads} thread{'s' * (options.threads > 1)}: sum {total:.2f} ms, "
          f"{100 * limit / total:.1f} % of the FMA limit ({document['fma_limit_gflop_per_s']:.0f} GFLOP/s)\n")
    print("| kernel | launches | ms | share of the limit | lost ms | GB/s | schedule |")
    print("|---|---|---|---|---|---|---|")
    shown = rows[:options.rows]
    for row in shown:
        print(f"| {row['kernel']} | {row['launches']} | {row['ms']:.3f} | {100 * row['limit_ms'] / row['ms']:.0f} % | "
              f"{row['lost_ms']:.3f} | {row['bytes'] / row['ms'] / 1e6:.1f} | {row['schedule']} |")
    if rest := rows[options.rows:]:
        ms, floor = (sum(row[key] for row in rest) for key in ("ms", "limit_ms"))
        print(f"| {len(rest)} others | {sum(row['launches'] for row in rest)} | {ms:.3f} | {100 * floor / ms:.0f} % | "
              f"{ms - floor:.3f} | | |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--opfuse", type=pathlib.Path, default=ROOT / "build/release/tools/opfuse/opfuse", metavar="PROGRAM")
    add("--threads", type=int, default=1)
    add("--slices", type=int, default=6, help="runs of the profiler (default 6)")
    add("--slice", default="400ms", metavar="TIME", help="length of one (default 400ms)")
    add("--rows", type=int, default=8, help="kernels shown, the others in one row (default 8)")
    add("--json", type=pathlib.Path, metavar="FILE")
    add("model")
    options, options.rest = parser.parse_known_args()
    slices = [profile(options) for _ in range(max(1, options.slices))]
    fastest = max(slices, key=lambda document: document["fma_limit_gflop_per_s"])
    rows = rows_of(gather(slices), fastest["fma_limit_gflop_per_s"])
    show(fastest, rows, options)
    if options.json:
        options.json.write_text(json.dumps({"model": options.model, "threads": options.threads, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
