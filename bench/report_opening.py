"""How long the page of a report takes to open, in headless Chromium: from navigation to the first frame after loading.

    python3 bench/report_opening.py --opfuse build/release/tools/opfuse/opfuse [--rounds 5]

Bars: 1 s for ResNet-50, 3 s for a graph of 3,000 nodes. Prints the median and the least: a busy machine makes both longer.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/cli"))
from browser import CHROMIUM, seconds_to_open  # noqa: E402


def large_graph(nodes):
    """Residual blocks of a convolution, a norm's arithmetic and an addition."""
    lines, last = ["graph (%x: f32[1,8,8,8]) {", "  %w = const rand<1> : f32[8,8,3,3]"], "%x"
    for i in range(nodes // 4):
        lines += [f"  %c{i} = conv({last}, %w) {{pads = [1,1,1,1]}} @\"/block{i}/conv\"", f"  %r{i} = relu(%c{i}) @\"/block{i}/relu\"",
                  f"  %s{i} = sigmoid(%r{i}) @\"/block{i}/sigmoid\"", f"  %a{i} = add(%s{i}, {last}) @\"/block{i}/add\""]
        last = f"%a{i}"
    return "\n".join([*lines, f"  return {last}", "}"]) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--opfuse", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if not CHROMIUM:
        sys.exit("chromium is not installed")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "large.fir").write_text(large_graph(3000))
        for name, model, bar in (("ResNet-50", "zoo:resnet50", 1.0), ("3,000 nodes", folder / "large.fir", 3.0)):
            page_file = folder / "r.html"
            subprocess.run([options.opfuse, "report", model, "-o", page_file, "--duration", "200ms"], check=True, stderr=subprocess.DEVNULL)
            seconds = [seconds_to_open(page_file)[0] for _ in range(options.rounds)]
            middle = statistics.median(seconds)
            print(f"{name}: {page_file.stat().st_size / 1e6:.1f} MB, opens in {middle:.2f} s (best {min(seconds):.2f}); "
                  f"bar {bar:.0f} s: {'met' if middle <= bar else 'NOT met'}")


if __name__ == "__main__":
    main()
