"""The measured cases as a text table. Every contestant has a row in every case, whether it won, lost or did not run."""
import math
import platform

METHOD = """\
share   = useful FLOP (no taps in padding; contractions only) / time / FMA rate measured in this run at these threads
ratio   = median / median of the faster peer, with the 95 % interval of a bootstrap over rounds{direction}
error   = max |output - reference| / max |reference|; the reference is the first contestant that ran"""


def machine():
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as lines:
            model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass
    return f"{model}, {platform.system()} {platform.release()}"


def number(value, form):
    return "-" if value is None or (isinstance(value, float) and math.isnan(value)) else format(value, form)


def ratio_text(row):
    if "ratio" not in row:
        return "-"
    if row.get("ratio_low") is None or math.isnan(row["ratio_low"]) or row["ratio_low"] == row["ratio_high"] == 1:
        return number(row["ratio"], ".3f")
    return f"{row['ratio']:.3f} [{row['ratio_low']:.3f}, {row['ratio_high']:.3f}]"


def heading(case):
    gflop = case["flop"] / 1e9
    threads = f"{case['threads']} thread" + ("s" if case["threads"] > 1 else "")
    contexts = f"{case['contexts']} contexts x " if case["contexts"] > 1 else ""
    text = f"{case['model']}, batch {case['batch']}, {contexts}{threads}: {gflop:.3f} GFLOP"
    rates = case["fma_gflops"] or {}
    if rates:
        name = "fma_512" if "fma_512" in rates else "fma_256"
        rate = rates[name]["median"]
        limit = gflop / rate * 1e3
        text += (f", FMA limit {limit:.2f} ms" if case["contexts"] == 1 else f", FMA limit {1e3 / limit:.1f} images/s")
        text += f" ({name}: {rate:.1f} GFLOP/s)"
    else:
        text += ", FMA rate not measured"
    if case["not_counted"]:
        text += f"; not counted: {', '.join(case['not_counted'])}"
    return text


def case_table(case):
    unit = case["unit"]
    digits = ".1f" if unit == "images/s" else ".3f"
    titles = ("contestant", f"median {unit}", f"best {unit}", "share", "best", f"ratio to {case['faster_peer'] or 'peer'}",
              "error", "load ms")
    table = [titles]
    notes = []
    for row in case["contestants"]:
        mark = "" if row["status"] == "ok" else f" ({row['status']})"
        table.append((row["name"] + mark, number(row.get("median"), digits), number(row.get("best"), digits),
                      number(row.get("share"), ".1%"), number(row.get("share_best"), ".1%"), ratio_text(row),
                      number(row.get("error"), ".1e"), number(row.get("load_ms"), ".0f")))
        if row["reason"]:
            notes.append(f"  {row['name']} {row['status']}: {row['reason']}")
    widths = [max(len(line[i]) for line in table) for i in range(len(titles))]
    lines = [heading(case)]
    for line in table:
        cells = [line[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]
        lines.append("  " + "  ".join(cells))
    if case["other_input_change"] is not None:
        lines.append(f"  (another input changes the outputs by {case['other_input_change']:.1e} of max |reference|, one rounding of every "
                     f"number of the input by {number(case.get('rounding_change'), '.1e')})")
    return "\n".join(lines + notes)


def footer(cases):
    direction = " (images/s: above 1 is better)" if any(c["contexts"] > 1 for c in cases) else " (below 1 is better)"
    lines = [METHOD.format(direction=direction)]
    seen = {}
    for case in cases:
        for row in case["contestants"]:
            seen[row["name"]] = f"{row['name']} {row['version']}".strip() + f": {row['settings']}"
    return "\n".join(lines + list(seen.values()) + [f"machine: {machine()}"])
