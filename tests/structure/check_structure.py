#!/usr/bin/env python3
"""Checks the tree against the rules of the house: includes follow the arrows of src/CMakeLists.txt,
files stay within their length, LLVM and CUDA headers stay behind their doors."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER_LINES, SOURCE_LINES = 300, 600
ROOMS_WITHIN = set(re.search(r"set\(OPFUSE_ROOMS_WITHIN ([^)]*)\)", (ROOT / "cmake/opfuse_folder.cmake").read_text()).group(1).split())


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [pathlib.PurePosixPath(p) for p in out.stdout.split()]


def folder_of(path):
    """src/cpu/emit/math/x.cpp -> cpu/emit; src/cpu/pixels/x.cpp -> cpu; src/ops/x.hpp -> ops"""
    parts = path.parts[1:-1]
    return "/".join(parts[:2]) if "/".join(parts[:2]) in ROOMS_WITHIN else parts[0] if parts else ""


def arrows():
    """Direct dependencies by folder, from the opfuse_folder lines."""
    graph = {}
    for name, rest in re.findall(r"^opfuse_folder\(([^\s)]+)([^)]*)\)", (ROOT / "src/CMakeLists.txt").read_text(), re.M):
        graph[name] = rest.split()
    graph["cpu/emit"] = ["cpu"]  # a library of its own, src/cpu/emit/CMakeLists.txt
    return graph


def reachable(graph, start):
    seen, todo = set(), [start]
    while todo:
        for dep in graph.get(todo.pop(), []):
            if dep not in seen:
                seen.add(dep)
                todo.append(dep)
    return seen


def include_problems():
    graph = arrows()
    for path in tracked("src/*.hpp", "src/*.cpp", "src/**/*.hpp", "src/**/*.cpp"):
        folder = folder_of(path)
        allowed = reachable(graph, folder) | {folder}
        for include in re.findall(r'^#include "([^"]+)"', (ROOT / path).read_text(), re.M):
            target = folder_of(pathlib.PurePosixPath("src") / include)
            if include.startswith("opfuse/") or target == "":
                continue
            if target not in allowed:
                yield f"{path}: includes {include}, but {folder} does not depend on {target} (src/CMakeLists.txt)"


def door_problems():
    for path in tracked("src/**", "tools/**", "include/**"):
        if path.suffix not in (".hpp", ".cpp") or folder_of(path) == "cpu/emit":
            continue
        for line in (ROOT / path).read_text().splitlines():
            if re.match(r'#include [<"]llvm[/-]', line):
                yield f"{path}: LLVM headers belong in src/cpu/emit only"
    for path in tracked("include/**"):
        if re.search(r"#include <(nlohmann|fmt|protozero|llvm)", (ROOT / path).read_text()):
            yield f"{path}: a public header exposes a third-party library"


def kind_problems():
    """What differs between kinds of devices is a trait of the target; one table asks which kind it is."""
    for path in tracked("src/**", "tools/**"):
        if str(path) not in ("src/target/target.hpp", "src/link/generators.cpp") and path.suffix in (".hpp", ".cpp"):
            if "is_cuda()" in (ROOT / path).read_text():
                yield f"{path}: is_cuda() belongs in src/link/generators.cpp only: ask for a trait of the target"


def name_problems():
    """Operators by name are patterns' business; elsewhere a trait, or is_a<Conv>(node), which the compiler checks."""
    patterns = ("src/match/", "src/passes/", "src/fusion/patterns", "src/fusion/user/")
    for path in tracked("src/**", "tools/**"):
        if path.suffix in (".hpp", ".cpp") and not str(path).startswith(patterns):
            for name in re.findall(r'(?:\.|->)is\("(\w+)"\)', (ROOT / path).read_text()):
                yield f'{path}: is("{name}") belongs in patterns only: ask for a trait, or is_a<> (ops/is_a.hpp)'


def stage_problems():
    """How many stages a skeleton wants is said by its `see`, and by the views that it asks."""
    for path in tracked("src/**"):
        if path.suffix not in (".hpp", ".cpp") or str(path).startswith("src/region/") or path.stem.endswith(("_view", "_skeleton")):
            continue
        if re.search(r"stages\.size\(\) *(==|!=|<=|>=|[<>] *\d)", (ROOT / path).read_text()):
            yield f"{path}: the number of stages is a skeleton's to judge: is_single_stage() (region/single_stage.hpp), or its view"


def head_problems():
    """A file opens with what it is for; a source may leave that to the header of its name."""
    opens = {p: (ROOT / p).read_text().startswith("//") for p in tracked("src/**", "tools/**", "include/**", "tests/**")
             if p.suffix in (".hpp", ".cpp")}
    for path, says in opens.items():
        if not says and not opens.get(path.with_suffix(".hpp"), False):
            yield f"{path}: opens without a comment that says what it is for"


def length_problems():
    for path in tracked("src/**", "tools/**", "include/**", "tests/**", "bench/**"):
        limit = HEADER_LINES if path.suffix == ".hpp" else SOURCE_LINES if path.suffix in (".cpp", ".py") else None
        if limit and (count := len((ROOT / path).read_text().splitlines())) > limit:
            yield f"{path}: {count} lines, the limit is {limit}"


def main():
    problems = [*include_problems(), *door_problems(), *kind_problems(), *name_problems(), *stage_problems(), *head_problems(), *length_problems()]
    print(*problems, sep="\n")
    print(f"structure: {len(problems)} problem(s)" if problems else "structure: clean")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
