"""The measured cases as an SVG: one group of bars per case, the bar is the share of the FMA limit, the label the time.

Where no FMA rate was measured the bar is the speed relative to the fastest contestant of the case.
"""
from xml.sax.saxutils import escape

COLORS = {"ONNX Runtime": "#7a8ca3", "OpenVINO": "#b7a26a", "opfuse": "#c8443c"}
LEFT, WIDTH, BAR, GAP, TOP = 330, 460, 18, 22, 64


def text(x, y, words, anchor="start", size=12, weight="normal", color="#222"):
    return (f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" fill="{color}" '
            f'text-anchor="{anchor}">{escape(words)}</text>')


def bar_length(row, case):
    """In units of the axis: 1 is the FMA limit, or the fastest contestant."""
    if "median" not in row:
        return 0.0
    if "share" in row:
        return row["share"]
    values = [r["median"] for r in case["contestants"] if "median" in r]
    return row["median"] / max(values) if case["unit"] == "images/s" else min(values) / row["median"]


def label(row, case):
    if "median" not in row:
        return row["status"]
    share = f", {row['share']:.0%}" if "share" in row else ""
    return f"{row['median']:.4g} {case['unit']}{share}" + ("" if row["status"] == "ok" else f" ({row['status']})")


def case_title(case):
    contexts = f"{case['contexts']} ctx x " if case["contexts"] > 1 else ""
    return f"{case['model']} b{case['batch']}, {contexts}{case['threads']}T"


def draw_case(case, top, scale):
    parts = [text(LEFT - 118, top + BAR * len(case["contestants"]) / 2 + 4, case_title(case), "end", weight="bold")]
    for i, row in enumerate(case["contestants"]):
        y = top + i * BAR
        length = bar_length(row, case) * scale
        parts.append(text(LEFT - 8, y + BAR - 5, row["name"], "end", 11))
        parts.append(f'<rect x="{LEFT}" y="{y + 2}" width="{length:.1f}" height="{BAR - 4}" '
                     f'fill="{COLORS.get(row["name"], "#555")}"/>')
        parts.append(text(LEFT + length + 6, y + BAR - 5, label(row, case), size=11))
    return parts


def svg(cases, caption):
    """The whole picture as a string."""
    longest = max([1.0] + [bar_length(row, case) for case in cases for row in case["contestants"]])
    scale = WIDTH / longest
    measured = all(case["fma_gflops"] for case in cases)
    heights = [len(case["contestants"]) * BAR + GAP for case in cases]
    height = TOP + sum(heights) + 20
    parts = [text(20, 26, "Share of the machine's FMA limit" if measured else "Speed relative to the fastest", size=16,
                  weight="bold"),
             text(20, 44, caption, size=11, color="#666")]
    for percent in range(0, int(longest * 100) + 1, 20):
        x = LEFT + percent / 100 * scale
        parts.append(f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{height - 20}" stroke="#ddd"/>')
        parts.append(text(f"{x:.1f}", height - 6, f"{percent} %", "middle", 10, color="#666"))
    top = TOP
    for case, used in zip(cases, heights):
        parts += draw_case(case, top, scale)
        top += used
    body = "\n".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 190}" height="{height}" '
            f'font-family="sans-serif">\n<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n')
