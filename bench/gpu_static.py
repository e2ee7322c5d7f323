#!/usr/bin/env python3
"""What can be said of CUDA kernels without a GPU: registers, shared memory, spills, instructions per product, bytes per
launch, modelled and floor time, for the built-in models x types x batches x architectures.

    bench/gpu_static.py                                  all variants -> build/gpu-static/table.tsv
    bench/gpu_static.py --models resnet50 --types f16 --batches 128 --archs sm_80 --kernels    each kernel of one
    bench/gpu_static.py --against bench/gpu_static.tsv --check    only what has other kernels than the table says
    bench/gpu_static.py --against bench/gpu_static.tsv --check --sample --budget 40     what tests do, within 40 s: the table's variants that
                         have other kernels now, and one kernel of each skeleton, type and architecture of the others

Kernels are compiled by NVRTC and disassembled by nvdisasm (pip install nvidia-cuda-nvrtc nvidia-cuda-nvdisasm). What is
known of a kernel's text is kept in --cache, so a run goes on where the last one ended; --budget ends it in time and says
what is left (exit code 3). Times are modelled (gpu_time_model.py), not measured."""
import argparse
import collections
import ctypes
import glob
import hashlib
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from gpu_time_model import floor_time, kernel_time, numbers  # beside this file

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ["resnet50", "mobilenet_v2", "convnext_tiny", "vit_b_16", "bert_base"]
TYPES = ["f32", "tf32", "f16", "bf16"]
WIDTHS = {"f64": 8, "i64": 8, "u64": 8, "f16": 2, "bf16": 2, "i16": 2, "u16": 2, "i8": 1, "u8": 1, "bool": 1}  # bytes; others 4
FACTS = "4"  # changes with what is read off a kernel
MEMORY = ("LDG", "STG", "LDS", "STS", "LDSM", "LDGSTS", "LDL", "STL")
INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9_.]+)\s*(.*?);")
COLUMNS = ["model", "type", "batch", "arch", "launches", "kernels", "spills", "stack", "serialised", "most_registers", "most_shared",
           "instructions_per_hmma", "instructions_per_hgmma", "no_copy_engine", "narrow_stores", "most_bytes", "calls",
           "modelled_ms", "floor_ms", "text"]
# What --check names above its bar; it fails on HELD alone.
HELD = ("spills", "stack", "serialised", "narrow_stores")
BARS = {"spills": 0, "stack": 0, "serialised": 0, "narrow_stores": 0, "instructions_per_hmma": 2.2, "instructions_per_hgmma": 25,
        "most_bytes": 1.1, "no_copy_engine": 0}
LAUNCHES = {"bert_base": 90, "vit_b_16": 90, "convnext_tiny": 66}


def find_tools():
    libraries = [os.environ.get("OPFUSE_NVRTC", ""), "/usr/local/cuda/lib64/libnvrtc.so.13"]
    tools = [shutil.which("nvdisasm") or ""]
    for base in [os.environ.get("VIRTUAL_ENV", ""), os.environ.get("OPFUSE_CUDA_VENV", ""), sys.prefix]:
        if base:
            libraries += glob.glob(f"{base}/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.1[23]")
            tools += glob.glob(f"{base}/lib/python3*/site-packages/nvidia/*/bin/nvdisasm")
    library = next((x for x in libraries if x and os.path.exists(x)), None)
    tool = next((x for x in tools if x and os.path.exists(x)), None)
    return library, tool


class Nvrtc:
    def __init__(self, path):
        self.api = ctypes.CDLL(path)

    def compile(self, text, name, arch):
        api, program = self.api, ctypes.c_void_p()
        options = [f"--gpu-architecture={arch}", "--std=c++17", "--fmad=false", "--ptxas-options=-v"]
        words = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        api.nvrtcCreateProgram(ctypes.byref(program), text.encode(), f"{name}.cu".encode(), 0, None, None)
        failed = api.nvrtcCompileProgram(program, len(options), words)
        size = ctypes.c_size_t()
        api.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        api.nvrtcGetProgramLog(program, log)
        if failed:
            sys.exit(f"NVRTC refused {name}:\n{log.value.decode()}")
        api.nvrtcGetCUBINSize(program, ctypes.byref(size))
        cubin = ctypes.create_string_buffer(size.value)
        api.nvrtcGetCUBIN(program, cubin)
        api.nvrtcDestroyProgram(ctypes.byref(program))
        return cubin.raw, log.value.decode()


