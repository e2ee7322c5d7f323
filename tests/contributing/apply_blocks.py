#!/usr/bin/env python3
"""Checks the recipes of CONTRIBUTING.md: applies their blocks to a copy of src/, compiles only what they touch, links it
ahead of the libraries of a build folder and runs the recipes' tests. What generates CPU code is linked into a copy of
libopfuse_llvm.so, which the tests load.

A block is a fenced code block after a line of one of these two forms:
    **`path`**, a new file:
    **`path`**, after the line `anchor`:
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^\*\*`([^`]+)`\*\*, (?:(a new file)|after the line `([^`]+)`):\n\n```\w+\n(.*?)^```$", re.M | re.S)
# Tests of the tree that judge what the recipes add.
STANDING_TESTS = ["tests/onnx/import_table_test.cpp"]
HELPERS = ["tests/codegen/run_kernel.cpp"]
# Lists that are not sources, and what reads them.
READERS = {"src/cpu/skeletons.def": ["src/cpu/skeletons.cpp", "src/cpu/emit/emitters.cpp"]}
LLVM_LIBRARY = "lib/libopfuse_llvm.so"


def blocks(text):
    """(path, anchor or None, code) in order; every fenced block of the page must be one."""
    found = [(m[1], m[3], m[4]) for m in BLOCK.finditer(text)]
    fences = len(re.findall(r"^```\w+$", text, re.M))
    if len(found) != fences:
        sys.exit(f"CONTRIBUTING.md has {fences} code blocks, but only {len(found)} say which file they belong to")
    return found


def check_costs(text):
    """The table of recipes says how many files and lines each takes: what its blocks are."""
    for title, *said in re.findall(r"^\| \[(Add [^\]]+)\]\([^)]*\) \| (\d+) \| (\d+) \| (\d+) \|$", text, re.M):
        section = re.split(r"^## ", text.split(f"\n## {title}\n")[1], flags=re.M)[0]
        found = list(BLOCK.finditer(section))
        counted = [len({m[1] for m in found}), sum(m[3] is None for m in found), sum(m[4].count("\n") for m in found)]
        if [int(n) for n in said] != counted:
            sys.exit(f"CONTRIBUTING.md: the table says {said} files, new ones and lines of \"{title}\", its blocks are {counted}")


def insert_after(path, anchor, code):
    lines = path.read_text().splitlines(keepends=True)
    at = [i for i, line in enumerate(lines) if line.strip() == anchor]
    if len(at) != 1:
        sys.exit(f"CONTRIBUTING.md: the line `{anchor}` occurs {len(at)} times in {path.name}, it must occur once")
    lines.insert(at[0] + 1, code)
    path.write_text("".join(lines))


def apply(tree, found):
    """Applies all blocks below `tree`; returns the touched sources, relative."""
    touched = []
    for name, anchor, code in found:
        path = tree / name
        if anchor is None:
            if path.exists():
                sys.exit(f"CONTRIBUTING.md: {name} exists already; choose an example that opfuse lacks")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code)
        elif not path.exists():
            sys.exit(f"CONTRIBUTING.md: {name} does not exist")
        else:
            insert_after(path, anchor, code)
        for source in READERS.get(name, [name] if path.suffix == ".cpp" else []):
            if source not in touched:
                touched.append(source)
    return touched


class Build:
    def __init__(self, folder, tree):
        self.folder, self.tree = folder, tree
        self.commands, self.batches = {}, {}  # by source; of a batch (OPFUSE_UNITY) each source has the batch's command
        for c in json.loads((folder / "compile_commands.json").read_text()):
            file = pathlib.Path(c["file"])
            members = re.findall(r'#include "(.*)"', file.read_text()) if file.parent.name == "Unity" else []
            self.commands |= {pathlib.Path(m): c for m in members or [file]}
            self.batches |= {pathlib.Path(m): file for m in members}

    def flags(self, name):
        """Flags of the file itself or of a neighbour, reading the copy's headers."""
        path = ROOT / name
        folders = [path.parent, path.parent.parent]  # of a new folder the one it lies in
        near = [c for f, c in self.commands.items() if f == path]
        near = near or [c for folder in folders for f, c in self.commands.items() if f.parent == folder]
        if not near:
            sys.exit(f"{self.folder}/compile_commands.json knows no neighbour of {name}")
        words, out = shlex.split(near[0]["command"]), []
        skip = False
        for word in words:
            if skip or word == "-c" or word == near[0]["file"]:
                skip = False
            elif word in ("-o", "-include"):  # precompiled headers are of other flags, and sources name what they need
                skip = True
            elif word == f"-I{ROOT}/tests":
                out += [f"-I{self.tree}/tests", word]
            else:
                out.append(word.replace(f"-I{ROOT}/src", f"-I{self.tree}/src"))
        return out

    def units(self, names):
        """One source of each batch that `names` touch: a batch is compiled as a whole, from the copies."""
        return list({self.batches.get(ROOT / name, name): name for name in names}.values())

    def source(self, name):
        batch = self.batches.get(ROOT / name)
        if not batch:
            return self.tree / name if (self.tree / name).exists() else ROOT / name
        copy = self.tree / f"{batch.parent.parent.name}_{batch.name}"
        copy.write_text(batch.read_text().replace(f"{ROOT}/src", f"{self.tree}/src"))
        return copy

    def compile(self, name):
        source = self.source(name)
        target = self.tree / (name.replace("/", "_") + ".o")
        run([*self.flags(name), "-O0", "-c", str(source), "-o", str(target)], f"compile {name}", cwd=self.folder)
        return str(target)

    def link_llvm(self, objects):
        """The library with `objects` instead of what it has of the same name, or besides."""
        words = shlex.split(subprocess.run(["ninja", "-C", self.folder, "-t", "commands", LLVM_LIBRARY], capture_output=True,
                                           text=True, check=True).stdout.splitlines()[-1])
        words = [w for w in words if w not in (":", "&&")]
        library = self.tree / "libopfuse_llvm.so"
        batches = {name: self.batches.get(ROOT / name) for name in objects}
        emit = [name for name in objects if name.startswith("src/cpu/emit/")]  # batches of other rooms have the same names
        mine = {f"Unity/{batches[name].name}" if batches[name] else name.removeprefix("src/cpu/emit/") for name in emit}
        kept = [w for w in words if not any(w.endswith(f"opfuse_llvm.dir/{name}.o") for name in mine)]
        at = kept.index("-o")
        run([*kept[:at], "-o", str(library), *objects.values(), *kept[at + 2:]], "link libopfuse_llvm.so", cwd=self.folder)
        return library

    def link(self, objects, driver_flags):
        program = self.tree / "check"
        libraries = sorted(str(p) for p in (self.folder / "src").glob("lib*.a"))
        if not libraries:
            sys.exit(f"{self.folder}/src holds no libraries; build first")
        run([*driver_flags, *objects, "-Wl,--start-group", *libraries, "-Wl,--end-group", "-lgtest_main", "-lgtest", "-lfmt", "-lminizip", "-lz",
             "-ldl", "-pthread", "-o", str(program)], "link")
        return program


