"""What a newcomer meets: the 26 findings of a first use, each with the command that showed it and what it prints today.

    python3 bench/first_use.py build/release/tools/opfuse/opfuse > bench/first_use.md

Runs in an empty folder. Output is cut to its first lines; the numbers of the list are those of the first use.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
MOST_LINES, MOST_COLUMNS = 7, 150

# number, what was found, commands (shell); {} is left to the shell
FINDINGS = [
    (1, "an output replaced the model; suffixes said nothing",
     ["opfuse compile m.onnx -o m.onnx", "opfuse fuse m.onnx -o g.txt", "opfuse compile m.onnx -o g.onnx"]),
    (2, "the ledger lied after an edit of the plan",
     ["opfuse fuse m.onnx --plan-out p.json -q >/dev/null; python3 off.py p.json",
      "opfuse explain m.onnx --plan p.json --missed --top 2"]),
    (3, "--missed had false first entries, no order, and ignored --top", ["opfuse explain zoo:resnet18 --missed --top 3",
                                                                         "opfuse explain zoo:mobilenet_v2 --missed --top 5 | wc -l"]),
    (4, "plan and program disagreed silently", ["opfuse fuse zoo:vit_b_16 | grep -E 'launch|nodes'",
                                                "opfuse explain zoo:vit_b_16 --node /encoder/layers/encoder_layer_0/self_attention/Reshape_1 | head -4"]),
    (5, "unknown operators: a false hint, the wrong name", ["opfuse compile unknown.onnx -o u.opf", "opfuse fuse unknown.onnx -o uf.onnx 2>&1 | tail -3"]),
    (6, "nothing to look at", ["opfuse report m.onnx -o r.html --duration 20ms --warmup 1ms 2>&1 | tail -2",
                               "opfuse profile m.onnx --trace t.json --duration 20ms --warmup 1ms -q | head -3",
                               "opfuse report m.onnx --format dot -o g.dot 2>&1 | tail -1; head -2 g.dot"]),
    (7, "fused ONNX without types, attributes, origins", ["opfuse fuse m.onnx -o f.onnx | grep 'read back'", "python3 look.py f.onnx"]),
    (8, "a saved plan was stale at once on models with an open batch",
     ["opfuse zoo mobilenet_v2 --batch N --resolution 32 --width 0.25 -o open.onnx -q",
      "opfuse fuse open.onnx --plan-out po.json -q >/dev/null && opfuse compile open.onnx --plan po.json -o open.opf"]),
    (9, "flags that cannot apply were ignored", ["opfuse compile m.onnx -o m.opf -q; opfuse run m.opf --target cpu:avx2", "opfuse inspect m.opf --show layers"]),
    (10, "Ctrl-C printed results that nobody measured", ["timeout --foreground --preserve-status -s INT 2 opfuse demo --model resnet50 --seconds 60; echo status $?"]),
    (11, "a full disk was an internal error", ["opfuse ops > /dev/full; echo status $?"]),
    (12, "--threads 1000 hung", ["opfuse run m.onnx --threads 1000 2>&1 | head -2"]),
    (13, "messages of libraries", ["echo '<html>' > page.onnx; opfuse inspect page.onnx",
                                   "printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:0\\nsize 1\\n' > lfs.onnx; opfuse inspect lfs.onnx",
                                   "python3 wrong.py p.json bad.json; opfuse fuse m.onnx --plan bad.json"]),
    (14, "unknown flags: no code, no suggestion", ["opfuse fuse m.onnx --dryrun", "opfuse help fuse | head -2; opfuse -V"]),
    (15, "Python: no command, no bytes, no progress", ["grep -hE 'submit|progress|load\\(data|opfuse. command' ROOT/docs/python.md | head -4"]),
    (16, "is my model supported?", ["opfuse ops LayerNormalization | head -4", "opfuse check unknown.onnx"]),
    (17, "bench --vs-unfused failed at equal memory", ["opfuse bench m.onnx --vs-unfused --duration 200ms --warmup 20ms | grep -E 'fused /|peak'; echo status $?"]),
    (18, "the demo's headline", ["opfuse demo --model resnet18 --seconds 0.3 2>/dev/null | tail -22"]),
    (19, "docker after a local build", ["cat ROOT/.dockerignore | head -3; grep RUN ROOT/Dockerfile"]),
    (20, "missing libraries came minutes into the build; warnings were errors", ["sed -n '/OPFUSE_WERROR/p' ROOT/CMakeLists.txt",
                                                                              "cmake -S ROOT -B c -DOPFUSE_HAS_CLI11=OPFUSE_HAS_CLI11-NOTFOUND -DCMAKE_IGNORE_PATH=/usr/include 2>&1 | grep -A4 'needs libraries'"]),
    (21, "json.md was wrong; variables were missing", ["opfuse explain m.onnx --json | python3 -c 'import json,sys; d=json.load(sys.stdin); print(d[\"schema\"], d[\"opfuse\"], list(d)[:6])'",
                                                     "opfuse options | tail -8", "opfuse inspect none.onnx --json"]),
    (22, "codes without a table", ["opfuse reasons | head -5; opfuse reasons --json | grep -c '\"code\"'"]),
    (23, "width; patterns that fire nowhere", ["script -qec 'stty cols 100; opfuse inspect m.opf' /dev/null | tr -d '\\r' | awk '{ if (length > most) most = length } END { print most, \"columns on a terminal of 100\" }'",
                                             "opfuse fuse gate.fir --patterns gate.toml | head -4"]),
    (24, "no stdin, -q, completion, manual page", ["opfuse inspect - < m.onnx | head -2", "opfuse fuse m.onnx -o q.onnx -q >/dev/null; echo status $?",
                                                  "opfuse options --man | head -3", "ls ROOT/tools/opfuse/completion.bash | sed 's|.*/||'"]),
    (25, "wording", ["opfuse compile gate.fir -o g.opf 2>&1 | head -4", "opfuse inspect m.opf | grep -iE 'arena|module' | head -3"]),
    (26, "explain --node printed everything twice", ["opfuse explain m.onnx --node /features/features.1/conv/conv.0/conv.0.0/Conv | sort | uniq -d | grep -c .",
                                                    "opfuse explain m.onnx --node /features/features.1/conv/conv.0/conv.0.0/Conv | head -5"]),
]

HELPERS = {
    "off.py": "import json,sys\np=json.load(open(sys.argv[1]))\ne=[m for m in p['matches'] if m['apply']][1]\ne['apply']=False\njson.dump(p,open(sys.argv[1],'w'))\nprint('switched off',e['id'])\n",
    "wrong.py": "import json,sys\np=json.load(open(sys.argv[1]))\np['matches'][0]['apply']='yes'\njson.dump(p,open(sys.argv[2],'w'))\n",
    "look.py": "import onnx,sys\nm=onnx.load(sys.argv[1])\nc=next(n for n in m.graph.node if n.domain)\nprint(m.producer_name,{p.key:p.value for p in m.metadata_props},len(m.graph.value_info),'edges with types')\nprint(c.op_type,[onnx.helper.printable_attribute(a) for a in c.attribute])\nprint(c.doc_string)\n",
    "unknown.py": "import onnx\nfrom onnx import helper as h\nf=onnx.TensorProto.FLOAT\nn=[h.make_node('Relu',['x'],['r']),h.make_node('MyOp',['r'],['m'],domain='com.example',name='mine'),h.make_node('Relu',['m'],['y'])]\ng=h.make_graph(n,'g',[h.make_tensor_value_info('x',f,[1,4])],[h.make_tensor_value_info('y',f,[1,4])])\nonnx.save(h.make_model(g,opset_imports=[h.make_opsetid('',17),h.make_opsetid('com.example',1)],ir_version=8),'unknown.onnx')\n",
    "gate.fir": "graph @gate(%x: f32[1,8,4,4]) {\n  %s = sigmoid(%x)\n  %y = mul(%x, %s)\n  return %y\n}\n",
}


def run(command, folder, environment):
    done = subprocess.run(["bash", "-c", command.replace("ROOT", str(ROOT))], cwd=folder, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    text = done.stdout.replace(str(ROOT), ".").replace(str(folder), ".")
    text = re.sub(r"\x1b\[[0-9;]*[a-zA-Z]", "", text)
    lines = [line if len(line) <= MOST_COLUMNS else line[:MOST_COLUMNS - 4] + " ..." for line in text.splitlines() if line.strip()]
    most = 22 if "demo" in command and "INT" not in command else MOST_LINES
    return lines[:most] + ([f"... {len(lines) - most} more lines"] if len(lines) > most else [])


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    version = subprocess.run([binary, "--version"], capture_output=True, text=True).stdout.strip()
    print("# First use, again\n\nThe 26 findings of a first use, and what the same commands print today "
          f"({version}; `bench/first_use.py`). `m.onnx` is a small MobileNetV2.\n")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "bin").mkdir()
        (folder / "bin/opfuse").symlink_to(binary)
        python = os.environ.get("OPFUSE_ONNX_PYTHON", sys.executable)
        (folder / "bin/python3").write_text(f'#!/bin/sh\nexec {python} "$@"\n')
        (folder / "bin/python3").chmod(0o755)
        environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "COLUMNS": "120"}
        for helper, text in HELPERS.items():
            (folder / helper).write_text(text)
        subprocess.run([python, "unknown.py"], cwd=folder, check=True)
        subprocess.run([binary, "zoo", "mobilenet_v2", "--resolution", "32", "--width", "0.25", "-o", "m.onnx", "-q"], cwd=folder, check=True)
        (folder / "gate.toml").write_text((ROOT / "examples/patterns/gate.toml").read_text())
        for number, what, commands in FINDINGS:
            print(f"## {number}. {what}\n\n```")
            for command in commands:
                print("$ " + command.replace("ROOT", "."))
                print("\n".join(run(command, folder, environment)))
            print("```\n")
            sys.stdout.flush()


main()
