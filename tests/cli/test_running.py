"""Compiling, running, comparing, measuring a small net."""
import json
import os
import signal
import struct
import subprocess
import time
import zipfile

from harness import BINARY, MODELS, CliTest, opfuse, ramp, read_npy, write_npy

SMALL = MODELS / "small_net.fir"
QUICK = ("--duration", "50ms", "--warmup", "5ms")


class Run(CliTest):
    def test_compiled_equals_the_interpreter_on_a_given_array(self):
        write_npy(self.folder / "x.npy", (3, 3, 16, 16), ramp(3 * 3 * 256))
        given = ("--input", f"x={self.folder}/x.npy")
        self.ok("run", SMALL, *given, "--reference", "--output-dir", self.folder / "ref")
        self.ok("run", SMALL, *given, "--output-dir", self.folder / "got", "--expect", f"y={self.folder}/ref/y.npy")
        shape, values = read_npy(self.folder / "got" / "y.npy")
        self.assertEqual(shape, (3, 10))
        expected = read_npy(self.folder / "ref" / "y.npy")[1]
        worst = max(abs(a - b) for a, b in zip(values, expected))
        self.assertLess(worst, 2e-5 * max(map(abs, expected)))

    def test_arrays_from_npz_and_pb_files(self):
        values = ramp(768)
        write_npy(self.folder / "x.npy", (1, 3, 16, 16), values)
        with zipfile.ZipFile(self.folder / "all.npz", "w") as archive:
            archive.write(self.folder / "x.npy", "x.npy")
        raw = struct.pack("<768f", *values)
        proto = b"\x08\x01\x08\x03\x08\x10\x08\x10" + b"\x10\x01" + b"\x42\x01x" + b"\x4a\x80\x18" + raw
        (self.folder / "x.pb").write_bytes(proto)
        reference = self.ok("run", SMALL, "--input", f"x={self.folder}/x.npy", "--json").json["outputs"]
        for given in (f"{self.folder}/all.npz", f"x={self.folder}/all.npz", f"{self.folder}/x.pb", f"{self.folder}/x.npy"):
            self.assertEqual(self.ok("run", SMALL, "--input", given, "--json").json["outputs"], reference, given)

    def test_an_input_may_be_an_output(self):
        model = self.folder / "both.fir"
        model.write_text("graph (%x: f32[3]) { %y = neg(%x) return %x, %y }")
        write_npy(self.folder / "x.npy", (3,), [1, -2, 3])
        write_npy(self.folder / "y.npy", (3,), [-1, 2, -3])
        self.ok("run", model, "--input", f"x={self.folder}/x.npy", "--expect", f"x={self.folder}/x.npy", "--expect", f"y={self.folder}/y.npy")

    def test_ranges_bound_random_inputs(self):
        self.ok("run", SMALL, "--range", "x=1..1", "--save-inputs", "--output-dir", self.folder)
        self.assertEqual(set(read_npy(self.folder / "x.npy")[1]), {1.0})
        self.fails(2, "run", SMALL, "--range", "x=1", says=["E0401", "NAME=LO..HI"])
        self.fails(2, "run", SMALL, "--range", "z=0..1", says=["E0402"])

    def test_infinities_equal_themselves_only(self):
        model = self.folder / "identity.fir"
        model.write_text("graph (%x: f32[3]) { %y = neg(%x) return %y }")
        inf, nan = float("inf"), float("nan")
        write_npy(self.folder / "x.npy", (3,), [-inf, nan, -1])
        for expected, code in (([inf, nan, 1], 0), ([-inf, nan, 1], 1), ([inf, inf, 1], 1), ([inf, nan, inf], 1), ([5, nan, 1], 1)):
            write_npy(self.folder / "y.npy", (3,), expected)
            result = opfuse("run", model, "--input", self.folder / "x.npy", "--expect", f"y={self.folder}/y.npy")
            self.assertEqual(result.code, code, f"{expected}: {result}")
        self.fails(2, "run", model, "--rtol", "inf", says=["E0401"])

    def test_arrays_of_another_type_are_told_what_to_do(self):
        for descr in ("<f8", "<i4"):
            write_npy(self.folder / "x.npy", (1, 3, 16, 16), [1] * 768, descr)
            self.fails(4, "run", SMALL, "--input", f"x={self.folder}/x.npy", says=["E0602", "convert the array to f32"])

    def test_outputs_go_where_a_name_says(self):
        model = self.folder / "two.fir"
        model.write_text("graph (%x: f32[2,3]) { %a = relu(%x) %b = neg(%x) return %a, %b }")
        given = ("--input", self.folder / "x.npy")
        write_npy(self.folder / "x.npy", (2, 3), [-1, 2, -3, 4, -5, 6])
        self.ok("run", model, *given, "--output", self.folder / "folder")
        self.ok("run", model, *given, "-o", self.folder / "all.npz", "--save-inputs")
        with zipfile.ZipFile(self.folder / "all.npz") as archive:
            self.assertEqual(sorted(archive.namelist()), ["a.npy", "b.npy", "x.npy"])
            archive.extract("b.npy", self.folder)
        self.assertEqual(read_npy(self.folder / "b.npy"), read_npy(self.folder / "folder" / "b.npy"))
        self.fails(2, "run", model, *given, "-o", self.folder / "y.npy", says=["2 outputs"])
        self.fails(2, "run", model, *given, "-o", self.folder / "y.json", says=[".npz"])
        self.fails(2, "run", model, *given, "-o", "a", "--output-dir", "b", says=["--output-dir"])
        self.fails(5, "run", model, *given, "-o", "/dev/full", says=["not a folder"])
        self.fails(5, "run", model, *given, "--output-dir", model, says=["not a folder"])
        self.fails(2, "run", model, "--input", f"x={self.folder}/all.npz", "-o", self.folder / "all.npz", says=["would replace"])
        expected = ("--expect", f"a={self.folder}/folder/a.npy")
        self.fails(2, "run", model, "--seed", "1", *expected, "-o", self.folder / "folder", says=["would replace"])

    def test_names_that_files_cannot_tell_apart_are_counted(self):
        model = self.folder / "model.fir"
        model.write_text('graph (%x: f32[2]) { %a/b = relu(%x) %"a:b" = neg(%x) return %a/b, %"a:b" }')
        self.ok("run", model, "--output-dir", self.folder / "out")
        self.assertEqual(sorted(p.name for p in (self.folder / "out").iterdir()), ["a_b.npy", "a_b_2.npy"])

    def test_a_wrong_expectation_fails(self):
        write_npy(self.folder / "y.npy", (1, 10), [1e3] * 10)
        result = opfuse("run", SMALL, "--expect", f"y={self.folder}/y.npy")
        self.assertEqual(result.code, 1, str(result))
        self.assertIn("FAILED", result.out)
        self.assertIn("repeat: opfuse run", result.err)

    def test_an_opf_runs_like_its_model(self):
        opf = self.folder / "small.opf"
        self.ok("compile", SMALL, "-o", opf)
        self.ok("run", SMALL, "--seed", "7", "--output-dir", self.folder / "a")
        self.ok("run", opf, "--seed", "7", "--output-dir", self.folder / "b")
        self.assertEqual(read_npy(self.folder / "a" / "y.npy"), read_npy(self.folder / "b" / "y.npy"))
        self.ok("run", opf, "--seed", "7", "--output", self.folder / "c.npy")
        self.assertEqual(read_npy(self.folder / "a" / "y.npy"), read_npy(self.folder / "c.npy"))
        document = self.ok("inspect", opf, "--json").json
        self.assertEqual(document["schema"], "opfuse.inspect-opf/1")
        self.assertGreater(len(document["launches"]), 0)
        self.assertIn("/stem/conv", [node for launch in document["launches"] for node in launch["nodes"]])

    def test_an_opf_knows_what_its_inputs_index(self):
        model = self.folder / "table.fir"
        model.write_text("graph @table(%ids: i64[64]) { %t = const rand<1> : f32[3,8]\n %y = gather(%t, %ids)\n return %y }")
        opf = self.folder / "table.opf"
        self.ok("compile", model, "-o", opf)
        self.ok("run", opf, "--save-inputs", "--output-dir", self.folder)
        self.assertEqual(set(read_npy(self.folder / "ids.npy")[1]), {0, 1, 2})
        self.ok("bench", opf, *QUICK)

    def test_an_open_batch_runs_at_any_size(self):
        opf = self.folder / "small.opf"
        self.ok("compile", SMALL, "-o", opf, "--dim", "batch=any")
        for batch in (1, 2, 3, 17):
            write_npy(self.folder / "x.npy", (batch, 3, 16, 16), ramp(batch * 768))
            self.ok("run", SMALL, "--reference", "--input", f"x={self.folder}/x.npy", "--output-dir", self.folder / "ref")
            self.ok("run", opf, "--input", f"x={self.folder}/x.npy", "--expect", f"y={self.folder}/ref/y.npy")

    def test_variants_run_where_their_sizes_fit(self):
        opf = self.folder / "small.opf"
        document = self.ok("compile", SMALL, "-o", opf, "--specialize", "batch=1", "--specialize", "batch=2", "--json").json
        self.assertEqual(document["dynamic_dims"], ["batch"])
        self.assertEqual([v["when"] for v in document["variants"]], [{"batch": 1}, {"batch": 2}])
        for variant in document["variants"]:
            self.assertGreater(variant["own_kernels"], 0)
            self.assertGreaterEqual(variant["kernel_ms"], 0)
        listed = self.ok("inspect", opf, "--json").json["variants"]
        self.assertEqual([v["code_bytes"] for v in listed], [v["code_bytes"] for v in document["variants"]])
        self.assertIn("variant batch=2:", self.ok("inspect", opf).out)
        parts = [[launch["flop"] for launch in self.ok("inspect", opf, "--json", "--dim", f"batch={n}").json["launches"]]
                 for n in (2, 3)]
        self.assertTrue(all(flop.isdigit() for flop in parts[0]), parts[0])
        self.assertTrue(any("batch" in flop for flop in parts[1]), parts[1])
        for batch in (1, 2, 3, 17):
            write_npy(self.folder / "x.npy", (batch, 3, 16, 16), ramp(batch * 768))
            self.ok("run", SMALL, "--reference", "--input", f"x={self.folder}/x.npy", "--output-dir", self.folder / "ref")
            result = self.ok("run", opf, "--input", f"x={self.folder}/x.npy", "--expect", f"y={self.folder}/ref/y.npy")
            self.assertIn(f"variant batch={batch}" if batch <= 2 else "the kernels for all sizes", result.err)
        profiles = [self.ok("profile", opf, "--dim", f"batch={n}", "--json", *QUICK).json for n in (2, 3)]
        self.assertEqual([p["variant"] for p in profiles], [{"batch": 2}, {}])

    def test_sizes_of_variants_that_make_no_sense_are_refused(self):
        opf = self.folder / "x.opf"
        for flag, says in (("batch", "NAME=SIZE"), ("batch=", "NAME=SIZE"), ("batch=-1", "not a size"), ("batch=any", "not a size"),
                           ("batch=1,batch=2", "given twice")):
            self.fails(2, "compile", SMALL, "-o", opf, "--specialize", flag, says=["E0401", says])
        self.fails(2, "compile", SMALL, "-o", opf, "--specialize", "bach=1", says=["--specialize bach=1", "dimensions: batch"])
        self.fails(2, "compile", SMALL, "-o", opf, "--specialize", "batch=1", "--dim", "batch=4", says=["E0401", "batch=4"])
        self.fails(2, "compile", SMALL, "-o", opf, "--specialize", "batch=1", "--specialize", "batch=1", says=["given twice"])
        self.fails(2, "compile", SMALL, "-o", opf, "--specialize", "batch=1", "--target", "cuda:sm_80", says=["E0401", "cpu"])
        self.assertFalse(opf.exists())

    def test_a_fixed_input_is_a_constant_of_the_file(self):
        opf = self.folder / "m.opf"
        model = MODELS / "shape_input.fir"
        made = self.ok("compile", model, "--input", "shape=[-1,6]", "--dim", "n=any", "-o", opf, "--json").json
        self.assertEqual(made["fixed_inputs"], {"shape": "[-1,6]"})
        self.assertEqual([tensor["name"] for tensor in self.ok("inspect", opf, "--json").json["inputs"]], ["x"])
        self.ok("run", opf, "--dim", "n=3", "--input", "shape=-1,6")
        other = opfuse("run", opf, "--dim", "n=3", "--input", "shape=[6,-1]")
        self.assertNotEqual(other.code, 0)
        self.assertIn("fixed to [-1,6]", other.err)

    def test_sizes_that_the_model_refuses(self):
        opf = self.folder / "m.opf"
        self.ok("compile", MODELS / "shape_input.fir", "--input", "shape=[-1,8]", "--dim", "n=any", "-o", opf)
        self.assertTrue(any("multiple of" in line for line in self.ok("inspect", opf, "--json").json["constraints"]))
        self.ok("run", opf, "--dim", "n=2")
        refused = opfuse("run", opf, "--dim", "n=3")
        self.assertNotEqual(refused.code, 0)
        for text in ("E0204", "rows", "n = 3"):
            self.assertIn(text, refused.err)

    def test_a_plan_of_an_open_batch_fits_any(self):
        model, plan = MODELS / "open_dims.fir", self.folder / "p.json"
        rest = ("--plan", plan, "--dim", "height=any", "--dim", "width=any", "-o", self.folder / "m.opf")
        self.ok("fuse", model, "--plan-out", plan, "--dry-run")
        for size in ("1", "3", "any"):
            self.ok("compile", model, "--dim", f"batch={size}", *rest)
        self.ok("fuse", model, "--dim", "batch=2", "--plan-out", plan, "--dry-run")
        self.ok("compile", model, *rest)
        self.assertIn("stale_plan", opfuse("compile", model, "--dim", "batch=3", *rest).err)

    def test_the_seed_decides_the_inputs(self):
        outputs = [self.ok("run", SMALL, "--seed", seed, "--json").json["outputs"] for seed in (0, 0, 1)]
        self.assertEqual(outputs[0], outputs[1])
        self.assertNotEqual(outputs[0], outputs[2])

    def test_kernel_texts_are_named_after_their_nodes(self):
        self.ok("compile", SMALL, "--emit", "llvm,asm", self.folder / "text")
        names = os.listdir(self.folder / "text")
        self.assertTrue(any(name.endswith(".ll") for name in names), names)
        self.assertTrue(any(name.endswith(".s") for name in names), names)
        self.assertTrue(any("stem" in name for name in names), names)
        self.fails(2, "compile", SMALL, "--emit", "cobol", self.folder, says=["E0401"])
        self.fails(2, "compile", SMALL, says=["E0401", "-o"])

    def test_targets(self):
        for target in ("cpu:avx2", "cpu:baseline"):
            self.ok("compile", SMALL, "-o", self.folder / "t.opf", "--target", target)
            self.assertEqual(self.ok("inspect", self.folder / "t.opf", "--json").json["target"], target)
        self.fails(2, "compile", SMALL, "-o", self.folder / "t.opf", "--target", "gpu", says=["E0401", "cpu:avx2"])

    def test_flags_of_trtexec_are_names_of_ours(self):
        write_npy(self.folder / "x.npy", (1, 3, 16, 16), ramp(768))
        given = self.ok("run", f"--onnx={SMALL}", f"--loadInputs=x:{self.folder}/x.npy", "--json").json
        self.assertEqual(given["outputs"], self.ok("run", SMALL, f"--input=x={self.folder}/x.npy", "--json").json["outputs"])
        result = self.ok("bench", SMALL, "--warmUp=5", "--duration", "20ms", "--dumpProfile", "--json")
        self.assertIn("note: --dumpProfile has no effect: see opfuse profile", result.err)
        self.ok("compile", SMALL, f"--saveEngine={self.folder}/s.opf")
        profile, layers = self.folder / "p.json", self.folder / "l.json"
        self.fails(2, "bench", SMALL, f"--exportProfile={profile}", says=["--exportProfile goes with opfuse profile"])
        self.ok("profile", "--loadEngine", self.folder / "s.opf", "--warmUp=5", "--duration", "20ms",
                f"--exportProfile={profile}", f"--exportLayerInfo={layers}")
        timed, known = (json.loads(path.read_text())["kernels"] for path in (profile, layers))
        self.assertTrue(all(kernel["ms"] > 0 for kernel in timed))
        self.assertEqual([kernel["nodes"] for kernel in known], [kernel["nodes"] for kernel in timed])
        self.assertNotIn("ms", known[0])


