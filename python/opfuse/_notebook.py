"""Tables for notebooks: plain HTML without styles of its own, which fits a light and a dark page."""
from __future__ import annotations

import collections
import html
import typing
from collections.abc import Iterable, Sequence

if typing.TYPE_CHECKING:
    from . import Plan

MOST_MISSED = 10


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Numbers stand right, texts left."""
    def cell(value: object) -> str:
        align = "right" if isinstance(value, (int, float)) else "left"
        return f'<td style="text-align: {align}">{html.escape(str(value))}</td>'
    head = "".join(f'<th style="text-align: left">{html.escape(column)}</th>' for column in columns)
    body = "".join("<tr>" + "".join(map(cell, row)) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def megabytes(count: float) -> float:
    return round(count * 1e-6, 2)


def plan_table(plan: Plan) -> str:
    """What is fused, by pattern, and what is not, most bytes first."""
    groups: dict[tuple[str, str], list[float]] = collections.defaultdict(list)
    for entry in plan:
        if entry.apply:
            groups[entry.rule, entry.module].append(entry.bytes_saved)
    rows = sorted(((rule, module, len(saved), megabytes(sum(saved))) for (rule, module), saved in groups.items()),
                  key=lambda row: -row[3])
    text = table(["pattern", "module", "groups", "MB saved"], rows)
    missed = sorted(plan.missed(), key=lambda entry: -entry.bytes_saved)
    if missed:
        shown = [(entry.rule, entry.anchor, entry.reason, megabytes(entry.bytes_saved)) for entry in missed[:MOST_MISSED]]
        text += f"<p>not fused: {len(shown)} of {len(missed)}</p>" + table(["pattern", "at", "why", "MB"], shown)
    return text
