"""Rounds of several calls of a script together: on a shared host many short turns spread over an hour say more than a long minute.

A file of JSON lines, one per measured case, holds the median of every turn. The ratio of a round is that of two turns next to
each other, which share the machine's mood; reported are the median of these ratios and its 95 % interval, from the order of
the ratios alone (the sign test's), so a disturbed turn counts once, however slow it was.
"""
import json
import math
import statistics


def order_interval(values, level=0.95):
    """Ends of the median's interval: as many of the values lie outside as heads in a fair series may fall."""
    ordered, n = sorted(values), len(values)
    below, tail = 0, 0.5**n
    while tail + math.comb(n, below + 1) * 0.5**n <= (1 - level) / 2:
        below += 1
        tail += math.comb(n, below) * 0.5**n
    if n < 6:  # two halves of 1/32 are more than 5 %
        return float("nan"), float("nan")
    return ordered[below], ordered[n - 1 - below]


def add(path, case):
    """Appends the turns of all contestants of a measured case that ran."""
    turns = {c["name"]: c["turns"] for c in case["contestants"] if c["status"] == "ok"}
    errors = {c["name"]: c["error"] for c in case["contestants"] if "error" in c}
    with open(path, "a") as file:
        file.write(json.dumps({"model": case["model"], "threads": case["threads"], "turns": turns, "errors": errors}) + "\n")


def together(path, model, threads, own="opfuse"):
    """{name: {"median", "best", "turns"}} and (ratio, low, high, peer, rounds) against the peer with the least median."""
    with open(path) as file:
        entries = [e["turns"] for e in map(json.loads, file) if (e["model"], e["threads"]) == (model, threads)]
    flat = {}
    for entry in entries:
        for name, turns in entry.items():
            flat.setdefault(name, []).extend(turns)
    rows = {name: {"median": statistics.median(ms), "best": min(ms), "turns": len(ms)} for name, ms in flat.items()}
    peers = [name for name in rows if not name.startswith("opfuse")]
    if own not in rows or not peers:
        return rows, None
    peer = min(peers, key=lambda name: rows[name]["median"])
    pairs = [a / b for entry in entries if own in entry and peer in entry for a, b in zip(entry[own], entry[peer])]
    return rows, (statistics.median(pairs), *order_interval(pairs), peer, len(pairs))
