"""Inspecting, fusing, explaining; models that cannot be read."""
import json

from harness import MODELS, CliTest, opfuse, write_npy

SMALL = MODELS / "small_net.fir"


class Inspect(CliTest):
    def test_a_model_in_json(self):
        document = self.ok("inspect", SMALL, "--json").json
        self.assertEqual(document["inputs"], [{"name": "x", "dtype": "f32", "shape": ["batch", 3, 16, 16]}])
        self.assertEqual(document["outputs"][0]["shape"], ["batch", 10])
        self.assertEqual(document["dynamic_dims"], ["batch"])
        self.assertEqual(document["operators"]["Conv"], 2)
        self.assertGreater(document["weight_bytes"], 4 * 24 * 27)

    def test_flop_are_those_of_the_useful_taps(self):
        # Stem: 8 x 8 outputs; one row and one column of outputs lose a tap to padding: (8*3-1)^2 useful taps.
        stem = 2 * 24 * 3 * 23 * 23
        block = 2 * 24 * 24 * 64
        flop = self.ok("inspect", SMALL, "--json", "--dim", "batch=1").json["flop"]
        self.assertGreater(flop, stem + block)
        self.assertLess(flop, 1.2 * (stem + block))

    def test_layers_and_weights_can_be_shown(self):
        text = self.ok("inspect", SMALL, "--show", "layers,weights").out
        self.assertIn("/block/conv", text)
        self.assertIn("w1", text)

    def test_a_written_model_reads_back_with_the_same_interface(self):
        self.ok("zoo", "mobilenet_v2", "-o", self.folder / "m.onnx", "--resolution", "64", "--width", "0.25")
        written = self.ok("inspect", self.folder / "m.onnx", "--json").json
        self.assertEqual(written["inputs"], [{"name": "input", "dtype": "f32", "shape": [1, 3, 64, 64]}])
        self.assertIn("Conv", written["operators"])
        self.assertEqual(written["opaque"], [])


