"""opfuse report: the document, the page in a browser, drawings; and the trace of a run."""
import json
import re
import unittest
import xml.etree.ElementTree

from browser import CHROMIUM, Page
from harness import CliTest

MEASURED = ("--duration", "20ms", "--warmup", "0ms", "--threads", "1")
QUICK = ("--no-measure", "--threads", "2")
SPELLED = """graph (%x: f32[1,8,12,12]) {
  %w = const rand<1> : f32[8,8,3,3]
  %a = conv(%x, %w) {pads = [1,1,1,1]}
  %b = relu(%a)
  %c = conv(%b, %w) {pads = [1,1,1,1]}
  %d = add(%c, %b)
  %y = relu(%d)
  return %y
}
"""


def data_of(page):
    text = page.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    return json.loads(text)


class Report(CliTest):
    def small(self):
        path = self.folder / "small.fir"
        path.write_text(SPELLED)
        return path

    def check_model(self, model):
        """What a viewer relies on."""
        for which in ("before", "after"):
            graph = model[which]
            nodes, values = len(graph["nodes"]), len(graph["values"])
            for node in graph["nodes"]:
                self.assertLess(node["unit"], len(model["units"]))
                x, y, w, h = node["box"]
                self.assertTrue(0 <= x and 0 <= y and x + w <= graph["width"] and y + h <= graph["height"], node)
                self.assertTrue(all(0 <= v < values for v in node["reads"] + node["results"]), node)
            for edge in graph["edges"]:
                self.assertTrue(0 <= edge["from"] < nodes and 0 <= edge["to"] < nodes and 0 <= edge["value"] < values, edge)
                self.assertGreaterEqual(len(edge["points"]), 4)
                a, b, points = graph["nodes"][edge["from"]]["box"], graph["nodes"][edge["to"]]["box"], edge["points"]
                self.assertTrue(a[0] - 0.2 <= points[0] <= a[0] + a[2] + 0.2, "an edge begins at its node")
                self.assertTrue(b[0] - 0.2 <= points[-2] <= b[0] + b[2] + 0.2, "an edge ends at its node")
            boxes = [f["box"] for f in graph["frames"]]
            for frame in graph["frames"]:  # a frame holds the nodes of its unit, and no other
                x, y, w, h = frame["box"]
                for node in graph["nodes"]:
                    nx, ny, nw, nh = node["box"]
                    apart = nx + nw <= x or x + w <= nx or ny + nh <= y or y + h <= ny
                    self.assertEqual(node["unit"] != frame["unit"], apart, (frame, node))
            self.assertEqual(len(boxes), len({f["unit"] for f in graph["frames"]}))
        for number, launch in enumerate(model["launches"]):
            self.assertIn(number, model["units"][launch["unit"]]["launches"])
            self.assertEqual(launch["ms"] is None, model["profile"] is None)
            self.assertTrue(launch["text"] is None or launch["text"] < len(model["texts"]))
        self.assertEqual(len(model["memory"]["live"]), len(model["launches"]))
        self.assertLessEqual(max(model["memory"]["live"]), model["memory"]["arena_bytes"])
        costs = [row["bytes"] for row in model["missed"]]
        self.assertEqual(costs, sorted(costs, reverse=True))

    def test_the_document_has_every_launch_of_the_profile(self):
        path = self.folder / "r.html"
        self.ok("report", "zoo:resnet18", "-o", path, *MEASURED)
        page = path.read_text()
        self.assertEqual(set(re.findall(r"https?://[^\"'\s<]*", page)), {"http://www.w3.org/2000/svg"}, "loads nothing")
        self.assertIsNone(re.search(r"<(link|img|iframe|script)[^>]*(src|href)=", page))
        report = data_of(page)
        self.assertEqual(report["schema"], "opfuse.report/1")
        model = report["models"][0]
        self.check_model(model)
        kernels = self.ok("profile", "zoo:resnet18", "--json", *MEASURED).json["kernels"]
        self.assertEqual([(k["kernel"], k["nodes"]) for k in kernels], [(l["name"], l["nodes"]) for l in model["launches"]])
        self.assertTrue(all(launch["ms"] > 0 for launch in model["launches"]))
        known = {node["name"] for node in model["before"]["nodes"]}
        for launch in model["launches"]:
            self.assertLessEqual(set(launch["nodes"]), known)
            self.assertIsNotNone(launch["text"], "assembly of " + launch["name"])
        traced = {part[0] for part in model["timeline"]["parts"]}
        self.assertEqual(traced, set(range(len(model["launches"]))))

    def test_sizes_that_a_run_finds(self):
        path = self.folder / "mask.fir"
        path.write_text("""graph (%x: f32[24]) { %z = const splat<0> : f32[] %p = greater(%x, %z) %i = non_zero(%p) {defines = ["n"]}
          %j = squeeze(%i) {axes = [0]} %g = gather(%x, %j) {axis = 0} %m = reduce_max(%g) {axes = [0], keepdims = true}
          %s = sub(%g, %m) %e = exp(%s) return %e }""")
        artifact, trace = self.folder / "mask.opf", self.folder / "trace.json"
        self.ok("compile", path, "-o", artifact)
        sizes = set()
        for model in (path, artifact):
            for how in (MEASURED, QUICK):
                data = self.ok("report", model, "--format", "json", "--no-code", *how).json["models"][0]
                if model == path:  # a text graph's nodes have no names that an .opf would keep
                    self.check_model(data)
                sizes.add(data["dims"]["n"])
                self.assertLessEqual({b["offset"] + b["bytes"] <= data["memory"]["arena_bytes"] for b in data["memory"]["blocks"]}, {True})
        self.assertEqual(len(sizes), 1)
        self.assertTrue(0 < min(sizes) < 24, sizes)
        self.ok("profile", path, "--trace", trace, *MEASURED)
        self.assertTrue(json.loads(trace.read_text())["traceEvents"])

    def test_graphs_of_branches_and_attention_are_sound(self):
        for name in ("zoo:mobilenet_v3_large", "zoo:swin_t"):
            self.check_model(self.ok("report", name, "--format", "json", "--no-code", *QUICK).json["models"][0])

    def test_json_proof_and_unfused_side_by_side(self):
        report = self.ok("report", self.small(), "--format", "json", "--vs-unfused", "--compare", *QUICK).json
        fused, unfused = report["models"]
        self.assertLess(len(fused["launches"]), len(unfused["launches"]))
        self.assertTrue(all(node["unit"] >= 0 for node in fused["before"]["nodes"] if node["kind"] == "node"), "text graphs without names too")
        for model in report["models"]:
            self.assertTrue(model["proof"]["ok"])
            self.assertTrue(all(launch["error"]["ok"] for launch in model["launches"]))
        self.assertEqual(len(fused["before"]["nodes"]), len(unfused["before"]["nodes"]))

    def test_an_opf_has_names_from_its_plan(self):
        named, opf = self.folder / "named.fir", self.folder / "m.opf"
        named.write_text(re.sub(r"(%(\w) = (?:conv|relu|add)\(.*)", r'\1 @"/net/\2"', SPELLED))
        self.ok("compile", named, "-o", opf)
        model = self.ok("report", opf, "--format", "json", *QUICK).json["models"][0]
        self.assertEqual(model["kind"], "opf")
        self.assertEqual(model["texts"], [])
        self.assertIn("machine code only", model["no_texts"])
        self.assertEqual({n["unit"] for n in model["before"]["nodes"] if n["unit"] >= 0}, set(range(len(model["units"]))))
        self.fails(2, "report", opf, "-o", self.folder / "x.html", "--compare", says=["--compare does not apply"])

    def test_what_was_not_measured_says_so(self):
        model = self.ok("report", self.small(), "--format", "json", "--no-measure", "--no-code").json["models"][0]
        self.assertIsNone(model["profile"])
        self.assertIsNone(model["timeline"])
        self.assertIn("--no-measure", model["not_measured"])
        self.assertTrue(all(launch["ms"] is None for launch in model["launches"]))
        cuda = self.ok("report", self.small(), "--format", "json", "--no-measure", "--target", "cuda:sm_80").json["models"][0]
        self.assertTrue(all(launch["text"] is not None for launch in cuda["launches"]), "CUDA C++ of every launch")

    def test_many_parts_become_one_per_launch_and_worker(self):
        model = self.ok("report", self.small(), "--format", "json", "--timeline-parts", "1", *MEASURED).json["models"][0]
        timeline = model["timeline"]
        self.assertTrue(timeline["merged"])
        self.assertEqual(len({(p[0], p[1]) for p in timeline["parts"]}), len(timeline["parts"]))
        for _, _, _, begin, end, busy in timeline["parts"]:
            self.assertLessEqual(busy, end - begin)

    def test_drawings(self):
        svg = self.ok("report", "zoo:unet", "--format", "svg").out
        tree = xml.etree.ElementTree.fromstring(svg)
        titles = [t.text for t in tree.iter("{http://www.w3.org/2000/svg}title")]
        self.assertIn("/bottom/bottom.5/Relu", titles)
        part = self.ok("report", "zoo:unet", "--format", "dot", "--view", "after", "--node", "/bottom/bottom.5/Relu", "--radius", "1").out
        self.assertEqual(len(re.findall(r"^\s*n\d+ \[", part, re.M)), 3)
        self.assertEqual(part.count("->"), 2)
        self.fails(2, "report", "zoo:unet", "--format", "svg", "--node", "/bottom/bottom.5/Rel", says=["/bottom/bottom.5/Relu"])
        self.fails(2, "report", "zoo:unet", "--format", "svg", "--compare", says=["does not apply"])
        self.fails(2, "report", "zoo:unet", says=["-o report.html"])

    def test_trace_of_a_run(self):
        path = self.folder / "t.json"
        kernels = self.ok("profile", self.small(), "--trace", path, "--json", *MEASURED).json["kernels"]
        trace = json.loads(path.read_text())
        events = trace["traceEvents"]
        run_us, threads = trace["otherData"]["run_ns"] / 1000, trace["otherData"]["threads"]
        spans = [e for e in events if e["ph"] == "X"]
        self.assertEqual([e["name"] for e in spans if e["tid"] == 0], [k["kernel"] for k in kernels])
        for track in range(threads + 1):
            at = 0
            for event in (e for e in spans if e["tid"] == track):
                self.assertGreaterEqual(event["ts"], at - 1e-6, "events of a track do not overlap")
                self.assertGreaterEqual(event["dur"], 0)
                at = event["ts"] + event["dur"]
            self.assertLessEqual(at, run_us * 1.01 + 50)
        for number, kernel in enumerate(kernels):
            parts = [e["args"]["part"] for e in spans if e["cat"] == "part" and e["args"]["launch"] == number]
            self.assertEqual(sorted(parts), list(range(kernel["parts"])))
        names = {e["args"]["name"] for e in events if e["ph"] == "M"}
        self.assertLessEqual({"launches", *(f"worker {i}" for i in range(threads))}, names)
        for worker in range(threads):  # parts and waiting fill the run
            busy = sum(e["dur"] for e in spans if e["tid"] == worker + 1)
            self.assertAlmostEqual(busy, run_us, delta=0.02 * run_us + 50)


