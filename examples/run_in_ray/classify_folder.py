"""Every image of a folder through a compiled model, on all machines of a Ray cluster.

    pip install "ray[data]" pillow opfuse-*.whl
    opfuse compile efficientnet_lite0.onnx -o model.opf           # one image per run; once, for the processors of the cluster
    python classify_folder.py model.opf photos/ classes.csv [--workers 8] [--address auto]

Without --address a cluster is started on this machine. A worker is a process of its own with one core (--threads for more), which
holds the executable; Ray Data gives it blocks of files. A worker that dies is started again and its blocks are run again, so the table has
every image once. --workers 0 runs all of it in this process, without Ray.
"""
import argparse
import csv
import io
import logging
import os
import pathlib
import sys
import tempfile
import time

import numpy as np
import opfuse
from PIL import Image

IMAGES = ("jpg", "jpeg", "png")


class Classifier:
    """What a worker holds: the executable, and a context with its memory."""

    def __init__(self, program, threads, mean, scale):
        with tempfile.NamedTemporaryFile(suffix=".opf") as file:  # the model came with the worker: no shared file system is needed
            file.write(program)
            file.flush()
            self.exe = opfuse.Executable.load(file.name)
        [self.input], [self.output] = self.exe.inputs(), self.exe.outputs()
        self.context = self.exe.create_context(threads=threads)
        self.mean, self.scale = mean, scale
        self.array = np.empty(self.input.shape, np.float32)
        self.scores = np.empty(self.output.shape, np.float32)
        self.context.bind(self.input.name, self.array)
        self.context.bind(self.output.name, self.scores)

    def classify(self, data):
        """Class and score of one picture, given as the bytes of its file; -1 where it is no picture."""
        height, width = self.array.shape[2:]
        try:
            picture = Image.open(io.BytesIO(data)).convert("RGB").resize((width, height), Image.Resampling.BICUBIC)
        except OSError:
            return -1, float("nan")
        np.multiply(np.asarray(picture, np.float32).transpose(2, 0, 1) - self.mean, self.scale, out=self.array[0])
        self.context.run()
        best = int(self.scores.argmax())
        return best, float(self.scores.flat[best])

    def __call__(self, batch):  # columns of arrays in, columns of arrays out
        found = [self.classify(data) for data in batch["bytes"]]
        return {"path": batch["path"], "class": np.array([c for c, _ in found]), "score": np.array([s for _, s in found], np.float32),
                "worker": np.full(len(found), os.getpid())}


def here(paths, settings):
    """All in this process, in blocks as Ray would give them."""
    classifier = Classifier(*settings)
    for path in paths:
        yield classifier({"path": np.array([str(path)]), "bytes": [pathlib.Path(path).read_bytes()]})


class RemoteClassifier(Classifier):
    """The same, made from a program in the cluster's object store: one copy per machine."""

    def __init__(self, program, *rest):
        import ray
        super().__init__(ray.get(program), *rest)


def on_ray(paths, settings, options):
    import ray
    ray.init(address=options.address, include_dashboard=False, logging_level="error")
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False  # this program says how far it is
    program, *rest = settings
    program = ray.put(program)  # held here until the end: restarted workers read it again
    files = ray.data.read_binary_files([str(path) for path in paths], include_paths=True, num_cpus=0, concurrency=max(2, options.workers // 4),
                                       override_num_blocks=max(1, min(len(paths) // options.batch, 4096)))  # no core: those are the workers'
    # Ray Data restarts dead workers and runs again what they had not finished, as often as it takes.
    classes = files.map_batches(RemoteClassifier, fn_constructor_args=(program, *rest), batch_size=options.batch, num_cpus=options.threads,
                                compute=ray.data.ActorPoolStrategy(size=options.workers))
    yield from classes.iter_batches(batch_size=None, prefetch_batches=0)


def told(done, total, begin, first, workers):
    """A line about progress; the rate is that of everything after the first results, which came with the start of the workers."""
    now = time.monotonic()
    rate = (done - first[0]) / (now - first[1]) if done > first[0] else 0
    left = f"{(total - done) / rate:.0f} s left" if rate else "-"
    print(f"{done} of {total} images, {rate:.1f} images/s, {workers} workers, {now - begin:.0f} s, {left}", file=sys.stderr, flush=True)
    return rate


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="an .opf with one picture [1, 3, H, W] as its input")
    parser.add_argument("folder")
    parser.add_argument("table", help="CSV to write")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes on the whole cluster; 0: none, without Ray")
    parser.add_argument("--threads", type=int, default=1, help="of each worker")
    parser.add_argument("--batch", type=int, default=16, help="images of a block: what is run again where a worker dies")
    parser.add_argument("--address", help="of a cluster: auto, or ray://host:10001")
    parser.add_argument("--mean", type=float, default=127, help="is taken from 0 to 255")
    parser.add_argument("--scale", type=float, default=1 / 128, help="is multiplied with the rest")
    options = parser.parse_args()
    paths = sorted(path for path in pathlib.Path(options.folder).resolve().rglob("*") if path.suffix.lower()[1:] in IMAGES)
    if not paths:
        raise SystemExit(f"there is no image ({', '.join(IMAGES)}) below {options.folder}")
    settings = (pathlib.Path(options.program).read_bytes(), options.threads, options.mean, options.scale)
    rows, begin, first, told_at, workers = [], time.monotonic(), None, 0.0, set()
    for batch in on_ray(paths, settings, options) if options.workers else here(paths, settings):
        rows += zip(batch["path"], batch["class"], batch["score"])
        workers |= set(batch["worker"])
        first = first or (len(rows), time.monotonic())
        if time.monotonic() - told_at > 1:
            told(len(rows), len(paths), begin, first, len(workers))
            told_at = time.monotonic()
    rate = told(len(rows), len(paths), begin, first, len(workers))
    with open(options.table, "w", newline="") as file:
        csv.writer(file).writerows([("path", "class", "score"), *sorted(rows)])
    broken = sum(c < 0 for _, c, _ in rows)
    print(f"wrote {options.table}: {len(rows)} images, {rate:.2f} images/s" + (f", {broken} could not be read" if broken else ""))
    if len(rows) != len(paths):
        raise SystemExit(f"{len(paths) - len(rows)} images are missing")


if __name__ == "__main__":
    main()