class Fuse(CliTest):
    def test_the_json_document_has_its_documented_fields(self):
        document = self.ok("fuse", SMALL, "--dry-run", "--json").json
        self.assertEqual(document["schema"], "opfuse.fuse/1")
        for key in ("model", "model_hash", "target", "dims", "nodes_before", "nodes_after", "groups", "modules",
                    "module_total", "patterns", "qdq", "activation_bytes", "notes", "seconds"):
            self.assertIn(key, document)
        self.assertEqual(document["module_total"], sum(document["modules"].values()))
        self.assertLess(document["activation_bytes"]["after"], document["activation_bytes"]["before"])
        for row in document["patterns"]:
            self.assertEqual(sorted(row), ["applied", "bytes_saved", "pattern", "reasons", "skipped"])

    def test_modules_and_points_of_the_small_net(self):
        document = self.ok("fuse", SMALL, "--dry-run", "--json").json
        self.assertEqual(document["modules"], {"FusedAdaptiveAvgPool2d": 1, "FusedConvBN": 1, "FusedConvBNAddReLU": 1,
                                               "FusedConvBNReLU": 1})
        points = document["qdq"]["points"]
        self.assertEqual(document["qdq"]["declared"], len(points))
        self.assertIn("RESIDUAL_INPUT", {point["point"] for point in points})
        self.assertEqual(document["qdq"]["tensor_count"], len(set(document["qdq"]["tensors"])))

    def test_only_and_skip_select_patterns_and_single_places(self):
        only = self.ok("fuse", SMALL, "--dry-run", "--json", "--only", "ConvBNReLU").json["modules"]
        self.assertEqual(set(only), {"FusedConvBNReLU"})
        skipped = self.ok("fuse", SMALL, "--dry-run", "--json", "--skip", "ConvBNReLU@/stem/relu").json["modules"]
        self.assertNotIn("FusedConvBNReLU", skipped)
        self.fails(2, "fuse", SMALL, "--dry-run", "--only", "ConvBNRelu", says=["E0402", "ConvBNReLU"])

    def test_a_repeatable_flag_leaves_the_model_alone(self):
        self.ok("fuse", "--dry-run", "--skip", "Linear", "--skip", "LinearReLU", SMALL)

    def test_a_plan_can_be_edited_and_applied_again(self):
        plan = self.folder / "plan.json"
        first = self.ok("fuse", SMALL, "--dry-run", "--json", "--plan-out", plan).json
        again = self.ok("fuse", SMALL, "--dry-run", "--json", "--plan", plan).json
        self.assertEqual(again["modules"], first["modules"])
        edited = json.loads(plan.read_text())
        rows = [row for row in edited["matches"] if row["id"].startswith("ConvBNReLU@")]
        self.assertEqual(len(rows), 1)
        rows[0]["apply"] = False
        plan.write_text(json.dumps(edited))
        without = self.ok("fuse", SMALL, "--dry-run", "--json", "--plan", plan).json
        self.assertNotIn("FusedConvBNReLU", without["modules"])

    def test_an_edit_that_cannot_be_one_kernel_is_refused_with_the_reason(self):
        plan = self.folder / "plan.json"
        self.ok("fuse", SMALL, "--dry-run", "--plan-out", plan)
        edited = json.loads(plan.read_text())
        rows = [row for row in edited["matches"] if row["apply"] and "Conv" in row["id"]]
        self.assertGreaterEqual(len(rows), 2)
        for row in edited["matches"]:
            row["apply"] = row is rows[0]
        rows[0]["nodes"] = rows[0]["nodes"] + rows[1]["nodes"]
        plan.write_text(json.dumps(edited))
        self.fails(2, "fuse", SMALL, "--dry-run", "--plan", plan, says=["E0401", rows[0]["id"], "cannot be"])
        self.fails(2, "compile", SMALL, "-o", self.folder / "x.opf", "--dim", "batch=any", "--plan", plan,
                   says=["E0401", rows[0]["id"]])

    def test_a_plan_of_another_model_is_refused(self):
        plan = self.folder / "plan.json"
        self.ok("fuse", SMALL, "--dry-run", "--plan-out", plan)
        self.fails(2, "fuse", MODELS / "open_dims.fir", "--dry-run", "--plan", plan, says=["E0403", "--allow-stale"])
        self.fails(2, "fuse", MODELS / "open_dims.fir", "--dry-run", "--plan", plan, "--allow-stale", says=["E0403"])

    def test_a_plan_made_with_open_dimensions_serves_fixed_ones(self):
        plan = self.folder / "plan.json"
        self.ok("fuse", SMALL, "--dry-run", "--plan-out", plan)
        self.ok("compile", SMALL, "-o", self.folder / "x.opf", "--plan", plan)
        self.ok("compile", SMALL, "-o", self.folder / "x.opf", "--plan", plan, "--dim", "batch=any")

    def test_a_damaged_plan_is_refused(self):
        plan = self.folder / "plan.json"
        plan.write_text("{")
        self.fails(5, "fuse", SMALL, "--dry-run", "--plan", plan, says=["E0703", "--> " + str(plan)])

    def test_the_written_model_is_standard_onnx(self):
        for flags in ((), ("--flatten",)):
            out = self.folder / "fused.onnx"
            self.ok("fuse", SMALL, "-o", out, *flags)
            operators = self.ok("inspect", out, "--json").json["operators"]
            self.assertGreaterEqual(operators["Conv"], 2)
            self.assertEqual(b"dev.opfuse" in out.read_bytes(), not flags)

    def test_the_written_file_is_read_back_and_compared(self):
        for flags in ((), ("--flatten",)):
            document = self.ok("fuse", SMALL, "-o", self.folder / "m.onnx", "--json", *flags).json
            self.assertTrue(document["read_back"]["ok"], document["read_back"])
            self.assertIn("nodes and wiring", document["read_back"]["how"])
        self.assertIsNone(self.ok("fuse", SMALL, "--dry-run", "--json").json["read_back"])
        text = self.ok("fuse", SMALL, "-o", self.folder / "n.onnx").out
        self.assertRegex(text, r"(?m)^  Conv +2 +0$")
        self.assertRegex(text, r"(?m)^  read back +ok: the same \d+ nodes and wiring$")

    def test_explain_names_the_reason_of_every_missed_candidate(self):
        document = self.ok("explain", SMALL, "--json").json
        kinds = {remark["kind"] for remark in document["remarks"]}
        self.assertIn("passed", kinds)
        for remark in document["remarks"]:
            if remark["kind"] == "missed":
                self.assertTrue(remark["code"], remark)
        lines = self.ok("explain", SMALL, "--jsonl").out.splitlines()
        self.assertEqual(len(lines), len(document["remarks"]) + len(document["algorithms"]))
        self.assertIn("/stem/conv", self.ok("explain", SMALL, "--node", "/stem/conv").out)
        self.fails(2, "explain", SMALL, "--node", "/stem/convv", says=["E0402", "/stem/conv"])


