"""Programs over cpu and a plug-in: examples/npu, built here as its users build it, with a recorder."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import CliTest, opfuse

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILER = shutil.which(os.environ.get("CXX", "c++"))
CALLS = ("open", "describe", "accept", "compile", "allocate", "copy", "run")
# Rows, columns and depth that are no multiples of 16; a norm between two products; q, k and v of one value apart.
NET = """graph (%x: f32[37,50]) {
  %w1 = const rand<1> : f32[50,90]
  %b1 = const rand<2> : f32[90]
  %w2 = const rand<3> : f32[90,50]
  %w3 = const rand<4> : f32[50,21]
  %s = const splat<1> : f32[50]
  %m = matmul(%x, %w1) @"first"
  %a = add(%b1, %m) @"bias"
  %g = gelu(%a) @"gelu"
  %n = matmul(%g, %w2) @"second"
  %r = add(%n, %x) @"residual"
  %l = layer_norm(%r, %s) @"norm"
  %y = matmul(%l, %w3) @"third"
  return %y }"""
ALL = ["--place", "first=example-npu", "--place", "second=example-npu", "--place", "third=example-npu"]
ON = ["--target", "example-npu,cpu"]


@unittest.skipUnless(COMPILER, "no C++ compiler")
class Devices(CliTest):
    @classmethod
    def setUpClass(cls):
        cls.folder_of_plugin = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder_of_plugin.cleanup)
        subprocess.run([COMPILER, "-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-I", ROOT / "include",
                        ROOT / "examples" / "npu" / "npu.cpp", "-o",
                        pathlib.Path(cls.folder_of_plugin.name) / "libexample_npu.so"], check=True)

    def setUp(self):
        super().setUp()
        self.model = self.folder / "net.fir"
        self.model.write_text(NET)
        self.record = self.folder / "record"
        self.environment = {"OPFUSE_PLUGINS": self.folder_of_plugin.name, "EXAMPLE_NPU_RECORD": str(self.record)}

    def recorded(self, what):
        return [line for line in self.record.read_text().splitlines() if line.startswith(what)]

    def test_exports_are_those_of_the_list(self):
        table = (ROOT / "src" / "plugin" / "plugin_functions.def").read_text()
        listed = {f"opfuse_plugin_{name}" for name in re.findall(r"OPFUSE_PLUGIN_FUNCTION\((\w+), ", table)} - {
            "opfuse_plugin_name"}
        header = (ROOT / "include" / "opfuse" / "plugin.h").read_text()
        self.assertEqual(set(re.findall(r"OPFUSE_PLUGIN_EXPORT [^;]*?\b(opfuse_plugin_\w+)\(", header)), listed)
        self.assertEqual(len(listed), 12)
        if shutil.which("nm"):
            out = subprocess.run(["nm", "-D", "--defined-only", pathlib.Path(self.folder_of_plugin.name) / "libexample_npu.so"],
                                 capture_output=True, text=True, check=True).stdout
            self.assertEqual({w for w in re.findall(r"\bopfuse_\w+", out)}, listed)

    def test_the_activation_is_on_the_last_tile_of_k_alone(self):
        self.environment["EXAMPLE_NPU_TRACE"] = "1"
        self.assertIn("passed", self.ok("compare", self.model, *ON, *ALL, environment=self.environment).out.lower())
        tiles = [dict(word.split("=") for word in line.split()[1:]) for line in self.recorded("tile")]
        self.assertTrue(any(tile["activation"] == "1" for tile in tiles))
        for tile in tiles:
            self.assertTrue(tile["activation"] == "0" or tile["last"] == "1", tile)
        gelu = [line for line in self.recorded("run") if "n=90 k=50" in line]
        self.assertIn("m=37 n=90 k=50 tiles=72 biases=18 activations=18", gelu[0])  # 3 x 6 tiles of results, 4 of K

    def test_a_device_that_is_wrong_is_found(self):
        environment = {**self.environment, "EXAMPLE_NPU_EARLY": "1"}
        result = opfuse("compare", self.model, *ON, *ALL, environment=environment)
        self.assertEqual(result.code, 1, result)
        self.assertIn("single precision allows", result.out)

    def test_values_move_once_and_as_often_as_the_program_says(self):
        self.ok("run", self.model, *ON, *ALL, environment=self.environment)
        launches = self.ok("explain", self.model, *ON, *ALL, "--json", environment=self.environment).json["launches"]
        names = [launch["name"] for launch in launches]
        runs = len(self.recorded("run")) // 3
        self.assertEqual(len(self.recorded("run")), 3 * runs)
        copied_out = [name for name in names if name.endswith("_from_example-npu")]
        copied_in = [name for name in names if name.endswith("_to_example-npu")]
        self.assertEqual(sorted(copied_in), ["copy_l_to_example-npu", "copy_x_to_example-npu"])
        self.assertEqual(len(copied_out), 2, "what the second product reads never leaves the device")
        self.assertEqual(len(self.recorded("copy out")), runs * len(copied_out))
        self.assertEqual(len(self.recorded("copy in")), runs * len(copied_in) + 4, "and four constants, once")

    def test_every_group_has_a_device_and_a_reason(self):
        out = self.ok("explain", self.model, *ON, *ALL, "--json", environment=self.environment).json["placements"]
        places = {p["group"]: p for p in out}
        self.assertEqual(places["TileLinear@gelu"]["device"], "example-npu")
        norm = next(p for name, p in places.items() if "norm" in name)
        self.assertEqual(norm["code"], "no_operator")
        self.assertIn("is not in example-npu's operators", norm["reason"])
        for p in out:
            self.assertTrue(p["reason"] and p["code"], p)

    def test_what_does_not_pay_stays_on_the_host_with_the_plan_it_has_alone(self):
        out = self.ok("explain", self.model, *ON, "--json", environment=self.environment).json
        third = next(p for p in out["placements"] if p["group"].endswith("@third"))
        self.assertEqual((third["device"].startswith("cpu"), third["code"]), (True, "slower"))
        self.assertRegex(third["reason"], r"moving its values takes \d+ us, more than|\d+ us on example-npu, \d+ us here")
        alone = self.ok("explain", self.model, "--json").json
        if not any(p["device"] == "example-npu" for p in out["placements"]):
            self.assertEqual([l["name"] for l in out["launches"]], [l["name"] for l in alone["launches"]])

    def test_a_plug_in_that_fails_is_named_and_nothing_crashes(self):
        for call in CALLS:
            with self.subTest(call):
                result = opfuse("run", self.model, *ON, *ALL, environment={**self.environment, "EXAMPLE_NPU_FAIL": call})
                self.assertGreater(result.code, 0, result)
                self.assertIn("example-npu", result.err)
                self.assertIn(call if call != "copy" else "copying", result.err)

    def test_older_newer_and_missing_plug_ins_are_errors_or_with_fallback_the_cpu(self):
        for environment, says in ((dict(self.environment, EXAMPLE_NPU_ABI="99"), "version 99 of the interface"),
                                  (dict(self.environment, EXAMPLE_NPU_ABI="0"), "version 0 of the interface"),
                                  (dict(self.environment, OPFUSE_PLUGINS="/nowhere"), "libexample_npu.so"),
                                  (dict(self.environment, EXAMPLE_NPU_FAIL="open"), "asked to fail in open")):
            with self.subTest(says):
                result = opfuse("run", self.model, *ON, environment=environment)
                self.assertGreater(result.code, 0, result)
                self.assertIn("example-npu", result.err)
                self.assertIn(says, result.err)
                out = self.ok("compare", self.model, *ON, "--fallback", environment=environment)
                self.assertIn("passed", out.out.lower())
                said = (out.out + out.err).count("done without example-npu")
                self.assertEqual(said, 1, out)

    def test_a_saved_program_has_a_section_for_its_device_and_opens_it(self):
        opf = self.folder / "m.opf"
        self.ok("compile", self.model, *ON, *ALL, "-o", opf, environment=self.environment)
        self.record.unlink()
        self.ok("run", opf, environment=self.environment)
        self.assertEqual(sorted({line.split()[1] for line in self.recorded("run")}),
                         ["NpuTileLinear__first", "NpuTileLinear__second", "NpuTileLinear__third"])
        self.assertIn(b"device:example-npu", opf.read_bytes())
        lacking = opfuse("run", opf, environment={"OPFUSE_PLUGINS": "/nowhere"})
        self.assertGreater(lacking.code, 0)
        self.assertIn("the plug-in of example-npu", lacking.err)
        for at in range(0, opf.stat().st_size, 1777):  # damaged anywhere: refused, never run
            bad = bytearray(opf.read_bytes())
            bad[at] ^= 0x20
            (self.folder / "bad.opf").write_bytes(bytes(bad))
            result = opfuse("inspect", self.folder / "bad.opf", environment=self.environment)
            self.assertIn(result.code, (0, 5), result)

    def test_a_gpu_beside_the_host_and_a_plug_in(self):
        gpu = ["--target", "cuda:emulated,cpu", "--place", "*=cuda:emulated", "--place", "norm=cpu"]
        self.assertIn("PASSED", self.ok("compare", self.model, *gpu).out)
        places = {p["group"]: p for p in self.ok("explain", self.model, *gpu, "--json").json["placements"]}
        self.assertEqual({p["device"].split(":")[0] for p in places.values()}, {"cuda", "cpu"})
        self.assertTrue(all(p["code"] and p["reason"] for p in places.values()), places)
        three = ["--target", "example-npu,cuda:emulated,cpu", "--place", "first=example-npu", "--place", "third=cuda:emulated"]
        self.assertIn("PASSED", self.ok("compare", self.model, *three, environment=self.environment).out)
        opf = self.folder / "m.opf"
        self.ok("compile", self.model, *three, "-o", opf, environment=self.environment)
        self.ok("run", opf, environment=self.environment)
        alone = self.ok("explain", self.model, "--target", "cuda:emulated,cpu", "--json").json["placements"]
        self.assertTrue(all(p["code"] in ("slower", "faster", "not_generated") for p in alone), alone)
        self.fails(2, "run", self.model, "--target", "cuda:emulated,cpu", "--place", "nrom=cuda:emulated",
                   says=['did you mean "norm"'])
        if "cuda: no driver found" in opfuse("doctor").out:
            out = self.ok("run", self.model, "--target", "cuda:sm_80,cpu", "--fallback")
            self.assertEqual((out.out + out.err).count("done without cuda:sm_80"), 1, out)

    def test_linears_of_bert_are_composites(self):
        command = ["fuse", "zoo:bert_base", "--target", "example-npu,cpu", "--dry-run", "--json"]
        out = self.ok(*command, environment=self.environment).json  # the pooler's, of one row, is faster on the host
        self.assertEqual((out["modules"]["NpuTileLinear"], out["modules"]["NpuTileProjection"]), (36, 12))
        out = self.ok(*command, "--place", "*=example-npu", environment=self.environment).json
        self.assertEqual((out["modules"]["NpuTileLinear"], out["modules"]["NpuTileProjection"]), (37, 12))
        self.assertNotIn("FusedLinear", out["modules"])
        self.assertNotIn("FusedLinearReLU", out["modules"])

    def test_places_that_cannot_be_are_refused(self):
        for place, says in (("norm=example-npu", "no composite of example-npu"), ("nrom=cpu", 'did you mean "norm"'),
                            ("first=npu", "no device 'npu'"), ("first", "NODE=DEVICE")):
            self.assertIn(says, self.fails(2, "run", self.model, *ON, "--place", place, environment=self.environment).err)
        out = self.ok("explain", self.model, *ON, "--place", "first=cpu", "--json", environment=self.environment).json
        self.assertEqual(next(p for p in out["placements"] if p["group"].endswith("@gelu"))["code"], "asked")
        self.fails(2, "targets", "advise", self.model, "--target", "example-npu,cpu", says=["names several targets"])
        self.fails(2, "run", self.model, "--target", "cpu,example-npu", environment=self.environment,
                   says=["the last of --target"])


if __name__ == "__main__":
    unittest.main()
