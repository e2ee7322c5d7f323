"""Executable.profile: median times by launch, as a value that prints and that notebooks show as a table."""
from __future__ import annotations

import dataclasses
import statistics
import typing
from collections.abc import Mapping

if typing.TYPE_CHECKING:
    from . import Executable


@dataclasses.dataclass(frozen=True)
class LaunchTime:
    """One launch: what it computes, and how long it took."""

    name: str
    pattern: str
    sources: list[str]  #: nodes of the model
    microseconds: float  #: median of the runs
    flops: float
    bytes: float  #: read and written


@dataclasses.dataclass(frozen=True)
class Profile:
    """Launches in the order in which they run. The recorded times make the whole a little slower than a run without."""

    launches: list[LaunchTime]
    milliseconds: float  #: median of whole runs
    runs: int
    threads: int

    def _rows(self) -> list[tuple[str, float, float, float, float]]:
        total = sum(launch.microseconds for launch in self.launches) or 1.0
        return [(launch.name, round(launch.microseconds, 1), round(100 * launch.microseconds / total, 1),
                 round(launch.flops / launch.microseconds * 1e-3, 1) if launch.microseconds else 0.0,
                 round(launch.bytes * 1e-6, 2))
                for launch in sorted(self.launches, key=lambda launch: -launch.microseconds)]

    def _title(self) -> str:
        return f"{self.milliseconds:.3f} ms, {len(self.launches)} launches, median of {self.runs} runs, threads {self.threads}"

    def __str__(self) -> str:
        lines = [self._title(), f"{'us':>10} {'%':>6} {'GFLOP/s':>8} {'MB':>8}  launch"]
        lines += [f"{us:10.1f} {share:6.1f} {rate:8.1f} {size:8.2f}  {name}" for name, us, share, rate, size in self._rows()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from ._notebook import table
        return f"<p>{self._title()}</p>" + table(["launch", "us", "%", "GFLOP/s", "MB"], self._rows())


def profile(exe: Executable, inputs: Mapping[str, typing.Any], runs: int, threads: int) -> Profile:
    """One run that is not counted, then `runs` that are."""
    if runs < 1:
        raise ValueError(f"runs={runs}: at least one run is measured")
    context = exe.create_context(threads=threads, profile=True)
    for name, array in inputs.items():
        context.bind(name, array)
    context.run()
    times: list[list[int]] = []
    totals: list[int] = []
    for _ in range(runs):
        context.run()
        times.append(list(context.launch_nanoseconds()))
        totals.append(context.total_nanoseconds)
    launches = [LaunchTime(info.name, info.pattern, list(info.sources), statistics.median(column) * 1e-3, info.flops,
                           info.bytes_read + info.bytes_written)
                for info, column in zip(context.launches(), zip(*times))]
    return Profile(launches, statistics.median(totals) * 1e-6, runs, context.threads)