class Shaping(CliTest):
    """A large map between a convolution and the depthwise one behind it: one launch, unless its pass is left out."""
    MODEL = '''graph (%x: f32[1,16,112,112]) {
      %w1 = const rand<1> : f32[96,16,1,1]
      %w2 = const rand<2> : f32[96,1,3,3]
      %a = conv(%x, %w1) @"expand"(Conv@17)
      %r = relu(%a) @"act"(Relu@17)
      %y = conv(%r, %w2) {group = 96, pads = [1,1,1,1], strides = [2,2]} @"depth"(Conv@17)
      return %y }'''
    AVX512 = ("--target", "cpu:avx512")

    def setUp(self):
        super().setUp()
        self.model = self.folder / "m.fir"
        self.model.write_text(self.MODEL)

    def pairs(self, *flags):
        return self.ok("explain", self.model, "--json", *self.AVX512, *flags).json["chains"]

    def test_a_pass_is_left_out_by_name(self):
        [pair] = self.pairs()
        self.assertEqual((pair["kind"], pair["joined"], pair["bytes"]), ("chain", True, 96 * 112 * 112 * 4))
        for flags in (("--no-pass", "join-chains"), ("--no-pass", "run-in-slices", "--no-pass", "join-chains"), ("--no-chains",)):
            [pair] = self.pairs(*flags)
            self.assertEqual((pair["joined"], pair["reason"]["code"]), (False, "disabled"))
        self.assertTrue(self.pairs("--no-pass", "join-means")[0]["joined"])
        self.assertIn("CHAIN", self.ok("explain", self.model, *self.AVX512, "--no-chains").out)
        launches = [self.ok("compile", self.model, "--json", *self.AVX512, "-o", self.folder / "m.opf", *flags).json["launches"]
                    for flags in ((), ("--no-pass", "join-chains"))]
        self.assertLess(*launches)

    def test_unknown_names_suggest_the_nearest(self):
        for verb in ("explain", "run"):
            self.fails(2, verb, self.model, "--no-pass", "join-chain", says=["E0402", 'did you mean "join-chains"'])
        self.fails(2, "explain", self.model, "--no-pass", "fold-constants", says=["E0402", "no shaping pass"])

    def test_dumps_show_each_pass_and_are_replayed(self):
        dumps = self.folder / "dumps"
        self.ok("compile", self.model, "-o", self.folder / "m.opf", "--dump-dir", dumps, *self.AVX512)
        names = sorted(path.name for path in dumps.glob("*.fir"))
        self.assertEqual([name[3:] for name in names[-2:]], ["fused.fir", "join-chains.fir"])
        replay = self.ok("passes", dumps / names[-2], "--run", "join-chains", *self.AVX512)
        self.assertIn("1 of 1 pairs", replay.err)
        self.assertEqual(replay.out.count("fused "), 1)
        listed = {row["name"]: row["stage"] for row in self.ok("passes", "--json").json["passes"]}
        self.assertEqual((listed["join-chains"], listed["fold-constants"]), ("shaping", "preparing"))

    def test_a_reproducer_names_its_pass_and_target(self):
        self.ok("compile", self.model, "-o", self.folder / "m.opf", "--dump-dir", self.folder, *self.AVX512)
        [fused] = self.folder.glob("*-fused.fir")
        lines = fused.read_text().splitlines()
        self.assertIn("the plan applied", lines[0])
        fused.write_text("\n".join(["// fir 1 | before pass join-chains | target cpu:avx512", *lines[1:]]))
        self.assertIn("join-chains", self.ok("passes", fused).err)