class Compare(CliTest):
    def test_sizes_that_a_run_finds_differ_from_input_to_input(self):
        model = self.folder / "mask.fir"
        model.write_text("""graph (%x: f32[24]) { %z = const splat<0> : f32[] %p = greater(%x, %z)
          %y = compress(%x, %p) {axis = [0], defines = ["n"]} %i = unsqueeze(%y) {axes = [1]}
          %w = const rand<1> : f32[1,24] %m = matmul(%i, %w) %r = gelu(%m) return %r }""")
        self.ok("compare", model, "--against", model)
        self.fails(2, "tune", model, says=["a run finds the sizes", "--dim cannot give"])

    def test_every_group_equals_the_interpreter(self):
        document = self.ok("compare", SMALL, "--dim", "batch=2", "--json").json
        self.assertTrue(document["ok"])
        self.assertGreater(len(document["groups"]), 2)
        for group in document["groups"]:
            self.assertLessEqual(group["relative"], 2e-5, group)
            self.assertEqual((group["real"]["outside"], group["drawn"]["outside"]), (0, 0), group)
            self.assertGreater(group["drawn"]["elements"], 0, group)
        self.assertTrue(all(output["same_as_groups"] for output in document["outputs"]))
        for output in document["outputs"]:
            self.assertGreater(output["change_by_other_input"], 0.01)

    def test_open_dimensions_are_proven_at_drawn_sizes(self):
        document = self.ok("compare", SMALL, "--json").json
        sizes = [drawn["batch"] for drawn in document["sizes"]]
        self.assertEqual(len(sizes), 3)
        self.assertEqual(sizes[0], 1)
        self.assertTrue(sizes[1] % 2 == 1 and sizes[1] > 1, sizes)
        self.assertEqual({group["sizes"]["batch"] for group in document["groups"]}, set(sizes))

    def test_sizes_are_drawn_that_windows_fit_into(self):
        model = self.folder / "pool.fir"
        model.write_text("graph (%x: f32[1,2,h,w]) {\n %y = max_pool(%x) {kernel_shape = [2,2], strides = [2,2]}\n return %y\n}\n")
        document = self.ok("compare", model, "--json").json
        self.assertEqual(len(document["sizes"]), 3)
        self.assertTrue(all(min(drawn.values()) >= 2 for drawn in document["sizes"]), document["sizes"])
        fixed = ("--dim", "h=1", "--dim", "w=1", "--json")  # a window that is cut, as ONNX Runtime takes it
        self.assertEqual(self.ok("run", model, "--reference", *fixed).json["outputs"], self.ok("run", model, *fixed).json["outputs"])

    def test_all_inputs_given(self):
        write_npy(self.folder / "x.npy", (1, 3, 16, 16), ramp(768))
        self.ok("compare", SMALL, "--input", f"x={self.folder}/x.npy")

    def test_compare_proves_the_program_that_runs_where_an_operand_stretches(self):
        model = self.folder / "stretches.fir"
        model.write_text("graph (%x: f32[n,4]) {\n %c = const rand<1> : f32[3,1]\n %y = add(%x, %c)\n return %y\n}\n")
        document = self.ok("compare", model, "--json").json
        self.assertIn({"n": 1}, document["sizes"])
        self.assertIn({"n": 3}, document["sizes"])

    def test_the_unfused_program_is_equal_too(self):
        self.ok("compare", SMALL, "--unfused")

    def test_another_model_differs(self):
        self.ok("compare", SMALL, "--against", SMALL)
        other = self.folder / "other.fir"
        other.write_text(SMALL.read_text().replace("rand<5>", "rand<50>"))
        result = opfuse("compare", SMALL, "--against", other)
        self.assertEqual(result.code, 1, str(result))
        self.assertIn("FAILED", result.out)

    def test_an_impossible_tolerance_fails(self):
        self.assertEqual(opfuse("compare", SMALL, "--group-tolerance", "0", "--output-tolerance", "0").code, 1)


