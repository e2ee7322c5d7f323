"""The commands of docs/tutorial.md, in order, in an empty folder: each must succeed and write what the text says. `optimize` may exit 1 where the
machine is busy: that is its verdict on time, and the file must still be there."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MADE = {"zoo": ["resnet18.onnx"], "fuse": ["fused.onnx"], "optimize": ["resnet18.opf", "resnet18.html"], "run": ["out"]}


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    text = (ROOT / "docs/tutorial.md").read_text()
    commands = [line for block in re.findall(r"```sh\n(.*?)```", text, re.S) for line in block.splitlines() if line.strip()]
    assert len(commands) >= 6, commands
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_CACHE_HOME": folder + "/cache"}
        for command in commands:
            words = command.split()
            assert words[0] == "opfuse", command
            quick = ["--duration", "100ms", "--warmup", "10ms"] if words[1] in ("optimize", "bench") else []
            done = subprocess.run([binary, *words[1:], *quick], cwd=folder, capture_output=True, text=True, env=environment)
            allowed = (0, 1) if words[1] == "optimize" else (0,)
            assert done.returncode in allowed, f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
            for name in MADE.get(words[1], []):
                assert (pathlib.Path(folder) / name).exists(), f"{command} made no {name}"
            if words[1] == "fuse":
                assert re.search(r"(?m)^  all +69 +23$", done.stdout), done.stdout
            print("ok:", command)


main()
