#!/usr/bin/env python3
"""Makes the kit for a machine with a GPU: a tarball with the command, the tests of kernels, bench/gpu.py and all kernels
already compiled. Nothing is built or fetched there.

    bench/gpu_kit.py --build build/release -o build/gpu-kit.tar.gz          needs NVRTC here, no GPU
    bench/gpu_kit.py --build build/release -o kit.tar.gz --dry-run          of the emulated device and small models

Models travel as text graphs whose weights are drawn from seeds there: packed, those of five models would be 500 MB."""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MOST = 40 << 20
#: Of glibc and the compiler's runtime: every machine has them that can run PyTorch.
SYSTEM = {"linux-vdso.so.1", "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2", "libstdc++.so.6", "libgcc_s.so.1"}

README = """# opfuse's GPU kit

Runs on x86-64 Linux with glibc 2.36 or later, Python 3.10 or later and an NVIDIA driver; PyTorch is measured where it is.

    python3 bench/gpu.py facts --out OUT         then kernels, models, peers, sanitizer; each within --budget 540 seconds

Rows go to OUT/rows.jsonl as they are measured; a step that is run again goes on where it ended. `python3 bench/gpu.py --help`.

Kernels: {target}, compiled already (cache/). bin/opfuse is the command, lib/ what it opens.
Made from {commit}.
"""


def needed(path):
    """Shared libraries beside the system's, by name and place."""
    listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^\s*(\S+) => (\S+)", listed, re.M)
    missing = [name for name, place in found if not place.startswith("/")]
    if missing:
        sys.exit(f"{path} needs {', '.join(missing)}, not found here")
    return {name: place for name, place in found if pathlib.PurePath(name).name not in SYSTEM}


def stage(args, kit):
    for folder in ["bin", "lib", "bench", "cache"]:
        (kit / folder).mkdir(parents=True)
    programs = [args.build / "tools/opfuse/opfuse"] + ([] if args.dry_run else [args.build / "tests/test_cuda"])
    for program in programs:
        if not program.exists():
            sys.exit(f"{program} is not there: ninja -C {args.build} {' '.join(p.name for p in programs).replace('opfuse', 'opfuse_cli', 1)}")
        subprocess.run(["strip", "-o", kit / "bin" / program.name, program], check=True)
        for name, place in needed(program).items():
            shutil.copy(place, kit / "lib" / name)
    for name in ["gpu.py", "gpu_work.py", "gpu_torch.py"]:
        shutil.copy(HERE / name, kit / "bench" / name)
    commit = subprocess.run(["git", "-C", HERE, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip() or "an unknown commit"
    (kit / "README.md").write_text(README.format(target=args.target, commit=commit))


def fill_cache(args, kit, scratch):
    """By the kit's own command, so that its kernels have its names."""
    command = [sys.executable, "-B", kit / "bench/gpu.py", "compile", "--out", scratch, "--target", args.target, "--budget", str(args.budget)]
    done = subprocess.run([*map(str, command), *(["--dry-run"] if args.dry_run else [])], stdout=None if args.verbose else subprocess.DEVNULL)
    if done.returncode:
        rows = [json.loads(line) for line in (scratch / "rows.jsonl").read_text().splitlines()]
        failed = [f"\n  {row['what']}: {row['why']}" for row in rows if row["status"] == "failed"]
        sys.exit(f"the kernels were not all compiled (status {done.returncode}); --verbose shows each{''.join(failed)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("build/gpu-kit.tar.gz"))
    parser.add_argument("--target", help="cuda:sm_90a; --dry-run: cuda:emulated")
    parser.add_argument("--budget", type=float, default=1800, help="seconds for compiling")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="what is compiled")
    args = parser.parse_args()
    args.target = args.target or ("cuda:emulated" if args.dry_run else "cuda:sm_90a")
    with tempfile.TemporaryDirectory() as folder:
        kit = pathlib.Path(folder) / "gpu-kit"
        stage(args, kit)
        fill_cache(args, kit, pathlib.Path(folder) / "scratch")
        args.output.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(args.output, "w:gz") as tar:
            tar.add(kit, "gpu-kit")
        kernels = sum(1 for _ in (kit / "cache").rglob("*.kernel"))
    size = args.output.stat().st_size
    there = "are compiled where they run" if args.target == "cuda:emulated" else f"of {args.target}: {kernels}"
    print(f"{args.output}: {size / (1 << 20):.1f} MiB, kernels {there}")
    if args.target != "cuda:emulated" and not kernels:
        sys.exit("no kernel is in the kit")
    if size > MOST:
        sys.exit(f"more than the {MOST >> 20} MiB that a device call carries")


if __name__ == "__main__":
    os.umask(0o022)
    main()