def parse(sass):
    """[(mnemonic, operands)], and loops as pairs of first and last instruction."""
    code, labels = [], {}
    for line in sass.splitlines():
        label = re.match(r"^(\.L_\w+):", line.strip())
        if label:
            labels[label.group(1)] = len(code)
        elif found := INSTRUCTION.match(line):
            code.append((found.group(2), found.group(3)))
    loops = []
    for i, (op, operands) in enumerate(code):
        target = re.search(r"\.L_\w+", operands) if op.startswith("BRA") else None
        if target and labels.get(target.group(0), i) < i:
            loops.append((labels[target.group(0)], i))
    return code, loops


def histogram(code):
    counts = collections.Counter()
    for op, _ in code:
        base = op.split(".")[0]
        if base in MEMORY and base != "LDSM":
            width = "128" if ".128" in op else "64" if ".64" in op else "16" if "16" in op else "8" if "8" in op else "32"
            counts[f"{base}.{width}"] += 1
        elif base == "LDSM":
            counts["LDSM." + op.split(".")[-1]] += 1
        else:
            counts[base] += 1
    return counts


def main_loop(code, loops, head):
    """The loop around the products: what a warp issues in one trip, loops within it (fills) counted by their trips. A
    product of four warps (HGMMA) counts as the 16 x 8 x 16 ones that it stands for in each."""
    groups = any(op.startswith("HGMMA") for op, _ in code)
    unit, least = ("HGMMA", 4) if groups else ("HMMA", 8)
    found = [l for l in loops if histogram(code[l[0]:l[1] + 1])[unit] >= least]
    if not found:
        return None
    first, last = min(found, key=lambda l: l[1] - l[0])
    around = [l for l in found if l[0] <= first and l[1] >= last and head["skeleton"] != "tma"]  # its steps have no BAR
    first, last = next((l for l in sorted(around, key=lambda l: l[1] - l[0])
                        if histogram(code[l[0]:l[1] + 1])["BAR"]), (first, last))
    counts = histogram(code[first:last + 1])
    inner = [l for l in loops if first <= l[0] and l[1] <= last and l != (first, last)]
    outermost = [l for l in inner if not any(o != l and o[0] <= l[0] and l[1] <= o[1] for o in inner)]
    issued = last - first + 1
    for begin, end in outermost:
        fill = histogram(code[begin:end + 1])
        moved = fill["LDGSTS.128"] or fill["STS.16" if head["factor_bytes"] == 2 else "STS.32"]
        if moved and not fill[unit] and head["tile_k"]:
            together = 16 / head["factor_bytes"] if fill["LDGSTS.128"] else 1
            per_thread = head["tile_k"] * (head["tile_m"] + head["tile_n"]) / 2 / together / head["block"]
            issued += (end - begin + 1) * (per_thread / moved - 1)
    matrices = counts["LDSM.4"] * 4 + counts["LDSM.2"] * 2 + counts["LDSM.M88"]
    products = counts["HMMA"]
    if groups:  # operands from shared memory, a quarter a warp, but for a left one in registers
        columns = [(int(re.match(r"x(\d+)x", operands).group(1)), re.match(r"\S+ R\d+, R\d+", operands) is not None)
                   for op, operands in code[first:last + 1] if op.startswith("HGMMA")]  # op: HGMMA.64
        products = sum(n // 8 for n, _ in columns)
        matrices = sum((n if kept else 64 + n) * 32 / 128 / 4 for n, kept in columns)
    steps = products * head["block"] / 32 * head["terms"] / max(1, head["tile_m"] * head["tile_n"] * head["tile_k"])
    return {"products": products, "issued": issued, "matrix_cycles": matrices, "instructions": counts[unit], "groups": groups,
            "filled_bytes": head["filled"] or steps * (head["tile_m"] + head["tile_n"]) * head["tile_k"] * head["factor_bytes"], "end": last}


def schedule_of(text):
    words = re.search(r"^// schedule  (.*)$", text, re.M).group(1)
    return {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", words)}


def product_of(text, domain):
    """Rows and columns of a product of narrow types: of the domain's axes that one of both operands is read along."""
    summed = re.search(r"^//   reduction sum (.*\bmul\(.*)$", text, re.M)
    used = list(dict.fromkeys(re.findall(r"\br(\d+):(?:f16|bf16|tf32)", summed.group(1)))) if summed else []
    if "// stage contraction" not in text or len(used) != 2:
        return {"contraction": False}
    reads = re.findall(r"^//   read param \d+ at \[(.*)\]$", text, re.M)
    a, b = ({int(x) for x in re.findall(r"\ba(\d+)", reads[int(i)])} for i in used)
    size = lambda axes: math.prod(domain[i] for i in axes if i < len(domain))
    return {"contraction": True, "rows": size(a - b), "columns": size(b - a)}


def head_of(text):
    """What the head of a kernel's file and its constants say."""
    constants = {k: int(v) for k, v in re.findall(r"^constexpr int (k\w+) = (\d+);", text, re.M)}
    launch = re.search(r"^// launch    grid (\d+), block (\d+)(?:, (\d+) bytes)?", text, re.M)
    work = re.search(r"^// bytes     (\d+) read, (\d+) written; (\d+) FLOP", text, re.M)
    skeleton = re.search(r"^// schedule  (\w+)", text, re.M).group(1)
    attention = skeleton in ("attention_mma", "attention_tma")
    head = {"skeleton": skeleton, "keys": constants.get("kKeys", 0),
            "filled": 2 * constants["kKeys"] * (constants["kDepth"] + constants["kColumns"]) if attention else 0,
            "grid": int(launch.group(1)), "block": int(launch.group(2)), "given": int(launch.group(3) or 0),
            "read": int(work.group(1)), "written": int(work.group(2)), "flop": int(work.group(3)),
            "tile_m": constants.get("kTileM", 0), "tile_n": constants.get("kTileN", 0),
            "tile_k": constants.get("kTileK", 0), "stages": constants.get("kStages", 2),
            "schedule": schedule_of(text), "domain": numbers(text, "domain"), "reduce": numbers(text, "reduce")}
    if skeleton == "tma":  # blocks that stay: modelled as one for each tile; of its groups one copies
        head["grid"] = int(re.search(r"; tile < (\d+);", text).group(1))
        head["block"] = constants["kGroups"] * 128
        head["steps"] = int(re.search(r"(?:step <|steps =) (\d+);", text).group(1))
    if skeleton == "attention_tma":  # a warp of its own copies
        head["block"] = constants["kGroups"] * 128
    wide = skeleton in ("mma", "wgmma", "tma") and ":tf32" in text  # products are half as deep, of factors twice as wide
    head.update(factor_bytes=4 if wide else 2, terms=1024 if wide else 2048)
    return dict(head, **product_of(text, head["domain"]))


def dynamic_count(code, loops, head):
    """Instructions of a warp of a kernel without products: those of its longest loop times the trips, once the others."""
    if head["skeleton"] == "attention":  # multiply-adds and the loads beside them
        return len(code) + head["flop"] / 2 / (head["grid"] * head["block"]) * 1.5
    if not loops or not head["reduce"]:
        return len(code)
    first, last = max(loops, key=lambda l: l[1] - l[0])
    team, reduce = head["schedule"].get("team", 1), [r for r in head["reduce"] if r > 1]
    terms = math.prod(reduce)
    if "tile_m" in head["schedule"]:
        trips = -(-terms // head["schedule"]["tile_k"])
    elif team == 1 and len(reduce) > 1:
        trips = reduce[0]
    else:
        trips = max(1, terms / (team * head["schedule"].get("vector", 1) * 4))
    if "per_thread" in head["schedule"]:
        trips = 1
    return len(code) + (last - first + 1) * (trips - 1)


def symbol_of(text):
    return re.search(r"^// kernel    (\S+)", text, re.M).group(1)


def sections(text, mark):
    """Parts of a text by the name that each one's first line holds."""
    found = list(re.finditer(mark, text, re.M))
    ends = [m.start() for m in found[1:]] + [len(text)]
    return {m.group(1): text[m.start():end] for m, end in zip(found, ends)}


def compiled(texts, arch, tools, cache):
    """Log and SASS of each text, by symbol. All are one program, a namespace each: a start of nvdisasm takes longer than
    most kernels do."""
    nvrtc, nvdisasm = tools
    program = "".join(f"namespace kernel_{i} {{\n{body_of(text)}}}\n" for i, text in enumerate(texts))
    cubin, log = nvrtc.compile(program, "kernels", arch)
    binary = cache / f"{os.getpid()}.cubin"
    binary.write_bytes(cubin)
    sass = subprocess.run([nvdisasm, "-c", binary], capture_output=True, text=True, check=True).stdout
    binary.unlink()
    logs = sections(log, r"^ptxas info\s*: Compiling entry function '(\w+)'")
    codes = sections(sass, r"^//-+ \.text\.(\w+)")
    warnings = {name: re.findall(rf"\((C75\d\d)\)[^\n]*'{name}'", log) for name in logs}
    return {s: (logs[s], codes[s], warnings[s]) for s in map(symbol_of, texts)}


def facts_path(text, arch, cache):
    return cache / "kernels" / f"{hashlib.sha1((body_of(text) + arch + FACTS).encode()).hexdigest()[:20]}.json"


def find_facts(texts, arch, tools, cache):
    """Facts of kernels' texts on an architecture, compiled once, eight at a time."""
    texts = list({facts_path(text, arch, cache): text for text in texts}.values())
    missing = [text for text in texts if not facts_path(text, arch, cache).exists()]
    for first in range(0, len(missing), 8):
        some = missing[first:first + 8]
        for text, (log, sass, warnings) in zip(some, compiled(some, arch, tools, cache).values()):
            facts_path(text, arch, cache).write_text(json.dumps(facts_from(text, log, sass, warnings)))


def facts_from(text, log, sass, warnings):
    code, loops = parse(sass)
    head, counts = head_of(text), histogram(code)
    loop = main_loop(code, loops, head) if counts["HMMA"] or counts["HGMMA"] else None
    tail = code[loop["end"] + 1:] if loop else []
    numbers_in = lambda what: [int(x) for x in re.findall(rf"(\d+) {what}", log)]
    return {"registers": max(numbers_in("registers") + [0]), "spills": sum(numbers_in("bytes spill")),
            "stack": max(numbers_in("bytes stack frame") + [0]), "static": max(numbers_in("bytes smem") + [0]),
            "instructions": len(code), "counts": dict(counts), "main_loop": loop, "tail_issued": len(tail),
            "issued": dynamic_count(code, loops, head),
            "calls": sum(op.startswith("CALL") and "$" in operands for op, operands in code), "warnings": warnings}


def sixteen_byte_stores(head, text):
    """Whether the schedule stores 16 bytes of 16-bit types."""
    outputs = re.findall(r"^//   output param \d+ (\w+)\[", text, re.M)
    return head["schedule"].get("vector", 1) == 8 and all(t in ("f16", "bf16") for t in outputs)


def bytes_moved(text, head):
    """Bytes that a launch reads and writes, rows as often as its head says, beside those of its operands."""
    again = re.search(r"^// rows .*is read (\d+) times", text, re.M)
    operands = 0
    for _, dtype, shape in re.findall(r"^// (?!param )(\w+) +(?:input|constant|output) (\w+)\[([\d,]*)\]", text, re.M):
        operands += WIDTHS.get(dtype, 4) * math.prod(int(x) for x in shape.split(",") if x)
    return (head["read"] * (int(again.group(1)) if again else 1) + head["written"]) / max(1, operands)


def kernel_rows(paths, dtype, arch, tools, cache):
    paths = sorted(paths)
    find_facts([path.read_text() for path in paths], arch, tools, cache)
    for path in paths:
        text = path.read_text()
        body = body_of(text)
        head = head_of(text)
        facts = dict(json.loads(facts_path(text, arch, cache).read_text()), **head)
        facts["shared"] = facts["static"] + facts["given"]
        facts["file"], facts["launches"] = path.stem, max(1, len(re.findall(r"^// group ", text, re.M)))
        facts["narrow_stores"] = facts["counts"].get("STG.32", 0) if sixteen_byte_stores(head, text) else 0
        facts["bytes"] = bytes_moved(text, head)
        if facts["main_loop"]:
            warps = head["block"] / 32
            if head["skeleton"].startswith("attention"):  # all keys pass each block
                facts["products_per_warp"] = facts["main_loop"]["products"] * -(-head["domain"][-1] // head["keys"])
            else:
                steps = head.get("steps") or -(-math.prod(head["reduce"]) // head["tile_k"])
                facts["products_per_warp"] = steps * head["tile_m"] * head["tile_n"] * head["tile_k"] / head["terms"] / warps
        facts["modelled"], facts["floor"] = kernel_time(facts, arch), floor_time(facts, dtype, arch)
        facts["body"] = body
        yield facts


def model_text(opfuse, model, dtype, batch, cache):
    """The built-in model as text, weights drawn by seeds: the kernels do not depend on them."""
    path = cache / f"{model}-{dtype}-{batch}.fir"
    if path.exists():
        return path
    raw = cache / f"{model}-{batch}.fir"
    subprocess.run([opfuse, "zoo", model, "--batch", str(batch), "-o", raw, "--force"], check=True, capture_output=True)
    text, count = raw.read_text(), 0

    def drawn(_):
        nonlocal count
        count += 1
        return f"rand<{count}> : f32["

    text = re.sub(r'file<"[^"]*", \d+> : f32\[', drawn, text)
    if 'file<"' not in text:  # integers may be
        for written in cache.glob(f"{raw.stem}.*"):  # weights take up to 350 MB
            written.unlink()
    if dtype in ("f16", "bf16"):
        text = re.sub(r"= cast\((%\S+)\) : f32", rf"= cast(\1) {{to = {dtype}}} : f32", text)
        text = re.sub(r"\bf32\b", dtype, text)
    path.write_text(text)
    return path


def over_bars(row):
    """What of a row is above its bar, and in words."""
    bars = dict(BARS, launches=LAUNCHES.get(row["model"], math.inf))
    name = " ".join(str(row[c]) for c in COLUMNS[:4])
    return [(what, f"{name}: {what} {row[what]}, bar {bar}") for what, bar in bars.items() if row[what] != "-" and float(row[what]) > bar]


def hash_of(bodies):
    return hashlib.sha1("".join(sorted(hashlib.sha1(b.encode()).hexdigest() for b in bodies)).encode()).hexdigest()[:12]


def body_of(text):
    return "\n".join(l for l in text.splitlines() if not l.startswith("//")) + "\n"


def of_new_kinds(paths, dtype, arch, kinds):
    """One kernel of each skeleton that `kinds` has not for this type and architecture."""
    for path in sorted(paths):
        kind = (head_of(path.read_text())["skeleton"], dtype, arch)
        if kind not in kinds:
            kinds.add(kind)
            yield path


def faults(kernels):
    """What single kernels fail on: HELD, of each."""
    for k in kernels:
        found = [what for what in ("spills", "stack", "warnings", "narrow_stores") if k[what]]
        if found:
            yield f"{k['file']}: {', '.join(f'{what} {k[what]}' for what in found)}"


def variant(args, tools, known, kinds, model, dtype, batch, arch):
    """The row of a variant and its kernels; what `known` says where the texts are those, with --sample some kernels even so."""
    folder = args.cache / "texts" / f"{model}-{dtype}-{batch}-{arch}"
    shutil.rmtree(folder, ignore_errors=True)
    graph = model_text(args.opfuse, model, dtype, batch, args.cache)
    precision = ["--precision", "tf32"] if dtype == "tf32" else []
    subprocess.run([args.opfuse, "compile", graph, "--target", f"cuda:{arch}", "--emit", "cuda", folder, "--no-cache", *precision],
                   check=True, capture_output=True)
    row = known.get((model, dtype, str(batch), arch))
    texts = list(folder.glob("*.cu"))
    if row and row["text"] == hash_of(body_of(p.read_text()) for p in texts):
        chosen = of_new_kinds(texts, dtype, arch, kinds) if args.sample else []
        return row, list(kernel_rows(chosen, dtype, arch, tools, args.cache))
    kernels = list(kernel_rows(texts, dtype, arch, tools, args.cache))
    ratios = {groups: [k["main_loop"]["issued"] / k["main_loop"]["instructions"] for k in kernels
                       if k["main_loop"] and products_count(k) and k["main_loop"]["groups"] == groups]
              for groups in (False, True)}
    total = lambda field: sum(k[field] * k["launches"] for k in kernels)
    row = {"model": model, "type": dtype, "batch": batch, "arch": arch, "launches": sum(k["launches"] for k in kernels),
           "kernels": len(kernels), "spills": total("spills"), "stack": total("stack"),
           "serialised": sum(bool(k["warnings"]) for k in kernels),
           "most_registers": max(k["registers"] for k in kernels), "most_shared": max(k["shared"] for k in kernels),
           "instructions_per_hmma": f"{max(ratios[False]):.2f}" if ratios[False] else "-",
           "instructions_per_hgmma": f"{max(ratios[True]):.2f}" if ratios[True] else "-",
           "no_copy_engine": sum(map(without_copy_engine, kernels)) if arch == "sm_90a" and dtype != "f32" else "-",
           "narrow_stores": sum(k["narrow_stores"] > 0 for k in kernels), "most_bytes": f"{max(k['bytes'] for k in kernels):.2f}",
           "calls": sum(k["calls"] for k in kernels),
           "modelled_ms": f"{total('modelled') * 1e3:.3f}", "floor_ms": f"{total('floor') * 1e3:.3f}",
           "text": hash_of(k["body"] for k in kernels)}
    return row, kernels


def products_count(k):
    """Those that the bars are set for: products with k % 8 = 0 whose operands are copied past the registers. Of one step
    that is no loop nothing is counted."""
    copied = all(k["schedule"].get(f"copy_{x}") or k["schedule"].get(f"map_{x}") for x in "ab")
    return math.prod(k["reduce"]) % 8 == 0 and copied and k.get("steps") != 1


def without_copy_engine(k):
    """A product of 16-bit types with m, n >= 64 and k % 8 = 0 that has not both HGMMA and UTMALDG."""
    has = all(any(c.startswith(op) for c in k["counts"]) for op in ("HGMMA", "UTMALDG"))
    return k["contraction"] and min(k["rows"], k["columns"]) >= 64 and math.prod(k["reduce"]) % 8 == 0 and not has


def show(kernels):
    for k in sorted(kernels, key=lambda k: -k["modelled"] * k["launches"]):
        loop = k["main_loop"]
        per = f"{loop['issued'] / loop['instructions']:.2f}/H{'G' if loop['groups'] else ''}MMA" if loop else ""
        width = {c: n for c, n in k["counts"].items() if c.startswith(("STG", "LDG.", "LDL", "STL"))}
        print(f"{k['file'][:56]:56} x{k['launches']:<3} {k['modelled'] * 1e6:8.1f} us, floor {k['floor'] * 1e6:7.1f}  regs "
              f"{k['registers']:3} shared {k['shared']:6} spills {k['spills']} n {k['instructions']} {per} {width}")


def key(row):
    return tuple(str(row[c]) for c in COLUMNS[:4])


def table_of(path):
    """The rows of a table, by variant."""
    if not path or not path.exists():
        return {}
    head, *lines = path.read_text().splitlines()
    if head.split("\t") != COLUMNS:
        sys.exit(f"{path} has other columns: write another one, or leave out --merge and --against")
    return {key(row): row for row in (dict(zip(COLUMNS, line.split("\t"))) for line in lines)}


def merged(path, rows):
    known = table_of(path)
    known.update({key(row): row for row in rows})
    order = lambda k: (MODELS.index(k[0]) if k[0] in MODELS else 99, k[1], int(k[2]), k[3])
    return [known[k] for k in sorted(known, key=order)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--opfuse", default=ROOT / "build/release/tools/opfuse/opfuse", type=pathlib.Path)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--types", nargs="+", default=TYPES)
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 32, 128])
    parser.add_argument("--archs", nargs="+", default=["sm_80", "sm_90a"])
    parser.add_argument("--cache", default=ROOT / "build/gpu-static", type=pathlib.Path)
    parser.add_argument("--budget", type=float, default=1e9, help="seconds")
    parser.add_argument("--check", action="store_true", help="names what is above a bar; fails on spills, stacks, serialised wgmma, narrow stores")
    parser.add_argument("--against", type=pathlib.Path, help="a table: variants whose texts it has are taken from it")
    parser.add_argument("--sample", action="store_true", help="with --against: leave variants that the table lacks, and compile "
                        "one kernel of each skeleton, type and architecture of those that it has")
    parser.add_argument("--kernels", action="store_true", help="a line for each kernel")
    parser.add_argument("--merge", action="store_true", help="keep the table's rows of variants that this call has not")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="the table (default: CACHE/table.tsv)")
    args = parser.parse_args()
    library, nvdisasm = find_tools()
    if not library or not nvdisasm:
        print(f"skipped: no {'NVRTC' if not library else 'nvdisasm'} (pip install nvidia-cuda-nvrtc nvidia-cuda-nvdisasm)")
        return 0
    (args.cache / "kernels").mkdir(parents=True, exist_ok=True)
    tools, began, rows, left = (Nvrtc(library), nvdisasm), time.time(), [], []
    known, kinds, wrong, changed, missing = table_of(args.against), set(), [], [], []
    for model in args.models:
        for dtype in args.types:
            for batch in args.batches:
                for arch in args.archs:
                    if time.time() - began > args.budget:
                        left.append(f"{model} {dtype} {batch} {arch}")
                        continue
                    if args.sample and (model, dtype, str(batch), arch) not in known:
                        missing.append(f"{model} {dtype} {batch} {arch}")
                        continue
                    row, kernels = variant(args, tools, known, kinds, model, dtype, batch, arch)
                    rows.append(row)
                    wrong += faults(kernels)
                    if row is not known.get(key(row)):
                        changed.append(" ".join(str(row[c]) for c in COLUMNS[:4]))
                    print("  ".join(f"{row[c]}" for c in COLUMNS), flush=True)
                    if args.kernels:
                        show(kernels)
    output = args.output or args.cache / "table.tsv"
    if args.merge:  # rows of other variants stay; each has the hash of the texts that it is of
        rows = merged(output, rows)
    output.write_text("\t".join(COLUMNS) + "\n" + "".join("\t".join(str(r[c]) for c in COLUMNS) + "\n" for r in rows))
    if args.check:
        over = [pair for row in rows for pair in over_bars(row)]
        print("\n".join(text for _, text in over))
        print("\n".join(wrong))
        if wrong or any(what in HELD for what, _ in over):
            return 1
    if args.sample:
        print(f"{len(missing)} variants that {args.against} has not: {', '.join(missing)}")
        print(f"{len(rows)} variants, {len(changed)} of them with other kernels than the table has, {len(kinds)} kinds of kernel compiled")
        if changed or left:
            print(f"bring the table up to date: ./dev gpu-static --merge -o {args.against}; not compiled now: {', '.join(left) or 'none'}")
        return 0
    if left:
        print(f"left for the next call: {', '.join(left)}")
    return 3 if left else 0


if __name__ == "__main__":
    sys.exit(main())