def run(command, what, cwd=None):
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{what} failed:\n{shlex.join(command)}\n{result.stdout}{result.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path, help="a build folder with compile_commands.json and built libraries")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=pathlib.Path, help="work in this new folder and leave it there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="opfuse-contributing-") as temporary:
        tree = args.keep or pathlib.Path(temporary)
        shutil.copytree(ROOT / "src", tree / "src")
        text = (ROOT / "CONTRIBUTING.md").read_text()
        check_costs(text)
        touched = apply(tree, blocks(text))
        build = Build(args.build.resolve(), tree.resolve())
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            sources = build.units(touched + STANDING_TESTS + HELPERS)
            objects = dict(zip(sources, pool.map(build.compile, sources)))
        flags = build.flags(touched[0])
        link_flags = [flags[0], *(f for f in flags if f.startswith("-fsanitize"))]
        library = build.link_llvm({name: o for name, o in objects.items() if name.startswith("src/cpu/")})
        program = build.link([o for name, o in objects.items() if not name.startswith("src/cpu/emit/")], link_flags)
        result = subprocess.run([str(program), "--gtest_brief=1"], env={**os.environ, "OPFUSE_LLVM_LIB": str(library)})
        print(f"{len(touched)} touched sources: {', '.join(touched)}")
        return result.returncode


if __name__ == "__main__":
    sys.exit(main())
