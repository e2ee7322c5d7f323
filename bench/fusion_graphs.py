#!/usr/bin/env python3
"""Launches of small graphs: now, and where the audit of the fusion engine found them.

    python3 bench/fusion_graphs.py GRAPHS [--opfuse PATH] [--target NAME] [--compare] [--times] [--prepared DIR] [--json]

GRAPHS is the folder of the audit's graphs (NAME.onnx). Each row: launches of the audit, launches now, what is one launch
in TVM, what was slower as one launch (a trap: it must stay apart or be no slower). --compare proves each graph equal to
the interpreter; --times runs it fused and unfused in turns and prints the ratio of the least times of one thread. With
--prepared the first run compiles into DIR and the next ones measure what is there: compiling wants no idle machine.
The exit status is 1 when a graph has more launches than the audit found, or a proof fails.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import opf_timer

# Launches of commit 63f0540 with its own plans.
AUDIT = {
    "h01_relu_conv1x1_oneout": 2, "h02_relu_depthwise1x1": 2, "t01d_relu_gap": 2, "t01e_relu_maxpool_k2s2": 2,
    "t01f_relu_avgpool_k2s2": 2, "t01g_bnrelu_conv1x1": 2, "t01i_uint8_norm_conv": 2, "t02b_conv_transpose_other": 2,
    "t03c_sum_div_bcast": 2, "t03h_softmax_handmade": 4, "t03i_normalize_std": 2, "t08_relu_tr_add": 3,
    "t08b_relu_reshape_mul": 2, "t08d_concat_relu": 3, "t08f_gather_add": 2, "t08g_resize_relu": 2, "t08h_pad_relu": 2,
    "t08i_transpose_relu": 2, "t08j_reshape_transpose_reshape_relu": 2, "t08k_pixelshuffle": 3, "t11_bcast_grow": 2,
    "t13b_interior_read_elsewhere": 4, "t15_chain300": 5, "t18_sum_max": 2, "t18b_sum_sumsq": 2,
    "t19_elementwise_siblings": 2, "t19b_common_prefix": 3, "t20c_mm_softmax": 2, "t26_mixed_shape_bcast_diamond": 3,
    "v01_bert_embed_ln": 4, "v02_shuffle_concat": 4, "v03_densenet": 5, "v04_pad_avgpool": 2, "v05_multi_out": 2,
    "v06_d2s_relu": 2, "v07_add_ln_two_readers": 2, "v08_mm_transpose_add": 3,
}
# Launches of TVM (its rules, read) on the rows where it fused more than opfuse.
TVM = {
    "t08_relu_tr_add": 1, "t08d_concat_relu": 1, "t08b_relu_reshape_mul": 1, "t08f_gather_add": 1, "t08g_resize_relu": 1,
    "t08h_pad_relu": 1, "t08i_transpose_relu": 1, "v06_d2s_relu": 1, "t08j_reshape_transpose_reshape_relu": 1,
    "t11_bcast_grow": 1, "v02_shuffle_concat": 1, "t15_chain300": 2,
}
# 24 graphs, which the audit does not name, had 58 launches, and 24 in Inductor: one each, so none of them has a
# convolution or product beside something else, which Inductor calls from a library.
OF_INDUCTOR, THEN, PRODUCTS = 24, 58, ("h01", "h02", "t01g", "t01i", "t02b", "t08k", "t13b", "t20c", "v03", "v08")
OPENINGS = 8  # where buffers lie differs from one to the next, and is worth a tenth and more
# Slower as one launch at large shapes, with the ratio the audit measured.
TRAPS = {"t01i_uint8_norm_conv": 16.71, "v03_densenet": 7.17, "t03c_sum_div_bcast": 1.70, "t03h_softmax_handmade": 1.54}


def opfuse(args, *command):
    return subprocess.run([args.opfuse, *map(str, command)], capture_output=True, text=True, check=False)


def launches(args, graph, folder):
    done = opfuse(args, "compile", graph, "-o", folder / "graph.opf", "--force", "--json", "--target", args.target)
    if done.returncode:
        raise SystemExit(f"{graph}: {done.stderr.strip()}")
    return json.loads(done.stdout)["launches"]


def forms_of(args, graph, folder):
    """The fused and the unfused program, compiled if they are not there."""
    paths = [folder / f"{graph.stem}.{form}.opf" for form in ("fused", "unfused")]
    for path, flags in zip(paths, ([], ["--unfused"])):
        if not path.exists():
            done = opfuse(args, "compile", graph, "-o", path, "--threads", "1", "--target", args.target, *flags)
            if done.returncode:
                raise SystemExit(f"{graph}: {done.stderr.strip()}")
    return paths


def ratio(args, graph, folder):
    """Least time of the fused program to that of the unfused one, in turns; outputs must agree."""
    least = [math.inf, math.inf]
    for _ in range(OPENINGS):
        programs = [opf_timer.Program(args.library, path) for path in forms_of(args, graph, folder)]
        least = [min(pair) for pair in zip(least, opf_timer.in_turns(programs, 3, 0.02))]
        error = opf_timer.difference(*programs)
        for program in programs:
            program.close()
    fused, unfused = least
    if error > 1e-5:
        raise SystemExit(f"{graph}: fused and unfused outputs differ by {error:.2g} of max")
    return fused / unfused


def row_of(args, graph, folder):
    name = graph.stem
    row = {"graph": name, "audit": AUDIT.get(name), "now": launches(args, graph, folder), "tvm": TVM.get(name),
           "trap": TRAPS.get(name)}
    if args.compare:
        row["equal"] = opfuse(args, "compare", graph, "--target", args.target).returncode == 0
    if args.times:
        row["ratio"] = ratio(args, graph, args.prepared or folder)
    return row


def most_now(rows):
    """The most launches of any OF_INDUCTOR of these rows that had THEN launches."""
    most = {(0, 0): 0}
    for row in rows:
        for (count, then), now in list(most.items()):
            key = (count + 1, then + row["audit"])
            most[key] = max(most.get(key, 0), now + row["now"])
    return most.get((OF_INDUCTOR, THEN))


def show(rows):
    print(f"{'graph':40} audit  now  tvm")
    for row in rows:
        notes = []
        if row["trap"]:
            notes.append(f"trap: {row['trap']:.2f} as one launch")
        if row["tvm"] and row["now"] > row["tvm"]:
            notes.append("TVM fuses more")
        if "ratio" in row:
            notes.append(f"{row['ratio']:.2f} of unfused")
        if row.get("equal") is False:
            notes.append("NOT EQUAL")
        tvm = "" if row["tvm"] is None else row["tvm"]
        print(f"{row['graph']:40} {row['audit'] or '-':>5} {row['now']:>4} {tvm:>4}  {'; '.join(notes)}")
    known = [row for row in rows if row["audit"]]
    candidates = [row for row in known if not row["graph"].startswith(PRODUCTS)]
    if most := most_now(candidates):
        print(f"beside Inductor: any {OF_INDUCTOR} of the {len(candidates)} graphs without a convolution or product that had {THEN} "
              f"launches have at most {most} now; of all graphs {most_now(known)}")
    timed = [r for r in rows if "ratio" in r]
    if timed:
        slow = [f"{r['graph']} {r['ratio']:.2f}" for r in timed if r["ratio"] > 1.03]
        print(f"{len(slow)} of {len(timed)} above 1.03 of unfused: {', '.join(slow) or '-'}")
    print(f"{len(rows)} graphs: {sum(r['audit'] for r in known)} launches of the audit, {sum(r['now'] for r in known)} now; "
          f"TVM fuses more on {sum(1 for r in rows if r['tvm'] and r['now'] > r['tvm'])}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", type=pathlib.Path)
    parser.add_argument("--opfuse", default="opfuse")
    parser.add_argument("--target", default="host")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--prepared", type=pathlib.Path, help="with --times: a folder for compiled graphs")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    graphs = sorted(args.graphs.glob("*.onnx"))
    if args.times:
        args.library = opf_timer.library_beside(args.opfuse)
    if args.prepared and not args.prepared.exists():
        args.prepared.mkdir(parents=True)
        for graph in graphs:
            forms_of(args, graph, args.prepared)
        print(f"compiled into {args.prepared}: the same command again measures")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        rows = [row_of(args, graph, pathlib.Path(folder)) for graph in graphs]
    if args.json:
        print(json.dumps(rows, indent=1))
    else:
        show(rows)
    worse = [r["graph"] for r in rows if (r["audit"] and r["now"] > r["audit"]) or r.get("equal") is False]
    return 1 if worse or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
