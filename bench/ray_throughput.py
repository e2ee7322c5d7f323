"""Throughput per core of examples/run_in_ray beside one process without Ray, in turns; the classes of all ways must be the same.

    pip install "ray[data]" pillow opfuse-*.whl
    python bench/ray_throughput.py model.opf [--images 480] [--rounds 3] [--workers 2]

The rate of a way is that between the moment when all its workers have given results and 90 % of the images: neither the start of the cluster nor
the end, when workers run out of images, is part of it. With several workers, as many plain processes at the same time are measured too: they
share memory and caches without Ray.
"""
import argparse
import hashlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from PIL import Image

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "examples" / "run_in_ray"))


def draw_images(folder, count):
    """JPEG files of 320 x 256 with smooth colours."""
    numbers = np.random.default_rng(0)
    for i in range(count):
        small = numbers.integers(0, 256, (8, 10, 3), dtype=np.uint8)
        Image.fromarray(small).resize((320, 256), Image.Resampling.BICUBIC).save(folder / f"{i:05}.jpg", quality=85)


def one_way(program, folder, workers):
    """In a process of its own: images per second, and a hash of the classes."""
    import classify_folder as example
    if workers:
        import ray
        ray.cloudpickle.register_pickle_by_value(example)  # workers cannot import it
    paths = sorted(pathlib.Path(folder).glob("*.jpg"))
    settings = (pathlib.Path(program).read_bytes(), 1, 127, 1 / 128)
    options = argparse.Namespace(address=None, workers=workers, threads=1, batch=8)
    seen, points, rows = set(), [], []
    for batch in example.on_ray(paths, settings, options) if workers else example.here(paths, settings):
        seen |= set(batch["worker"])
        rows += zip(map(str, batch["path"]), map(int, batch["class"]))
        if len(seen) >= max(1, workers) and len(rows) <= 0.9 * len(paths):
            points.append((time.monotonic(), len(rows)))
    (t0, n0), (t1, n1) = points[0], points[-1]
    print(json.dumps({"rate": (n1 - n0) / (t1 - t0), "classes": hashlib.sha256(repr(sorted(rows)).encode()).hexdigest()}))


def measured(program, folder, workers, processes=1):
    """Images per second of this many processes at the same time, together."""
    started = [subprocess.Popen([sys.executable, __file__, program, "--way", str(workers), "--folder", folder], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True) for _ in range(processes)]
    texts = [process.communicate()[0] for process in started]  # Ray's workers write there too
    said = [json.loads(next(line for line in text.splitlines() if line.startswith("{"))) for text in texts]
    return sum(s["rate"] for s in said), {s["classes"] for s in said}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--images", type=int, default=480)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--way", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way is not None:
        return one_way(options.program, options.folder, options.way)
    ways = {"one process": (0, 1), "Ray, 1 worker": (1, 1)}
    if options.workers > 1:
        ways |= {f"{options.workers} processes": (0, options.workers), f"Ray, {options.workers} workers": (options.workers, 1)}
    rates, classes = {name: [] for name in ways}, set()
    with tempfile.TemporaryDirectory() as folder:
        draw_images(pathlib.Path(folder), options.images)
        for number in range(options.rounds):
            for name in list(ways)[::-1 if number % 2 else 1]:
                workers, processes = ways[name]
                rate, found = measured(options.program, folder, workers, processes)
                rates[name].append(rate / max(workers, processes))
                print(f"{name}: {rates[name][-1]:.2f} images/s per core", file=sys.stderr, flush=True)
                classes |= found
    one = statistics.median(rates["one process"])
    print(f"{'':16} images/s per core, median  of one process  each round")
    for name, values in rates.items():
        middle = statistics.median(values)
        print(f"{name:16} {middle:25.2f}  {middle / one:14.3f}  {' '.join(f'{v:.2f}' for v in values)}")
    print("classes:", "the same in all ways" if len(classes) == 1 else "DIFFERENT")
    return 0 if len(classes) == 1 else 1


sys.exit(main())
