"""What every verb says of CUDA targets, on machines without a GPU."""
import unittest

from harness import MODELS, CliTest

SMALL = MODELS / "small_net.fir"
QUICK = ("--duration", "50ms", "--warmup", "5ms")
EMULATED = ("--target", "cuda:emulated")


class Cuda(CliTest):
    def test_kernels_are_written_as_text_without_a_gpu(self):
        self.ok("compile", SMALL, "--target", "cuda:sm_90", "--emit", "cuda", self.folder / "cuda")
        files = list((self.folder / "cuda").glob("*.cu"))
        self.assertTrue(files)
        for file in files:
            text = file.read_text()
            for word in ["// group ", "// nodes ", "// schedule ", "// launch ", "__global__", "constexpr int kBlock"]:
                self.assertIn(word, text)
        self.fails(2, "compile", SMALL, "--emit", "cuda", self.folder, says=["E0401", "--target"])
        self.fails(2, "compile", SMALL, "--target", "cuda:sm_90", "--emit", "asm", self.folder, says=["E0401"])

    def test_an_executable_is_complete_without_a_gpu_and_says_what_it_needs(self):
        found = self.ok("doctor", "--json").json
        opf = self.folder / "small.opf"
        compiling = ("compile", SMALL, "--target", "cuda:sm_90a", "-o", opf, "--no-cache", "--kernel-times", "--json")
        if "not found" in found["cuda_compiler"]:
            self.fails(3, *compiling, says=["E0503", "nvidia-cuda-nvrtc"])
            return
        document = self.ok(*compiling).json
        self.assertEqual(len(document["kernel_times"]), document["kernels"])
        self.assertTrue(all(k["ms"] > 0 and not k["cached"] for k in document["kernel_times"]))
        for launch in self.ok("inspect", opf, "--json").json["launches"]:
            self.assertGreater(launch["device"]["registers"], 0)
            self.assertEqual(launch["device"]["spill_bytes"], 0)
        if "no driver found" in found["cuda_driver"]:
            for verb in ("run", "profile", "bench"):
                self.fails(4, verb, opf, says=["E0605", "searched libcuda.so.1", "cuda:emulated"])

    def test_explain_plans_for_a_gpu_as_for_the_cpu(self):
        remarks = [self.ok("explain", SMALL, "--target", t, "--json").json["remarks"] for t in ("host", "cuda:sm_90")]
        fused = [{(r["rule"], r["anchor"]) for r in each if r["kind"] == "passed"} for each in remarks]
        self.assertEqual(fused[0], fused[1])
        self.assertIn(("ConvBNReLU", "/stem/relu"), fused[0])

    def test_rows_that_are_read_more_than_once_are_said_with_the_reason(self):
        def kernels(length):
            model = self.folder / f"rows_{length}.fir"
            model.write_text(f"graph @rows(%x: f32[2,{length}]) {{\n  %y = softmax(%x) {{axis = 1}}\n  return %y\n}}\n")
            target, folder = ("--target", "cuda:sm_80"), self.folder / f"rows_{length}"
            said = self.ok("explain", model, *target).out
            self.assertEqual(self.ok("explain", model, *target, "--json").json["notes"] != [], "NOTE" in said)
            self.assertEqual("read 3 times" in self.ok("compile", model, *target, "--emit", "cuda", folder).out, "NOTE" in said)
            return said, next(folder.glob("*.cu")).read_text()
        said, text = kernels(41472)
        self.assertNotIn("NOTE", said)
        self.assertIn("// rows      each row is read once and held in 165888 bytes of shared memory", text)
        said, text = kernels(41476)
        self.assertIn("each row is read 3 times: 41476 elements of 4 bytes are more than the 165888 bytes", said)
        self.assertIn("// rows      each row is read 3 times: 41476 elements", text)

    def test_attention_is_one_kernel(self):
        for model in ("zoo:vit_b_16", "zoo:bert_base"):
            small, texts = self.folder / "small.onnx", self.folder / model[4:]
            self.ok("zoo", model[4:], "-o", small, "--width", "0.125", "--resolution", "16", "--force")
            self.assertNotRegex(self.ok("explain", small, "--target", "cuda:sm_90").out,
                                r"ScaledDotProductAttention\S* of \d+ nodes\n +runs as several kernels")
            self.ok("compile", small, "--target", "cuda:sm_90", "--emit", "cuda", texts)
            kernels = [path.read_text() for path in texts.glob("*.cu")]
            self.assertTrue(any("// schedule  attention" in text for text in kernels))
            self.assertFalse(any("exp(sub(" in text and "// schedule  rows" in text for text in kernels), "a softmax of its own")

    def test_the_emulated_device_runs_compares_profiles_and_measures(self):
        opf = self.folder / "small.opf"
        self.assertIn("kernels compiled in", self.ok("compile", SMALL, *EMULATED, "-o", opf).out)
        self.assertTrue(all(launch["device"]["threads"] > 0 for launch in self.ok("inspect", opf, "--json").json["launches"]))
        self.ok("run", SMALL, "--reference", "--output-dir", self.folder / "ref")
        self.ok("run", opf, "--expect", f"y={self.folder}/ref/y.npy")
        self.assertTrue(self.ok("compare", SMALL, *EMULATED, "--json").json["ok"])
        for verb in ("profile", "bench"):
            result = self.ok(verb, opf, *QUICK, "--json")
            self.assertEqual(result.json["target"], "cuda:emulated")
            self.assertIn("these times say nothing about a GPU", result.err)
        self.assertNotIn("say nothing", self.ok("bench", SMALL, *QUICK, "--json").err)


if __name__ == "__main__":
    unittest.main()
