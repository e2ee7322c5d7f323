"""docs/new-target.md as it stands, in an empty folder, with an opfuse that was installed: files are written, commands run in their order."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"```(toml|sh)\n(.*?)```", re.S)


def main():
    build, scratch = pathlib.Path(sys.argv[1]).resolve(), tempfile.TemporaryDirectory()
    prefix, folder = pathlib.Path(scratch.name, "prefix"), pathlib.Path(scratch.name, "empty")
    folder.mkdir()
    subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
    environment = {**os.environ, "PREFIX": str(prefix), "PATH": f"{prefix}/bin:{os.environ['PATH']}",
                   "XDG_CACHE_HOME": scratch.name + "/cache"}
    said = {}
    target = folder / "npu.toml"
    for kind, text in BLOCK.findall((ROOT / "docs/new-target.md").read_text()):
        if kind == "toml":
            words = target.read_text() if target.exists() else ""
            target.write_text(words + ("\n" if words else "") + text)
            continue
        for command in text.splitlines():
            done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, env=environment)
            assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
            print("ok:", command)
            said.setdefault(command, []).append(done.stdout)
    before, after = said["opfuse fuse zoo:resnet18 --target npu.toml --dry-run"]
    assert re.search(r"(?m)^ *modules +0 ", before), before
    assert "modules       21 (21 FusedTileConv)" in after, after
    assert "PASSED" in said["opfuse compare zoo:resnet18 --target npu.toml,cpu"][0]
    runs = int(said["grep -c ^run record"][0])
    assert runs >= 10, runs


main()
