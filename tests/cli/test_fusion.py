"""What became of fusions: the same numbers from every verb, two plans side by side, where time should go."""
from harness import MODELS, CliTest

SMALL = MODELS / "small_net.fir"
TWO = '''graph (%x: f32[64,256]) {
  %a = relu(%x) @"a"(Relu@17)
  %b = sigmoid(%a) @"b"(Sigmoid@17)
  return %b
}'''


class Fusion(CliTest):
    def test_fuse_explain_and_compile_count_the_same_launches(self):
        compiled = self.ok("compile", SMALL, "-o", self.folder / "m.opf", "--json").json["launches"]
        self.assertEqual(self.ok("fuse", SMALL, "--dry-run", "--json").json["launches"], compiled)
        self.assertIn(f"{compiled} launches", self.ok("fuse", SMALL, "--dry-run").out)
        self.assertEqual(len(self.ok("explain", SMALL, "--json").json["launches"]), compiled)

    def test_diff_of_models_plans_and_executables(self):
        model, plan, apart = self.folder / "two.fir", self.folder / "a.json", self.folder / "b.json"
        model.write_text(TWO)
        self.ok("fuse", model, "--dry-run", "--plan-out", plan)
        self.ok("fuse", model, "--dry-run", "--plan-out", apart, "--no-fuse", "a", "b")
        self.assertIn("0 lost", self.ok("diff", model, plan).out)
        lost = self.ok("diff", plan, apart, "--json").json
        self.assertEqual(lost["schema"], "opfuse.diff/1")
        self.assertEqual([(c["producer"], c["consumer"], c["code"]) for c in lost["lost"]], [("a", "b", "no_fuse")])
        self.assertIn('LOST     "a" -> "b"', self.fails(1, "diff", plan, apart, "--fail-on-lost").out)
        self.assertIn("1 gained", self.ok("diff", apart, plan, "--fail-on-lost").out)
        self.ok("compile", model, "-o", self.folder / "m.opf")
        self.ok("diff", plan, self.folder / "m.opf", "--fail-on-lost")
        self.fails(2, "diff", SMALL, plan, says=["no edge in common"])
        self.assertIn("0 lost", self.ok("diff", model, plan, "--operator", "swish(x) = x * sigmoid(x)", "--precision", "f32", "--workspace", "1MB").out)
        self.fails(2, "diff", model, plan, "--workspace", "large", says=["--workspace large: not a number of bytes"])
        self.fails(5, "diff", plan, self.folder / "missing.json")

    def test_diff_of_settings_of_one_model(self):
        text = self.ok("diff", SMALL, "--precision", "f32,bf16,f16", "--target", "cpu:avx512-bf16").out
        self.assertEqual(text.count("fusions:"), 2)
        self.assertIn(f"second   {SMALL} --precision bf16   target cpu:avx512-bf16", text)
        diffs = self.ok("diff", SMALL, "--workspace", "0,64kB", "--dim", "batch=1", "--json").json
        self.assertEqual(diffs["schema"], "opfuse.diffs/1")
        self.assertEqual([d["second"]["name"] for d in diffs["diffs"]], [f"{SMALL} --workspace 64kB"])
        self.assertGreater(diffs["diffs"][0]["first"]["arena_bytes"], 0)
        self.fails(2, "diff", SMALL, says=["only '", "--precision (f32,bf16)"])
        self.fails(2, "diff", SMALL, "--precision", "f32,int8", says=["int8 needs scales", "opfuse quantize"])
        self.fails(2, "diff", SMALL, "--precision", "f32,", says=['there is no precision ""'])

    def test_why_slow_names_launches_and_what_bounds_them(self):
        text = self.ok("explain", SMALL, "--why-slow", "--top", "2").out
        self.assertEqual(text.count("SLOW"), 2)
        self.assertIn("bound by", text)
        document = self.ok("explain", SMALL, "--why-slow", "--json", "--threads", "2").json
        self.assertTrue(all(row["predicted_us"] > 0 for row in document["launches"]))
        self.assertTrue(0 < document["balance"]["share_of_ideal"] <= 1)
        self.assertIn("BALANCE  2 threads", self.ok("explain", SMALL, "--threads", "2").out)

    def test_many_threads_are_filled(self):
        def balance(model, threads):
            return self.ok("explain", model, "--why-slow", "--json", "--threads", str(threads)).json["balance"]["share_of_ideal"]
        for model in ("zoo:mobilenet_v2", "zoo:efficientnet_b0", "zoo:resnet18"):
            self.assertGreaterEqual(balance(model, 16), 0.8, model)
        model = self.folder / "many.fir"
        model.write_text("""graph (%x: f32[2,16,30,30]) {
%w = const rand<1> : f32[40,16,1,1]
%c = conv(%x, %w)
%d = const rand<2> : f32[40,1,3,3]
%e = conv(%c, %d) {group=40, pads=[1,1,1,1]}
%s = sigmoid(%e)
%g = mul(%e, %s)
%t = transpose(%g) {perm=[0,2,3,1]}
%y = softmax(%t) {axis=-1}
return %y
}
""")
        for threads in ("2", "16", "48"):
            self.ok("compare", model, "--threads", threads)

    def test_top_caps_everything(self):
        whole, cut = self.ok("explain", SMALL), self.ok("explain", SMALL, "--top", "1")
        entries = [line for line in cut.out.splitlines() if line and not line.startswith(" ")]
        self.assertEqual(len(entries), 1, cut.out)
        self.assertLess(len(cut.out), len(whole.out))
        self.assertIn("not shown (--top)", cut.err)

    def test_targets_state_what_vectors_cost(self):
        target, model = self.folder / "slow.toml", self.folder / "two.fir"
        model.write_text(TWO)
        target.write_text('schema = 1\nextends = "cpu:avx2"\n[costs]\nfunction = 120\n')
        usual = self.ok("explain", model, "--json", "--target", "cpu:avx2").json["launches"][0]["predicted_us"]
        slower = self.ok("explain", model, "--json", "--target", target).json["launches"][0]["predicted_us"]
        self.assertGreater(slower, 2 * usual)
        target.write_text('schema = 1\nextends = "cpu:avx2"\n[costs]\nfunctions = 120\n')
        self.fails(1, "targets", "check", target)
