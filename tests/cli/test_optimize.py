"""opfuse optimize: candidates, proof, measurement, exit codes, the report."""
import json
import unittest

from harness import MODELS, CliTest

SMALL = MODELS / "small_net.fir"
QUICK = ("--duration", "20ms", "--warmup", "1ms", "--threads", "1", "--dim", "batch=1")


class Optimize(CliTest):
    def decided(self, *arguments):
        """Small nets may be slower or faster by chance: both are verdicts, and the exit code says which."""
        from harness import opfuse
        result = opfuse("optimize", *arguments)
        self.assertIn(result.code, (0, 1), str(result))
        return result

    def test_writes_what_it_proved_and_measured(self):
        opf, page = self.folder / "m.opf", self.folder / "r.html"
        result = self.decided(SMALL, "-o", opf, "--report", page, *QUICK)
        for word in ("as predicted", "--no-chains", "proof ", "time ", "memory ", "launches"):
            self.assertIn(word, result.out)
        self.assertIn("PASSED" if result.code == 0 else "FAILED", result.out)
        self.ok("run", opf)
        data = json.loads(page.read_text().split('<script type="application/json" id="data">')[1].split("</script>")[0])
        model = data["models"][0]
        self.assertTrue(model["proof"]["ok"])
        self.assertTrue(all(launch["ms"] > 0 for launch in model["launches"]))

    def test_json_agrees_with_the_exit_code(self):
        result = self.decided(SMALL, "--json", *QUICK)
        document = result.json
        self.assertEqual(document["schema"], "opfuse.optimize/1")
        self.assertEqual(document["ok"], result.code == 0)
        self.assertEqual(document["ok"], not (document["slower"] or document["larger"] or document["proof"]["failures"]))
        self.assertEqual(document["slower"], document["fused_over_unfused"]["low"] > 1)
        chosen = document["candidates"][document["chosen"]]
        self.assertEqual(chosen["skipped"], "")
        self.assertLess(document["fused"]["launches"], document["unfused"]["launches"])
        self.assertLess(document["fused"]["bytes"], document["unfused"]["bytes"])
        measured = [c for c in document["candidates"] if not c["skipped"]]
        self.assertTrue(all(c["latency_ms"] is None or c["latency_ms"] > 0 for c in measured))

    def test_worse_is_exit_one(self):
        """Nothing may be fused, so the program is the unfused one with the memory of the unfused one."""
        lone = self.folder / "lone.fir"
        lone.write_text("graph (%x: f32[64]) { %y = exp(%x) return %y }")
        document = self.decided(lone, "--json", "--duration", "20ms", "--warmup", "1ms", "--threads", "1").json
        self.assertFalse(document["larger"])
        self.assertEqual(document["fused"]["launches"], document["unfused"]["launches"])

    def test_refuses(self):
        self.fails(2, "optimize", SMALL, "-o", self.folder / "m.onnx", *QUICK, says=["E0401"])
        self.ok("compile", SMALL, "-o", self.folder / "m.opf", "--dim", "batch=1")
        self.fails(2, "optimize", self.folder / "m.opf", says=["E0401"])
        self.fails(2, "optimize", SMALL, "--report", self.folder / "r.txt", *QUICK, says=["E0401"])


if __name__ == "__main__":
    unittest.main()
