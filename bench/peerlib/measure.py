"""One case (model, batch, threads, contexts): start everybody, compare outputs, then take turns.

In round r the order of the contestants is rotated by r. Before a turn comes a pause, in which the spinning threads of the
contestant before go to sleep, and two runs that are not counted. A contestant that cannot take part keeps its row, with the
reason in it.
"""
import math
import time

import numpy as np

from . import intervals
from .contestants import Unavailable

PAUSE = 0.06  # seconds; longer than the spinning of any engine here
WARM_UP = 2


def relative_error(values, reference):
    """max |values - reference| / max |reference| over all outputs of the reference; worst output counts."""
    worst = 0.0
    for name, expected in reference.items():
        if name not in values or values[name].shape != expected.shape:
            return math.inf
        scale = float(np.abs(expected).max()) or 1.0
        difference = float(np.abs(values[name].astype(np.float64) - expected).max())
        worst = max(worst, difference / scale) if math.isfinite(difference) else math.inf
    return worst


def start_all(contestants, path, feeds, threads):
    rows = {}
    for contestant in contestants:
        row = {"name": contestant.name, "status": "ok", "reason": ""}
        try:
            row["load_ms"] = contestant.start(path, feeds, threads)
        except Unavailable as problem:
            row.update(status="not run", reason=str(problem))
        except Exception as problem:  # whatever an engine throws is its result
            row.update(status="failed", reason=f"{type(problem).__name__}: {problem}")
        row.update(version=contestant.version, settings=contestant.settings)
        rows[contestant.name] = row
    return rows


def moved_by_one_ulp(feeds):
    """The same inputs, every number a rounding away."""
    rng = np.random.default_rng(1)
    return {name: np.nextafter(array, array.dtype.type(rng.choice([-np.inf, np.inf], array.shape)))
            if array.dtype in (np.float32, np.float64) else array for name, array in feeds.items()}


def change_of(contestant, feeds, reference):
    """How much the outputs change with these inputs; None for a contestant that cannot bind others."""
    if not hasattr(contestant, "bind"):
        return None
    call, results = contestant.bind(feeds)
    call()
    return relative_error(results, reference)


def check_outputs(contestants, rows, feeds, other_feeds, tolerance):
    """Error of each against the first that runs, and how much another input changes that one's outputs.

    A model that turns a rounding of its input into more than the tolerance has no answer that is more exact: there the error
    may be 4 times that change.
    """
    running = [c for c in contestants if rows[c.name]["status"] == "ok"]
    if not running:
        return {"reference": None, "other_input_change": None, "rounding_change": None}
    reference = running[0].outputs()
    rounding = change_of(running[0], moved_by_one_ulp(feeds), reference)
    tolerance = max(tolerance, 4 * (rounding or 0))
    for contestant in running[1:]:
        error = relative_error(contestant.outputs(), reference)
        rows[contestant.name]["error"] = error
        if not error <= tolerance:
            rows[contestant.name].update(status="mismatch", reason=f"outputs differ by {error:.1e} of max |reference|")
    return {"reference": running[0].name, "other_input_change": change_of(running[0], other_feeds, reference),
            "rounding_change": rounding}


def runs_per_turn(contestant, seconds):
    """How many runs fill a turn; at least 3, so that a turn has a median."""
    contestant.run(WARM_UP)
    return max(3, math.ceil(seconds / (float(np.median(contestant.run(3))) * 1e-9)))


def take_turns(contestants, fma, options):
    """{name: [array of milliseconds (or of images per second) per round]}"""
    samples = {c.name: [] for c in contestants}
    counts = {} if options.contexts > 1 else {c.name: runs_per_turn(c, options.seconds) for c in contestants}
    for turn in range(options.rounds):
        if fma and turn % max(1, options.rounds // 4) == 0:
            fma.measure()
        shift = turn % len(contestants)
        for contestant in contestants[shift:] + contestants[:shift]:
            time.sleep(PAUSE)
            contestant.run(WARM_UP)
            if options.contexts > 1:
                value = np.array([contestant.images(options.seconds)])
            else:
                value = contestant.run(counts[contestant.name]) * 1e-6
            samples[contestant.name].append(value)
    return samples


def summarize(rows, samples, contestants, fma, flop, throughput):
    """Fill the rows: median, best, share of the limit, ratio to the faster peer. Returns that peer's name."""
    for contestant in contestants:
        row = rows[contestant.name]
        row.update(intervals.summary(samples[contestant.name]))
        row["turns"] = [round(float(np.median(turn)), 6) for turn in samples[contestant.name]]
        if throughput:
            row["best"] = max(float(s.max()) for s in samples[contestant.name])
        for share, value, rate in (("share", "median", "median_rate"), ("share_best", "best", "best_rate")):
            if fma:
                seconds = 1 / row[value] if throughput else row[value] * 1e-3
                row[share] = flop / seconds / (getattr(fma, rate)(contestant.fma) * 1e9)
    peers = [c.name for c in contestants if not c.name.startswith("opfuse")]
    if not peers:
        return None
    faster = (max if throughput else min)(peers, key=lambda name: rows[name]["median"])
    for contestant in contestants:
        ratio = intervals.ratio_of_medians(samples[contestant.name], samples[faster])
        rows[contestant.name].update(zip(("ratio", "ratio_low", "ratio_high"), ratio))
    return faster


def run_case(case, contestants, fma, options, threads):
    """`case` has path, feeds, other_feeds, flop, and what else the report wants to keep."""
    if fma:
        fma.begin_case()
    rows = start_all(contestants, case["path"], case["feeds"], threads)
    try:
        outputs = check_outputs(contestants, rows, case["feeds"], case["other_feeds"], options.tolerance)
        running = [c for c in contestants if rows[c.name]["status"] == "ok"]  # a wrong answer is not timed
        throughput = options.contexts > 1
        samples = take_turns(running, fma, options) if running else {}
        faster = summarize(rows, samples, running, fma, case["flop"], throughput)
    finally:
        for contestant in contestants:
            contestant.stop()
    kept = {key: case[key] for key in ("model", "batch", "flop", "not_counted")}
    return {**kept, "threads": threads, "contexts": options.contexts, "fma_gflops": fma.as_json() if fma else None,
            "unit": "images/s" if throughput else "ms", "faster_peer": faster, **outputs,
            "contestants": list(rows.values())}
