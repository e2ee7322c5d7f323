"""The verbs that list what opfuse knows, help, version, and mistyped command lines."""
import pathlib
import re

from harness import MODELS, CliTest, opfuse

ROOT = pathlib.Path(__file__).resolve().parents[2]

VERBS = ("demo inspect fuse explain diff check optimize tune compile run compare quantize reduce bench profile reasons report zoo ops patterns passes targets options "
         "errors doctor").split()


class Registries(CliTest):
    def test_every_verb_has_help_that_lists_its_options(self):
        options = self.ok("options", "--json").json["verbs"]
        self.assertEqual(sorted(options), sorted(VERBS))
        for verb in VERBS:
            text = self.ok(verb, "--help").out
            for row in options[verb]:
                for name in row["option"].split(","):
                    self.assertIn(name, text, f"{verb} --help does not mention {name}")

    def test_help_says_that_an_opf_is_code(self):
        for verb in ("run", "bench", "profile", "inspect", "compile"):
            self.assertIn("load only what you would run", re.sub(r"\s+", " ", self.ok(verb, "--help").out), verb)

    def test_options_of_compiling_have_one_name_in_cli_cpp_and_python(self):
        table = (ROOT / "docs/api.md").read_text().split("| command line | `CompileOptions` | |")[1].split("\n\n")[0]
        header = (ROOT / "include/opfuse/opfuse.hpp").read_text()
        struct = header.split("struct CompileOptions {")[1].split("\n};")[0] + header.split("struct PlanRequest {")[1].split("\n};")[0]
        python = (ROOT / "python/opfuse/__init__.py").read_text().split("def compile(")[1].split(") -> Executable")[0]
        flags = {name for row in self.ok("options", "--json").json["verbs"]["compile"] for name in row["option"].split(",")}
        fields = set()
        for row in table.splitlines()[2:]:
            left, right = row.split("|")[1:3]
            for flag in re.findall(r"--[a-z-]+", left):
                self.assertIn(flag, flags, row)
            for field in re.findall(r"`(?:plan\.)?([a-z_]+)", right.split(";")[0]):
                self.assertRegex(struct, rf"\b{field}\b", row)
                self.assertRegex(python, rf"\b{field}:", row)
                fields.add(field)
        named = set(re.findall(r"([a-z_]+)(?: = [^,;]*|\{\})?[,;]", re.sub(r"///.*|std::function.*|<.*>", "", struct)))
        self.assertEqual(named - fields - {"plan", "patterns", "progress"}, set(), "not in the table of docs/api.md")

    def test_every_option_has_a_meaning(self):
        for verb, rows in self.ok("options", "--json").json["verbs"].items():
            for row in rows:
                self.assertTrue(row["meaning"], f"{verb} {row['option']}")

    def test_no_arguments_print_the_help_and_fail(self):
        result = opfuse()
        self.assertEqual(result.code, 2)
        self.assertIn("fuse", result.out)

    def test_version(self):
        self.assertRegex(self.ok("--version").out, r"^opfuse \d+\.\d+\.\d+ ")
        document = self.ok("--version", "--json").json
        self.assertEqual(document["schema"], "opfuse.version/1")
        self.assertIn("artifact_format", document)

    def test_registries_as_json(self):
        rows = {"zoo": "models", "ops": "ops", "patterns": "patterns", "passes": "passes", "errors": "errors", "reasons": "reasons"}
        for verb, key in rows.items():
            document = self.ok(verb, "--json").json
            self.assertEqual(document["schema"], f"opfuse.{verb}/1")
            self.assertGreater(len(document[key]), 3, verb)
            self.assertTrue(self.ok(verb).out.strip(), verb)

    def test_operators_answer_to_their_names_in_onnx(self):
        self.assertIn("ONNX LayerNormalization, opset 17 on: read as layer_norm", self.ok("ops", "LayerNormalization").out)
        self.assertIn("axis = -1", self.ok("ops", "layernormalization").out)
        self.assertIn("ONNX Upsample, opset 1 to 9", self.ok("ops", "resize").out)
        self.assertIn("a composition", self.ok("ops", "QLinearConv").out)
        self.assertIn("com.microsoft.FusedConv, opset 1 on: read as a composition", self.ok("ops", "FusedConv").out)
        self.assertIn("com.microsoft.Attention", self.ok("ops", "Attention").out)
        self.assertIn("ONNX If, opset 1 on: read as the branch that a constant condition takes", self.ok("ops", "If").out)
        self.assertIn("ONNX StringConcat: not read", self.ok("ops", "StringConcat").out)
        self.assertEqual(self.ok("ops", "Conv", "--json").json["onnx"][0]["operator"], "conv")
        self.fails(2, "ops", "LayerNormalisation", says=["E0402", "LayerNormalization"])

    def test_the_zoo_has_the_models_of_the_demo(self):
        names = {row["name"] for row in self.ok("zoo", "--json").json["models"]}
        self.assertLessEqual({"resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "mobilenet_v2"}, names)

    def test_a_pattern_file_is_listed_tested_and_explained(self):
        gate = ROOT / "examples" / "patterns" / "gate.toml"
        self.assertIn("conv.group == 1", self.ok("patterns", "list", gate).out)
        tested = self.ok("patterns", "test", gate, "--model", MODELS / "small_net.fir").out
        self.assertEqual(tested.count(": ok"), 5)
        self.assertIn("DepthwiseConv fires at 0 places", tested)
        self.assertIn("conv.in_channels is", self.ok("patterns", "explain", gate, "--model", MODELS / "small_net.fir").out)
        self.ok("fuse", MODELS / "small_net.fir", "--dry-run", "--patterns", gate)
        wrong = self.folder / "wrong.toml"
        wrong.write_text('[[pattern]]\nname = "A"\ntopology = "c:conv -> relv"\n')
        self.fails(5, "patterns", "test", wrong, says=["wrong.toml:3:23", "relu"])
        wrong.write_text(gate.read_text().replace("fires =", "spares_ =", 1).replace("spares =", "fires =", 1).replace("spares_", "spares"))
        self.assertIn("FAILED", self.fails(1, "patterns", "test", wrong).out)
        wrong.write_text('[[pattern]]\nname = "ConvBN"\ntopology = "c:conv"\n')
        self.fails(2, "patterns", "test", wrong, says=['two patterns "ConvBN"', "the catalogue"])

    def test_the_catalogue_has_the_named_patterns(self):
        names = [row["name"] for row in self.ok("patterns", "--json").json["patterns"]]
        self.assertEqual(len(names), len(set(names)))
        self.assertLessEqual({"StemConvBNReLUMaxPool", "ConvBNAddReLU", "ConvBNReLU", "ConvBN", "AdaptiveAvgPool",
                              "Linear", "LinearReLU"}, set(names))

    def test_one_error_and_one_reason(self):
        for name in ("E0205", "unknown_dimension"):
            self.assertEqual([row["code"] for row in self.ok("errors", name, "--json").json["errors"]], ["E0205"])
        self.assertEqual([row["code"] for row in self.ok("reasons", "two_anchors", "--json").json["reasons"]], ["two_anchors"])
        self.fails(2, "errors", "E9999", says=["E0402", "no error 'E9999'"])
        self.fails(2, "reasons", "two_anchor", says=["two_anchors"])

    def test_error_codes_are_unique_and_have_exit_codes(self):
        rows = self.ok("errors", "--json").json["errors"]
        self.assertEqual(len({row["code"] for row in rows}), len(rows))
        for row in rows:
            self.assertIn(row["exit_code"], (2, 3, 4, 5, 70, 130), row)

    def test_doctor_knows_the_machine(self):
        document = self.ok("doctor", "--json").json
        for key in ("processor", "cpu_features", "target", "threads", "code_generator", "kernel_cache", "malloc", "warnings"):
            self.assertIn(key, document)
        self.assertEqual(document["code_generator"], "ok")

    def test_one_operator_and_one_pattern_in_full(self):
        self.assertIn("dilations", self.ok("ops", "conv").out)
        self.assertIn("FusedConvBNReLU", self.ok("patterns", "ConvBNReLU").out)


class BadCommandLines(CliTest):
    def test_an_unknown_verb_suggests_the_nearest(self):
        self.fails(2, "fues", "x.onnx", says=["unknown verb 'fues'", "did you mean 'fuse'"])

    def test_an_unknown_flag(self):
        self.fails(2, "zoo", "--nonsense", says=["--nonsense"])

    def test_writing_a_model_needs_a_file_and_a_folder_that_exists(self):
        self.fails(2, "zoo", "resnet18", says=["E0401", "-o resnet18.onnx"])
        self.fails(5, "zoo", "resnet18", "-o", self.folder / "none" / "x.onnx", says=["E0702"])

    def test_a_missing_model(self):
        self.fails(2, "run", says=["MODEL"])

    def test_unknown_names_suggest_the_nearest(self):
        self.fails(2, "zoo", "resnet51", "-o", "x.onnx", says=["E0402", "resnet50"])
        self.fails(2, "ops", "relo", says=["E0402", "relu"])
        self.fails(2, "patterns", "ConvBNRelu", says=["E0402", "ConvBNReLU"])

    def test_an_error_ends_with_the_command_that_repeats_it(self):
        result = self.fails(5, "run", "no such file.onnx")
        self.assertTrue(result.err.rstrip().endswith("repeat: opfuse run 'no such file.onnx'"), result.err)
