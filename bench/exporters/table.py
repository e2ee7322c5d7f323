#!/usr/bin/env python3
"""What opfuse recognises of the same model from different exporters: a Markdown table, from the files of export.py.

    bench/exporters/table.py FOLDER [--reference FOLDER] [--opfuse PROGRAM] [--write docs/exporters.md] [--check docs/exporters.md]

Modules are counted in the order of the header. A row that differs from what a person counts in the architecture (EXPECTED) has the
modules that are missing and the reasons that `opfuse explain` gives. --reference adds files whose names are those of EXPECTED;
--write replaces the table between the marks of a page, --check compares with it: rows of files that are not in the folders do not count.
Exit status: 0 all rows are as expected (with --check: as on the page), 1 some are not.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULES = {"stem": "FusedConvBNReLUMaxPool", "add": "FusedConvBNAddReLU", "convrelu": "FusedConvBNReLU", "conv": "FusedConvBN",
           "linrelu": "FusedLinearReLU", "linear": "FusedLinear", "norm": "FusedLayerNorm", "inproj": "FusedMHAInProjection",
           "sdpa": "FusedScaledDotProductAttention", "pool": "FusedAdaptiveAvgPool2d"}


def vit(blocks, head):
    return {"conv": 1, "linrelu": blocks, "linear": 2 * blocks + head, "norm": 2 * blocks + 1, "inproj": blocks, "sdpa": blocks}


#: What is in the architecture, by the beginning of the file's name; docs/exporters.md derives the numbers.
EXPECTED = {
    "resnet50": {"stem": 1, "add": 16, "convrelu": 32, "conv": 5, "pool": 1},
    "efficientnet_b0": {"convrelu": 49, "conv": 33, "pool": 17},
    "mobilenet_v2": {"convrelu": 35, "conv": 18, "pool": 1},
    "convnext_tiny": {"conv": 23, "linrelu": 18, "linear": 18, "norm": 23, "pool": 1},
    "timm_convnext_tiny": {"conv": 23, "linrelu": 18, "linear": 18, "norm": 23, "pool": 1},
    "vit_b_16": vit(12, 1),
    "timm_vit_b_16": vit(12, 1),
    "hf_vit_b_16": vit(12, 1),  # the pooler instead of a head
    "swin_t": {"conv": 2, "linrelu": 12, "linear": 27, "norm": 29, "inproj": 12, "sdpa": 12, "pool": 1},
    "timm_swin_t": {"conv": 1, "linrelu": 12, "linear": 28, "norm": 29, "inproj": 12, "sdpa": 12},
    "bert_base": {"linrelu": 12, "linear": 25, "norm": 25, "inproj": 12, "sdpa": 12},
    "distilbert": {"linrelu": 6, "linear": 12, "norm": 13, "inproj": 6, "sdpa": 6},
    "gpt2": {"linrelu": 12, "linear": 24, "norm": 25, "inproj": 12, "sdpa": 12},
    "multihead_attention": {"linear": 1, "norm": 1, "inproj": 1, "sdpa": 1},
    "keras_attention": {"linrelu": 1, "linear": 2, "norm": 2, "inproj": 1, "sdpa": 1},
    "keras_resnet50": {"stem": 1, "add": 16, "convrelu": 32, "conv": 4, "linear": 1, "pool": 1},
    "keras_mobilenet_v2": {"convrelu": 35, "conv": 17, "linear": 1, "pool": 1},
    "bert_base.optimum": {"linrelu": 12, "linear": 24, "norm": 25, "inproj": 12, "sdpa": 12},  # exported without the pooler
    "hf_vit_b_16.optimum": vit(12, 0),
    "hf_swin_t": {"conv": 1, "linrelu": 12, "linear": 27, "norm": 29, "inproj": 12, "sdpa": 12},  # no head
    "hf_convnext_tiny": {"conv": 22, "linrelu": 18, "linear": 18, "norm": 22},  # the last norm is the pooler's
    **{name: {"linrelu": 4, "linear": 12, "inproj": 4, "sdpa": 4} for name in ("llama", "qwen3")},
    "phi3": {"linear": 12, "inproj": 4, "sdpa": 4},  # the activation is behind a Split
    **{f"{name}.optimum_cache": {"linrelu": 4, "linear": 13, "inproj": 4, "sdpa": 4} for name in ("llama", "qwen3")},  # with a head
    "phi3.optimum_cache": {"linear": 13, "inproj": 4, "sdpa": 4},
    "llama_by_hand": {"linrelu": 2, "linear": 6, "inproj": 2, "sdpa": 2},
    "yolov8n": {"convrelu": 57, "conv": 7},
    "keras_convnext_tiny": {"conv": 22, "linrelu": 18, "linear": 19, "norm": 23, "pool": 1},
}

#: Dimensions of files that have no shape where open ones count as 1, as the others are.
SIZES = {"hf_swin_t.optimum": ("--dim", "height=224", "--dim", "width=224")}


def expected_of(model, exporter):
    if f"{model}.{exporter}" in EXPECTED:
        return EXPECTED[f"{model}.{exporter}"]
    names = [name for name in EXPECTED if model == name or model.startswith(name + "_")]
    return EXPECTED[max(names, key=len)] if names else None


def call(program, *arguments):
    done = subprocess.run([program, *map(str, arguments), "--json"], capture_output=True, text=True)
    if done.returncode:
        return None, (done.stderr.strip().splitlines() or ["no message"])[0]
    return json.loads(done.stdout), ""


def without_places(text):
    """A reason without names of nodes and tensors, so that equal reasons are counted together."""
    return re.sub(r'"[^"]*"|/[\w./]+', "...", text).strip()


#: Pattern of a module where the names differ.
PATTERNS = {"FusedConvBNReLUMaxPool": "StemConvBNReLUMaxPool", "FusedAdaptiveAvgPool2d": "AdaptiveAvgPool"}


def reasons(program, path, sizes, fused, missing):
    """The most frequent reasons for what is missing: operators that are not known, declined conversions, near matches of the
    missing patterns, else what keeps edges apart."""
    counts, edges = collections.Counter(), collections.Counter()
    inspected, error = call(program, "inspect", path, *sizes)
    if not inspected:
        return f"inspect: {error}"
    for node in inspected.get("opaque", []):
        counts[f"operator {node['operator']} is not known"] += 1
    for note in fused["notes"]:
        match = re.match(r"(.+) at \S+ declined, (.*)", note)
        if match and ("IdentityAdaptive" not in match[1] or "pool" in missing) and "FlattenLinear" not in match[1]:
            counts[f"{match[1]}: {without_places(match[2])}"] += 1
    explained, error = call(program, "explain", path, "--missed", *sizes)
    if not explained:
        return f"explain: {error}"
    rules = {PATTERNS.get(MODULES[name], MODULES[name].replace("Fused", "")) for name in missing}
    for remark in explained["remarks"]:
        if remark["kind"] == "missed" and remark["rule"] in rules and remark["code"] != "overlap":
            counts[f"{remark['rule']}: {remark['code']}: {without_places(remark['message'])}"] += 1
        elif remark["kind"] == "analysis":
            edges[f"edge {remark['code']}: {without_places(remark['message'])}"] += 1
    text = "; ".join(f"{count} x {text}" for text, count in (counts or edges).most_common(3))
    return text or "no pattern came near"


def row(program, path, model, exporter):
    sizes = SIZES.get(f"{model}.{exporter}", ())
    fused, error = call(program, "fuse", path, "--dry-run", *sizes)
    if not fused:
        return ["", error], False
    found = [fused["modules"].get(module, 0) for module in MODULES.values()]
    want = expected_of(model, exporter)
    text = " ".join(str(count) if count else "-" for count in found)
    if want is None:
        return [text, ""], True
    wanted = [want.get(name, 0) for name in MODULES]
    if found == wanted:
        return [text, "as counted"], True
    missing = [name for name, have, need in zip(MODULES, found, wanted) if have < need]
    differs = ", ".join(f"{module} {have} of {need}" for module, have, need in zip(MODULES.values(), found, wanted)
                        if have != need)
    return [text, f"{differs}. {reasons(program, path, sizes, fused, missing)}"], False


def table(options):
    """(lines, whether all rows are as expected)"""
    good, lines = True, ["| model | exporter | " + " ".join(MODULES) + " | |", "|---|---|---|---|"]
    rows = [(p.stem, "PyTorch 1.13", p) for p in sorted((options.reference or pathlib.Path("/nowhere")).glob("*.onnx"))]
    for label in sorted({p.name.rsplit(".", 1)[0] for p in options.folder.iterdir() if p.suffix in (".onnx", ".txt")}):
        model, _, exporter = label.partition(".")
        rows.append((model, exporter, options.folder / f"{label}.onnx"))
    for model, exporter, path in sorted(rows, key=lambda r: (r[0], r[1] != "PyTorch 1.13", r[1])):
        if path.exists():
            cells, fine = row(options.opfuse, path, model, exporter)
        else:
            cells, fine = ["", "not exported: " + path.with_suffix(".txt").read_text().strip()[:200]], False
        good = good and fine
        lines.append(f"| {model} | {exporter} | " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    versions = {tool for file in options.folder.glob("*.with") for tool in file.read_text().strip().split(", ")}
    return [*lines, "", "Packages: " + ", ".join(sorted(versions)) + "."], good


def check(page, lines):
    """Rows that the page has otherwise, as lines to print."""
    text = page.read_text()
    shown = text[text.index("<!-- table:begin -->"):text.index("<!-- table:end -->")].splitlines()

    def rows(of):
        return {tuple(line.split(" | ")[:2]): line for line in of if line.startswith("| ")}

    there, now = rows(shown), rows(lines)
    return [line for key, found in now.items() if found != there.get(key)
            for line in (f"page: {there.get(key, 'no such row')}", f"now:  {found}")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--reference", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--write", type=pathlib.Path, metavar="PAGE")
    parser.add_argument("--check", type=pathlib.Path, metavar="PAGE")
    parser.add_argument("--opfuse", default=str(ROOT / "build/release/tools/opfuse/opfuse"), metavar="PROGRAM")
    options = parser.parse_args()
    lines, good = table(options)
    if options.check:
        differences = check(options.check, lines)
        print(*(differences or [f"{options.check}: as measured"]), sep="\n")
        return 1 if differences else 0
    print(*lines, sep="\n")
    if options.write:
        page = options.write.read_text()
        begin, end = "<!-- table:begin -->\n", "<!-- table:end -->"
        options.write.write_text(page[:page.index(begin)] + begin + "\n".join(lines) + "\n" + page[page.index(end):])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
