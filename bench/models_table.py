#!/usr/bin/env python3
"""docs/models.md: what opfuse makes of exported architectures, and its time beside each peer.

    bench/models_table.py FOLDER --build build/release [--write docs/models.md] [--seconds 0.5] [--threads 1] [--no-times]
                          [--add results-COMMIT.json ...]

FOLDER holds <name>.<exporter>.onnx (bench/exporters/export_architectures.py) and .txt files with reasons. Every model is
inspected, compiled and run in processes of their own; outputs are held to ONNX Runtime's by bench/peers.py, which also takes the
times in turns. What is finished for this commit is in FOLDER/results-COMMIT.json and is not done again. --add takes rows of
earlier runs for exports that this one has not: each row names the commit it was made at.
"""
import argparse
import datetime
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from peerlib import environment

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT = 600  # seconds for a step

HEAD = """# Public architectures

Made by `bench/models_table.py` on {date}: random weights, batch 1, {threads} thread(s), fp32. *right*: the outputs equal ONNX Runtime's within
the tolerance of `bench/peers.py`. Times are medians in turns; a ratio above 1 means that opfuse is slower than that peer. *blocked by* is the first operator that
does not compile, *commit* the tree that the row was made with. {note}

"""


def run(command):
    """(exit code, output); a code below 0 is a signal, None no end."""
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=LIMIT)
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        return None, "", ""


def dims(opfuse, model):
    """--dim NAME=1 for dimensions that the file leaves open."""
    _, out, _ = run([opfuse, "inspect", model, "--json"])
    names = set(re.findall(r'"([A-Za-z_][\w.]*)"', " ".join(re.findall(r'"shape": \[([^\]]*)\]', out))))
    return [word for name in sorted(names) for word in ("--dim", f"{name}=1")]


def blocker(text):
    """The first node of E0502's list, else the error's own line."""
    listed = re.search(r"^\s+\S+ \((\w+)\): (.*)$", text, re.M)
    if listed:
        return f"{listed.group(1)}: {listed.group(2)}"
    error = re.search(r"error\[E\d+\] (.*)", text)
    return error.group(1) if error else text.strip().split("\n")[-1][:100]


def compiled(opfuse, model, folder):
    code, out, err = run([opfuse, "compile", model, "-o", pathlib.Path(folder) / "model.opf", "--json", *dims(opfuse, model)])
    if code is None:
        return {"status": "hang"}
    if code < 0 or code >= 128:
        return {"status": "crash", "blocker": f"signal {-code if code < 0 else code - 128}"}
    if code != 0:
        return {"status": "internal error" if code == 70 else "refused", "blocker": blocker(err)}
    return {"status": "compiled", "launches": json.loads(out)["launches"]}


def timed(model, flags, folder):
    document = pathlib.Path(folder) / "peers.json"
    command = [sys.executable, ROOT / "bench" / "peers.py", model, "--opfuse-build", flags.build, "--threads", flags.threads, "--seconds", flags.seconds, "--json", document]
    code, _, err = run(command)
    if not document.exists():
        return {"status": "hang" if code is None else "not compared", "blocker": err.strip().split("\n")[-1][:100]}
    rows = {row["name"]: row for row in json.loads(document.read_text())["cases"][0]["contestants"]}
    own = next((row for name, row in rows.items() if "opfuse" in name.lower()), {})
    result = {"status": {"ok": "right", "mismatch": "wrong"}.get(own.get("status"), own.get("status", "?")), "ms": own.get("median")}
    if own.get("status") != "ok":
        result["blocker"] = own.get("reason", "")[:100]
    result["peers"] = {name: row.get("median") for name, row in rows.items() if "opfuse" not in name.lower() and row.get("status") == "ok"}
    return result


def measure(model, flags):
    opfuse = flags.build / "tools" / "opfuse" / "opfuse"
    with tempfile.TemporaryDirectory() as folder:
        result = compiled(opfuse, model, folder)
        if result["status"] == "compiled" and not flags.no_times:
            result.update(timed(model, flags, folder))
    return result


def ratio(result, part):
    times = [t for name, t in result.get("peers", {}).items() if part in name.lower() and t]
    return f"{result['ms'] / times[0]:.2f}" if times and result.get("ms") else ""


def table(results, flags):
    counts = {}
    for result in results.values():
        counts[result["status"]] = counts.get(result["status"], 0) + 1
    note = "Without times." if flags.no_times else ""
    text = HEAD.format(date=datetime.date.today(), threads=flags.threads, note=note)
    text += f"{len(results)} exports: " + ", ".join(f"{n} {status}" for status, n in sorted(counts.items())) + ".\n\n"
    text += "| architecture | exporter | status | launches | ms | of ONNX Runtime | of OpenVINO | blocked by | commit |\n|---|---|---|---:|---:|---:|---:|---|---|\n"
    for stem, r in sorted(results.items()):
        name, exporter = stem.rsplit(".", 1)
        ms = f"{r['ms']:.3g}" if r.get("ms") else ""
        text += f"| {name} | {exporter} | {r['status']} | {r.get('launches', '')} | {ms} | {ratio(r, 'onnx')} | {ratio(r, 'openvino')} | {r.get('blocker', '').replace('|', '/')} | {r['commit']} |\n"
    return text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--seconds", default="0.5")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--no-times", action="store_true")
    parser.add_argument("--add", type=pathlib.Path, action="append", default=[], metavar="RESULTS")
    flags = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT).stdout.strip()
    state = flags.folder / f"results-{commit}.json"
    results = json.loads(state.read_text()) if state.exists() else {}
    for path in sorted([*flags.folder.glob("*.onnx"), *flags.folder.glob("*.txt")]):
        if path.stem in results:
            continue
        results[path.stem] = {"status": "not exported", "blocker": path.read_text().strip().split("\n")[0][:100]} if path.suffix == ".txt" else measure(path, flags)
        state.write_text(json.dumps(results, indent=1))
        print(path.stem, results[path.stem]["status"], results[path.stem].get("blocker", ""), flush=True)
    rows = {name: {**row, "commit": path.stem.removeprefix("results-")} for path in flags.add for name, row in json.loads(path.read_text()).items()}
    rows |= {name: {**row, "commit": commit} for name, row in results.items()}
    text = table(rows, flags)
    flags.write.write_text(text) if flags.write else print(text)


if __name__ == "__main__":
    environment.enter_virtual_environment("peers")
    main()