class Check(CliTest):
    MODEL = '''graph (%x: f32[2,3]) {
      %m = opaque(%x) {domain = "com.example", op_type = "Mine", reason = "operator Mine is not known"} @"mine"(com.example.Mine@1)
      %c = concat(%m, %x) {axis = 0} @"joined"(Concat@17)
      %h = hardmax(%x) {axis = 0, flatten = true} @"flat"(Hardmax@11)
      %y = add(%c, %h) @"sum"(Add@17)
      return %y }'''

    def test_all_problems_at_once_with_what_would_help(self):
        model = self.folder / "m.fir"
        model.write_text(self.MODEL)
        result = opfuse("check", model)
        self.assertEqual(result.code, 1, str(result))
        for text in ("2 problems", 'com.example.Mine "mine": operator Mine is not known', "local functions are inlined",
                     'Hardmax "flat"', "--allow-reference", "2 more nodes", "joined (Concat)"):
            self.assertIn(text, result.out)
        document = opfuse("check", model, "--json", "--allow-reference").json
        self.assertEqual(document["schema"], "opfuse.check/1")
        self.assertEqual(document["compiles"], False)
        self.assertEqual([(p["node"], p["follows"]) for p in document["problems"]], [("mine", False), ("joined", True), ("sum", True)])
        for verb in (("explain", model), ("run", model), ("fuse", model, "--dry-run")):
            text = opfuse(*verb).out + opfuse(*verb).err
            self.assertIn("com.example.Mine", text)
            self.assertNotIn("opaque", text)

    def test_a_hint_names_what_the_interpreter_runs(self):
        model = self.folder / "m.fir"
        model.write_text(self.MODEL)
        self.fails(3, "run", model, says=["E0502", "2 operators", "--allow-reference runs Hardmax in the interpreter, but not com.example.Mine"])
        result = self.fails(3, "run", model, "--allow-reference", says=["E0502", "1 operator cannot"])
        self.assertNotIn("--allow-reference runs", result.err)

    def test_inputs_that_decide_shapes_are_given(self):
        model = MODELS / "shape_input.fir"
        result = opfuse("check", model)
        self.assertEqual(result.code, 1, str(result))
        self.assertIn("compiles for cpu:", self.ok("check", model, "--input", "shape=[-1,6]").out)

    def test_a_model_that_compiles(self):
        self.assertIn("compiles for cpu:", self.ok("check", SMALL).out)
        self.assertEqual(self.ok("check", SMALL, "--json").json["problems"], [])

    def test_a_file_that_is_no_model(self):
        page = self.folder / "m.onnx"
        page.write_text("<!doctype html><title>Sign in</title>")
        result = opfuse("check", page)
        self.assertEqual(result.code, 1, str(result))
        self.assertIn("an HTML page", result.out)


