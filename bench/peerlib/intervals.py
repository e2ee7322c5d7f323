"""Medians and how far to trust them.

Runs inside one turn share the machine's mood, so they are not independent: the bootstrap draws whole rounds, with the same
rounds for both contestants, and reports the 95 % interval of the ratio of the medians.
"""
import numpy as np

RESAMPLES = 2000


def summary(rounds):
    runs = np.concatenate(rounds)
    return {"median": float(np.median(runs)), "best": float(runs.min()), "p90": float(np.quantile(runs, 0.9)),
            "runs": int(runs.size), "rounds": len(rounds)}


def ratio_of_medians(ours, theirs, seed=0):
    """(ratio, low, high) of median(ours) / median(theirs); lists of arrays, one array per round, rounds in step."""
    ratio = float(np.median(np.concatenate(ours)) / np.median(np.concatenate(theirs)))
    rng = np.random.default_rng(seed)
    count = min(len(ours), len(theirs))
    if count < 3:
        return ratio, float("nan"), float("nan")
    drawn = []
    for _ in range(RESAMPLES):
        pick = rng.integers(0, count, count)
        drawn.append(np.median(np.concatenate([ours[i] for i in pick])) /
                     np.median(np.concatenate([theirs[i] for i in pick])))
    low, high = np.quantile(drawn, [0.025, 0.975])
    return ratio, float(low), float(high)
