"""opfuse tune: what it measures, what it keeps, and what it refuses."""
import json
import unittest

from harness import MODELS, CliTest, opfuse

SMALL = MODELS / "small_net.fir"
QUICK = ("--time", "1s", "--schedules", "3", "--duration", "20ms", "--warmup", "1ms", "--threads", "1")


class Tune(CliTest):
    def test_keeps_only_what_is_faster_and_proven(self):
        file, opf = self.folder / "times.json", self.folder / "m.opf"
        result = opfuse("tune", SMALL, *QUICK, "--dim", "batch=1", "--timings", file, "-o", opf, "--json")
        self.assertEqual(result.code, 0, str(result))
        document = result.json
        self.assertEqual(document["schema"], "opfuse.tune/1")
        self.assertGreater(document["kernels"], 0)
        self.assertEqual(document["timings"], str(file))
        self.assertEqual(document["kept"], file.exists())
        if document["kept"]:
            self.assertTrue(document["proven"])
            self.assertLess(document["tuned_over_untuned"]["high"], 1)
        for kernel in document["changed"]:
            self.assertLess(kernel["after_us"], kernel["before_us"])
            self.assertNotEqual(kernel["after"], kernel["before"])
        self.ok("run", opf)
        self.ok("compare", SMALL, "--dim", "batch=1", "--measure", "--timings", file)

    def test_says_what_it_did(self):
        result = opfuse("tune", SMALL, *QUICK, "--dim", "batch=1", "--timings", self.folder / "t.json", "--no-proof")
        self.assertEqual(result.code, 0, str(result))
        for word in ("kernels ", "schedules measured in", "faster ", "time "):
            self.assertIn(word, result.out)

    def test_refuses(self):
        self.ok("compile", SMALL, "-o", self.folder / "m.opf", "--dim", "batch=1")
        self.fails(2, "tune", self.folder / "m.opf", says=["E0401"])
        self.fails(2, "tune", SMALL, "-o", self.folder / "m.onnx", *QUICK, says=["E0401"])
        self.fails(2, "tune", SMALL, *QUICK, "--dim", "batch=1", "--target", "cuda:sm_80", says=["this machine's processor"])
        self.fails(2, "tune", SMALL, "--time", "soon", "--dim", "batch=1", says=["soon"])
        broken = self.folder / "broken.json"
        broken.write_text("{}")
        self.assertNotEqual(opfuse("tune", SMALL, *QUICK, "--dim", "batch=1", "--timings", broken).code, 0)
        self.assertEqual(broken.read_text(), "{}")


if __name__ == "__main__":
    unittest.main()