@unittest.skipUnless(CHROMIUM, "no chromium: apt-get install chromium")
class PageInABrowser(CliTest):
    def open(self, *arguments, **options):
        path = self.folder / "r.html"
        self.ok("report", *arguments, "-o", path)
        page = Page(path, **options)
        self.addCleanup(page.close)
        page.wait("document.documentElement?.dataset.ready")
        return page

    def test_clicks_search_and_keys(self):
        page = self.open("zoo:resnet18", *MEASURED)
        page.wait("document.querySelectorAll('[data-pane=before] [data-node]').length > 3")
        page.click_on("[data-pane=after] rect.heat0, [data-pane=after] rect.node:not(.io)")
        page.wait("!document.getElementById('detail').hidden")
        unit = page.evaluate("selection.unit")
        self.assertGreaterEqual(unit, 0)
        self.assertIn(page.evaluate("models[0].units[selection.unit].nodes[0]"), page.evaluate("document.getElementById('detail').textContent"))
        page.wait("document.querySelector('[data-pane=before] rect.frame.on') !== null")
        page.click_on("#show-text")
        page.wait("document.getElementById('kernel-text')?.textContent.includes('ret')")
        page.evaluate("closeDetail()")
        page.key("/")
        page.type("layer3.1/conv2")
        page.wait("document.querySelectorAll('#found li').length > 0")
        page.key("Enter", 13)
        page.wait("document.getElementById('detail').textContent.includes('/layer3/layer3.1/conv2/Conv')")
        page.evaluate("document.activeElement.blur()")
        before = page.evaluate("selection.launch")
        page.key("j")
        self.assertEqual(page.evaluate("selection.launch"), before + 1)
        page.evaluate("for (const id of sections.keys()) drawSection(id)")
        self.assertEqual(page.evaluate("document.querySelectorAll('#launches tbody tr').length"), page.evaluate("models[0].launches.length"))
        self.assertEqual(page.evaluate("document.querySelectorAll('#launches tr.on').length"), 1)
        self.assertGreater(page.evaluate("document.querySelectorAll('#roofline .dot').length"), 10)
        page.click_on("#launches tbody tr:nth-child(2)")
        self.assertEqual(page.evaluate("selection.launch"), 1)
        page.click_on("[data-pane=before] .zoom button:nth-child(3)")
        page.wait("document.querySelector('[data-pane=before] g').firstChild.style.display !== 'none'")
        page.key("Escape", 27)
        page.wait("document.getElementById('detail').hidden")
        self.assertEqual(page.problems, [])

    def test_two_models_dark_and_narrow(self):
        small = self.folder / "small.fir"
        small.write_text(SPELLED)
        page = self.open(small, "--vs-unfused", "--compare", *QUICK, width=420, height=800, dark=True)
        page.evaluate("for (const id of sections.keys()) drawSection(id)")
        self.assertEqual(page.evaluate("document.querySelectorAll('.pane').length"), 2)
        self.assertIn("Compiled without fusion", page.evaluate("document.getElementById('missed').textContent"))
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 420)
        self.assertNotEqual(page.evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        for model in (0, 1):  # on paper: every node, of both models
            drawn = page.evaluate(f"document.querySelectorAll('.paper')[{model}].querySelectorAll('[data-node]').length")
            self.assertGreaterEqual(drawn, page.evaluate(f"models[{model}].before.nodes.length"))
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        self.assertEqual(page.evaluate("document.querySelectorAll('.paper').length"), 0)
        self.assertEqual(page.problems, [])


if __name__ == "__main__":
    unittest.main()
