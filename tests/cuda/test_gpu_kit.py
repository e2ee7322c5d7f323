"""The kit for GPUs, made for the emulated device, unpacked elsewhere and run: every step, rows that are kept, a budget that
ends. Emulated kernels are compiled by the host's compiler where they run; those of real architectures travel with the kit."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else ROOT / "build/release"
sys.path.insert(0, str(ROOT / "bench"))
sys.dont_write_bytecode = True
import gpu_kit  # noqa: E402


class GpuKit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        made = subprocess.run([sys.executable, "-B", ROOT / "bench/gpu_kit.py", "--build", BUILD, "-o", cls.folder / "kit.tar.gz", "--dry-run"],
                              capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        cls.said = made.stdout
        subprocess.run(["tar", "xzf", cls.folder / "kit.tar.gz", "-C", cls.folder], check=True)
        cls.kit = cls.folder / "gpu-kit"

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def step(self, *words, out="out"):
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([sys.executable, self.kit / "bench/gpu.py", *words, "--dry-run", "--out", self.folder / out], capture_output=True, text=True, env=env)
        path = self.folder / out / "rows.jsonl"
        return done, [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def test_it_is_small_and_complete(self):
        self.assertRegex(self.said, r"[\d.]+ MiB, kernels are compiled where they run")
        self.assertLess((self.folder / "kit.tar.gz").stat().st_size, gpu_kit.MOST)
        readme = (self.kit / "README.md").read_text()
        self.assertIn("bench/gpu.py facts", readme)
        for binary in [self.kit / "bin/opfuse", *(self.kit / "lib").iterdir()]:
            read = subprocess.run(["readelf", "-d", binary], capture_output=True, text=True, check=True).stdout
            for name in re.findall(r"NEEDED.*\[(.*?)\]", read):
                self.assertTrue(name in gpu_kit.SYSTEM or (self.kit / "lib" / name).exists(), f"{binary.name} needs {name}")

    def test_each_step_measures_its_rows_and_keeps_them(self):
        for number, (step, rows) in enumerate({"facts": 3, "kernels": 2, "models": 1}.items(), 1):
            done, found = self.step(str(number))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            mine = [r for r in found if r["step"] == step]
            self.assertEqual([r["status"] for r in mine], ["ok"] * rows, mine)
        again, same = self.step("models")
        self.assertEqual((again.returncode, same), (0, found), "a row that is there is not measured again")
        for step in ("peers", "sanitizer"):
            done, found = self.step(step)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertTrue(all(r["status"] == "skipped" and r["why"] for r in found if r["step"] == step))

    def test_a_budget_that_ends_names_what_is_left(self):
        done, rows = self.step("facts", "--budget", "0", out="short")
        self.assertEqual((done.returncode, rows), (3, []))
        self.assertIn("left: device, copy, compare resnet18", done.stdout)

    def test_a_failure_is_a_row_and_a_status(self):
        (self.folder / "broken" / "work").mkdir(parents=True)
        (self.folder / "broken" / "work" / "resnet18-1.fir").write_text("no graph\n")
        done, rows = self.step("models", out="broken")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(rows[0]["status"], "failed")
        self.assertIn("E0108", rows[0]["why"])


if __name__ == "__main__":
    unittest.main()
