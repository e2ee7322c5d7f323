"""opfuse targets: the list, files of one's own, this machine measured."""
import re
import unittest

from harness import MODELS, CliTest

NET = MODELS / "small_net.fir"
CODES = """graph (%x: f32[2,16,5,5]) {
  %s = const splat<0.02> : f32[]
  %z = const splat<7> : u8[]
  %c = const rand<1> : i8[24,16,3,3]
  %w = dequantize_linear(%c, %s)
  %q = quantize_linear(%x, %s, %z)
  %d = dequantize_linear(%q, %s, %z)
  %v = conv(%d, %w) {pads = [1,1,1,1]}
  %y = quantize_linear(%v, %s, %z)
  return %y }"""


class Targets(CliTest):
    def write(self, text, name="mine.toml"):
        path = self.folder / name
        path.write_text(text)
        return path

    def test_the_list_says_what_runs_here(self):
        out = self.ok("targets").out
        for name in ("cpu:avx512-vnni", "cpu:avx2", "cpu:baseline", "cuda:sm_90", "cuda:emulated"):
            self.assertIn(name, out)
        listed = self.ok("targets", "list", "--json").json
        self.assertIn(listed["host"], [t["name"] for t in listed["targets"]])
        baseline = next(t for t in listed["targets"] if t["name"] == "cpu:baseline")
        self.assertEqual(baseline["lacking_here"], [])
        self.assertEqual(baseline["instructions"]["vector_bytes"], 16)

    def test_what_show_prints_is_a_file(self):
        text = self.ok("targets", "show", "cpu:baseline").out
        path = self.write(text.replace('"cpu:baseline"', '"cpu:other"'))
        self.assertIn("ok: cpu:other", self.ok("targets", "check", path).out)
        self.fails(2, "targets", "show", "cpu:avx3", says=["unknown target", 'did you mean "cpu:avx2"?'])

    def test_check_names_every_mistake(self):
        path = self.write('schema = 1\nextends = "cpu:baseline"\n[caches]\nl2_byte = 1\n[core]\nfma_units = 0\n')
        result = self.fails(1, "targets", "check", path)
        self.assertEqual(result.out.splitlines(), [
            f'{path}:4:11: [caches] has no field "l2_byte"', '  hint: did you mean "l2_bytes"?',
            f"{path}:6:13: core.fma_units = 0 is outside [1, 16]"])
        self.assertEqual(len(self.fails(1, "targets", "check", path, "--json").json["mistakes"]), 2)
        self.fails(5, "compile", NET, "--target", path, "-o", self.folder / "m.opf",
                   says=[f"{path}:4:11:", "1 more: `opfuse targets check"])
        self.fails(2, "targets", "check", says=["needs a file"])
        self.fails(2, "targets", "chekc", path, says=['did you mean "check"?'])

    def test_a_planning_target_fuses_what_its_file_lists(self):
        fused = self.folder / "fused.onnx"
        out = self.ok("fuse", "zoo:resnet18", "--target", "tensorrt", "-o", fused, "--json").json
        self.assertEqual((out["module_total"], out["qdq"]["declared"], out["qdq"]["tensor_count"]), (22, 31, 22))
        self.assertEqual(self.ok("fuse", fused, "--target", "tensorrt", "--json").json["target"], "tensorrt")
        self.fails(3, "compile", NET, "--target", "tensorrt", "-o", self.folder / "m.opf",
                   says=["no code for tensorrt", "targets advise"])
        self.assertIn("epilogue", self.ok("targets", "show", "tensorrt").out)

    def test_rows_of_a_file_decide_and_advise(self):
        head = ('schema = 1\nkind = "planning"\n[device]\nmultiply_adds_per_second = 1e12\nbytes_per_second = 1e9\n'
                'launch_seconds = 1e-5\n[[anchor]]\nops = ["conv"]\n')
        path = self.write(head + 'epilogue = [{ ops = ["batch_norm"] }, { ops = ["activation"] }]\n')
        out = self.ok("targets", "advise", "zoo:resnet18", "--target", path).out
        self.assertRegex(out.splitlines()[1], r"add in the epilogue of conv would fuse 8 edges, [0-9.]+ MB, \d+ us")
        self.assertEqual(self.ok("fuse", "zoo:resnet18", "--target", path, "--json").json["modules"],
                         {"FusedConvBN": 12, "FusedConvBNReLU": 9})
        self.write(head + 'epilogue = [{ ops = ["batch_norm"] }, { ops = ["add"] }, { ops = ["activation"] }]\n')
        lacks = self.ok("targets", "advise", "zoo:resnet18", "--target", path, "--json").json["lacks"]
        self.assertFalse([row for row in lacks if row["lacks"].startswith("add ")])
        self.write(head + 'where = ["op.in_chanels == 1"]\n')
        self.assertIn(f'{path}:9:14: op:conv has no property "in_chanels"', self.fails(1, "targets", "check", path).out)
        self.fails(2, "targets", "advise", NET, "--target", "cpu:avx2", says=["says nothing of what it takes"])

    def test_a_processor_takes_no_more_than_its_file_says(self):
        path = self.write('schema = 1\nextends = "cpu:baseline"\n[limits]\nnodes = 1\n')
        groups = self.ok("fuse", "zoo:resnet18", "--target", path, "--json").json
        self.assertNotIn("FusedConvBNReLU", groups["modules"])
        self.assertIn("passed", self.ok("compare", NET, "--dim", "batch=1", "--target", path).out.lower())

    def test_a_file_is_a_target_everywhere(self):
        path = self.write('schema = 1\nextends = "cpu:baseline"\n[caches]\nl1_bytes = 16384\n')
        opf = self.folder / "m.opf"
        self.ok("compile", NET, "--target", path, "-o", opf)
        self.assertIn("target cpu:mine (needs sse2)", self.ok("inspect", opf).out)
        self.ok("run", opf)
        self.assertIn("passed", self.ok("compare", NET, "--dim", "batch=1", "--target", path).out.lower())
        self.assertEqual(self.ok("explain", NET, "--target", path, "--json").code, 0)
        self.ok("profile", opf, "--duration", "10ms")
        plan = self.folder / "plan.json"
        self.ok("fuse", NET, "--target", path, "--plan-out", plan)
        self.ok("compile", NET, "--target", path, "--plan", plan, "-o", opf, "--force")

    def test_a_gpu_of_ones_own(self):
        path = self.write('schema = 1\nextends = "cuda:sm_80"\n[gpu]\nshared_kilobytes = 99\n', "small.toml")
        self.ok("compile", NET, "--target", path, "--dim", "batch=1", "--emit", "cuda", self.folder / "texts")
        self.assertTrue(list((self.folder / "texts").iterdir()))

    def test_features_that_the_machine_lacks_are_named(self):
        here = self.ok("targets", "list", "--json").json["host_features"]
        lacking = [f for f in ("avx512fp16", "avxvnni", "avx512bf16", "avx512vnni") if f not in here]
        if not lacking:
            self.skipTest("this machine has all features")
        path = self.write(f'schema = 1\nextends = "cpu:baseline"\n[instructions]\nfeatures = ["{lacking[0]}"]\n')
        opf = self.folder / "m.opf"
        self.ok("compile", NET, "--target", path, "-o", opf)
        self.fails(4, "run", opf, says=[f"needs the CPU feature {lacking[0]}, which this machine lacks"])

    def test_features_and_width_are_told_apart(self):
        """Vectors narrower than their features allow, and byte products in either encoding."""
        here = self.ok("targets", "list", "--json").json["host_features"]
        codes = self.write(CODES, "codes.fir")
        halves = self.write("""graph (%x: f32[1,8,6,6]) {
  %w = const rand<1> : f32[20,8,1,1]
  %v = conv(%x, %w)
  %y = silu(%v)
  return %y }""", "halves.fir")
        for base, width, model in (("cpu:avx512-vnni", 32, codes), ("cpu:avx512-vnni", 16, codes), ("cpu:avx512", 32, halves),
                                   ("cpu:avx2-vnni", 32, codes), ("cpu:avx2-vnni", 16, codes)):
            if all(f in here for f in self.ok("targets", "show", base, "--json").json["instructions"]["features"]):
                path = self.write(f'schema = 1\nextends = "{base}"\n[instructions]\nvector_bytes = {width}\n')
                self.assertIn("PASSED", self.ok("compare", model, "--target", path).out)

    def test_features_besides_are_needed_where_they_are_used(self):
        quantised = self.write(CODES, "codes.fir")
        opf = self.folder / "m.opf"
        needs = {}
        for target in ("host", self.ok("targets", "list", "--json").json["host"]):
            for model in (quantised, NET):
                self.ok("compile", model, "--target", target, "-o", opf)
                needs[target, model] = self.ok("inspect", opf, "--json").json["cpu_features"]
            self.ok("compare", quantised, "--target", target)
        named = target
        self.assertEqual(needs["host", NET], needs[named, NET])
        besides = {"cpu:avx512": {"avx512vnni"}, "cpu:avx2": {"avxvnni"}, "cpu:baseline": set()}[named]
        self.assertEqual(set(needs["host", quantised]) - set(needs[named, quantised]),
                         besides & set(self.ok("targets", "list", "--json").json["host_features"]))

    def test_the_machine_is_measured_and_kept(self):
        path = self.folder / "here.toml"
        out = self.ok("targets", "probe", "--threads", "1", "-o", path).out
        self.assertRegex(out, r"rates\.memory +\d")
        self.assertIn("ok: cpu:here", self.ok("targets", "check", path).out)
        shown = self.ok("targets", "show", path).out
        measured = float(re.search(r"^memory = (.*)$", path.read_text(), re.M)[1])
        self.assertGreater(measured, 0.1)
        self.assertIn(f"memory = {re.search(r'^memory = (.*)$', path.read_text(), re.M)[1]}\n", shown)
        self.fails(2, "targets", "probe", "--target", "cuda:sm_80", says=["measures this machine's processor"])


if __name__ == "__main__":
    unittest.main()