class Bench(CliTest):
    def test_the_json_document_has_its_documented_fields(self):
        document = self.ok("bench", SMALL, *QUICK, "--threads", "1", "--json", "--percentile", "75").json
        self.assertEqual(document["schema"], "opfuse.bench/1")
        latency = document["latency_ms"]
        self.assertLessEqual(["min", "median", "p90", "p95", "p99"], list(latency))
        self.assertLessEqual(latency["min"], latency["median"])
        self.assertLessEqual(latency["median"], latency["p99"])
        for key in ("model", "target", "threads", "contexts", "dims", "seed", "kernels", "flop", "bytes", "arena_bytes",
                    "intermediate_bytes", "throughput_per_s", "gflop_per_s", "fma_limit_gflop_per_s",
                    "share_of_fma_limit", "interrupted"):
            self.assertIn(key, document)
        self.assertIn("p75", document["percentiles_ms"])
        self.assertEqual(document["threads"], 1)
        self.assertLess(document["share_of_fma_limit"], 1.2)

    def test_against_unfused_judges_latency_and_memory(self):
        result = opfuse("bench", SMALL, *QUICK, "--vs-unfused", "--json")
        document = result.json
        self.assertEqual(result.code, 1 if any(document["worse"].values()) else 0, str(result))
        self.assertFalse(any(document["improved"][what] and document["worse"][what] for what in ("latency", "memory")))
        ratio = document["fused_over_unfused"]
        self.assertLessEqual(ratio["low"], ratio["estimate"])
        self.assertLessEqual(ratio["estimate"], ratio["high"])
        self.assertLess(document["kernels"], document["unfused"]["kernels"])
        self.assertLess(document["output_error"], 1e-4)
        self.check_groups(document)

    def check_groups(self, document):
        groups = document["groups"]
        self.assertEqual(sum(len(group["kernels"]) for group in groups), document["kernels"])
        self.assertEqual(sum(len(group["split"]) for group in groups), document["unfused"]["kernels"])
        nodes = [node for group in groups for node in group["nodes"]]
        self.assertEqual(len(nodes), len(set(nodes)), "no node belongs to two groups")
        stem = next(group for group in groups if "/stem/conv" in group["nodes"])
        self.assertGreater(len(stem["split"]), 1)
        self.assertFalse(stem["same_kernels"])
        for group in groups:
            if group["kernels"] and group["split"]:
                self.assertGreater(group["ratio"]["low"], 0)
                self.assertLessEqual(group["ratio"]["low"], group["ratio"]["estimate"])
                self.assertLessEqual(group["ratio"]["estimate"], group["ratio"]["high"])
            alone = group["alone"] is None or group["alone"]["low"] > 1
            self.assertEqual(group["slower"], not group["same_kernels"] and group["ratio"]["low"] > 1.03 and alone, group)
        self.assertLess(sum(group["ms"] for group in groups), 3 * document["latency_ms"]["median"])

    def test_the_table_of_groups_goes_with_vs_unfused(self):
        self.fails(2, "bench", SMALL, *QUICK, "--per-group", says=["E0401", "--vs-unfused"])
        result = opfuse("bench", SMALL, *QUICK, "--vs-unfused", "--per-group")
        self.assertIn("groups, ", result.out)
        self.assertIn("stem", result.out)
        self.assertRegex(result.out, r"\d+ of \d+ groups above 1.15 of their split form, at most 0: (kept|MISSED)")

    def test_groups_that_are_slower_decide_the_status(self):
        for flags, of in ((), ("estimate", "estimate")), (("--measure", "--timings", self.folder / "t.json"), ("low",)):
            result = opfuse("bench", SMALL, *QUICK, "--vs-unfused", "--per-group", "--json", *flags)
            document = result.json
            self.assertEqual([bar["of"] for bar in document["group_bars"]], list(of))
            compared = [g for g in document["groups"] if g["split"] and g["kernels"] and not g["same_kernels"]]
            self.assertTrue(compared)
            for bar in document["group_bars"]:
                def above(ratio, bar=bar):
                    return ratio[bar["of"]] > bar["above"] and ratio["low"] > 1
                self.assertTrue(all(g["alone"] for g in compared), "no loops in this model")
                slow = [above(g["alone"]) for g in compared if above(g["ratio"])]
                self.assertEqual((bar["groups"], bar["in_place"], bar["compared"]),
                                 (slow.count(True), slow.count(False), len(compared)))
                self.assertEqual(bar["kept"], bar["groups"] <= bar["most"])
            missed = any(document["worse"].values()) or not all(bar["kept"] for bar in document["group_bars"])
            self.assertEqual(result.code, 1 if missed else 0, str(result))
        self.assertNotIn("group_bars", opfuse("bench", SMALL, *QUICK, "--vs-unfused", "--json").json)

    def test_contexts_count_images(self):
        document = self.ok("bench", SMALL, *QUICK, "--contexts", "2", "--threads", "1", "--json").json
        self.assertEqual(document["contexts"], 2)
        self.assertGreater(document["throughput_per_s"], 0)

    def test_an_opf_can_be_measured(self):
        self.ok("compile", SMALL, "-o", self.folder / "s.opf")
        self.ok("bench", self.folder / "s.opf", *QUICK)
        self.fails(2, "bench", self.folder / "s.opf", "--vs-unfused", says=["E0401"])

    def test_drawn_kernels(self):
        document = self.ok("bench", "--kernels", "random", "--count", "3", "--seed", "1", "--json").json
        self.assertEqual(len(document["kernels"]), 3)
        self.assertGreater(document["geometric_mean"], 0)
        for kernel in document["kernels"]:
            self.assertAlmostEqual(kernel["share"], kernel["floor_ms"] / kernel["ms"], places=6)
            self.assertEqual(kernel["share"] < 0.35, bool(kernel["explanation"]))
        alone = self.ok("bench", "--kernels", "random", "--count", "3", "--seed", "1", "--alone", "--json").json
        for kernel, other in zip(document["kernels"], alone["kernels"]):
            self.assertEqual([kernel[k] for k in ("layer", "flop", "bytes")], [other[k] for k in ("layer", "flop", "bytes")])
        self.fails(2, "bench", "--kernels", "made-up", says=["E0401"])

    def test_durations_need_a_known_unit(self):
        self.fails(2, "bench", SMALL, "--duration", "3 parsecs", says=["E0401"])

    def test_an_interrupt_keeps_what_was_measured(self):
        process = subprocess.Popen([BINARY, "bench", str(SMALL), "--duration", "60s", "--warmup", "5ms", "--json"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn('"interrupted": true', out)


class Profile(CliTest):
    def test_rows_sum_to_the_latency(self):
        document = self.ok("profile", SMALL, "--duration", "200ms", "--warmup", "5ms", "--threads", "1", "--json").json
        self.assertEqual(document["schema"], "opfuse.profile/1")
        self.assertAlmostEqual(document["sum_ms"], sum(row["ms"] for row in document["kernels"]), places=6)
        self.assertLess(abs(document["sum_ms"] / document["recorded_ms"] - 1), 0.05)
        for key in ("kernel", "ms", "share", "bytes", "gb_per_s", "gflop_per_s", "share_of_roof", "bound", "nodes"):
            self.assertIn(key, document["kernels"][0])

    def test_groups_beside_what_they_replace_and_counters(self):
        document = self.ok("profile", SMALL, "--duration", "20ms", "--warmup", "1ms", "--threads", "1", "--vs-unfused", "--counters", "--json").json
        groups = document["groups"]
        self.assertEqual([g["kernels"] for g in groups if g["kernels"]], [[row["kernel"]] for row in document["kernels"]])
        self.assertGreater(sum(g["bytes_saved"] for g in groups), 0)
        counters = document["counters"]
        self.assertTrue("perf_event" in counters["missing"] if "missing" in counters else counters["instructions"] > 1000, counters)
        text = self.ok("profile", SMALL, "--duration", "20ms", "--warmup", "1ms", "--vs-unfused", "--counters").out
        self.assertIn("bytes saved", text)
        self.assertIn("counters", text)

    def test_sorting_and_cutting(self):
        rows = self.ok("profile", SMALL, "--duration", "20ms", "--sort", "time", "--top", "2", "--json").json["kernels"]
        self.assertEqual(len(rows), 2)
        self.assertGreaterEqual(rows[0]["ms"], rows[1]["ms"])