class BadModels(CliTest):
    def test_a_missing_file(self):
        self.fails(5, "inspect", self.folder / "none.onnx", says=["E0701"])

    def test_a_folder(self):
        self.fails(5, "inspect", self.folder, says=["E0703"])

    def test_a_truncated_model(self):
        whole = self.folder / "m.onnx"
        self.ok("zoo", "mobilenet_v2", "-o", whole, "--resolution", "32", "--width", "0.25")
        data = whole.read_bytes()
        for part in (1, len(data) // 3, len(data) - 7):
            cut = self.folder / "cut.onnx"
            cut.write_bytes(data[:part])
            self.fails(3, "inspect", cut, says=["error[E01", "cut.onnx"])

    def test_garbage(self):
        for content in (b"", b"hello, world", bytes(range(256)) * 16):
            path = self.folder / "garbage.onnx"
            path.write_bytes(content)
            self.fails(3, "inspect", path, says=["error[E01"])

    def test_wrong_channels_name_the_node_and_what_to_do(self):
        self.fails(3, "inspect", MODELS / "wrong_channels.fir", says=["E0203", "/stem/conv", "hint:"])

    def test_a_damaged_opf(self):
        path = self.folder / "x.opf"
        path.write_bytes(b"not an artifact at all")
        self.fails(5, "run", path, says=["E0703"])

    def test_fusing_an_opf_is_a_usage_error(self):
        self.fails(2, "fuse", self.folder / "x.opf", says=["E0401"])


class Dimensions(CliTest):
    def test_open_dimensions_are_listed_with_their_flags(self):
        result = self.fails(2, "run", MODELS / "open_dims.fir", "--reference",
                            says=["E0404", "--dim height=N", "--dim width=N"])
        self.assertNotIn("--dim batch=N,", result.err)

    def test_flags_of_names_that_are_no_words_are_quoted(self):
        path = self.folder / "sum.fir"
        path.write_text('graph (%x: f32[1,"past + new"]) { %y = relu(%x) return %y }')
        self.fails(2, "run", path, "--reference", says=["E0404", '--dim "past + new=N"'])
        self.assertEqual(self.ok("run", path, "--reference", "--dim", "past + new=3", "--json").json["outputs"]["y"]["type"],
                         "f32[1,3]")

    def test_an_open_batch_is_one_with_a_warning(self):
        result = self.ok("run", MODELS / "open_dims.fir", "--reference", "--dim", "height=4", "--dim", "width=5", "--json")
        self.assertIn("warning: dimension 'batch'", result.err)
        self.assertEqual(result.json["outputs"]["y"]["type"], "f32[1,3,4,5]")

    def test_three_ways_to_write_a_shape(self):
        for shape in ("x:2x3x4x5", "x:[2,3,4,5]", "x[2,3,4,5]"):
            result = self.ok("run", MODELS / "open_dims.fir", "--reference", "--shape", shape, "--json")
            self.assertEqual(result.json["outputs"]["y"]["type"], "f32[2,3,4,5]")
            self.assertNotIn("warning", result.err)

    def test_dimensions_come_from_the_arrays(self):
        write_npy(self.folder / "x.npy", (2, 3, 1, 2), range(12))
        result = self.ok("run", MODELS / "open_dims.fir", "--reference", "--json", "--input", f"x={self.folder}/x.npy")
        self.assertEqual(result.json["outputs"]["y"]["type"], "f32[2,3,1,2]")
        self.assertNotIn("warning", result.err)

    def test_unknown_dimensions_and_bad_sizes(self):
        self.fails(2, "run", SMALL, "--dim", "bach=2", says=["E0402", "batch"])
        self.fails(2, "run", SMALL, "--dim", "batch=two", says=["E0401"])
        self.fails(2, "run", SMALL, "--dim", "batch", says=["E0401", "NAME=VALUE"])
        self.fails(2, "run", SMALL, "--shape", "x:1x3x16", says=["E0401"])

    def test_wrong_arrays(self):
        write_npy(self.folder / "x.npy", (1, 4, 16, 16), [0] * 1024)
        self.fails(4, "run", SMALL, "--reference", "--input", f"x={self.folder}/x.npy", says=["E0602", "f32[1,4,16,16]"])
        self.fails(2, "run", SMALL, "--reference", "--input", f"z={self.folder}/x.npy", says=["E0402", "x"])
        self.fails(5, "run", SMALL, "--reference", "--input", f"x={self.folder}/none.npy", says=["E0701"])
        (self.folder / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff{")
        self.fails(5, "run", SMALL, "--reference", "--input", f"x={self.folder}/bad.npy", says=["E0703"])
