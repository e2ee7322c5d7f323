"""Exports in other runtimes: onnx.checker, ONNX Runtime, OpenVINO. Needs a Python that has them (OPFUSE_PEERS_VENV)."""
import json
import os
import pathlib
import subprocess
import unittest

from harness import BINARY, CliTest

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = pathlib.Path(os.environ.get("OPFUSE_PEERS_VENV", ROOT / "build" / "peers-venv"))
PYTHON = VENV / "bin" / "python"


class ReadsBack(CliTest):
    def groups(self, model):
        """What is fused, without the order of the list: {id: (label, nodes, reads, results, points)}."""
        plan = self.folder / "plan.json"
        self.ok("fuse", model, "--dry-run", "--plan-out", plan)
        document = json.loads(plan.read_text())
        rows = {row["id"]: (row["apply"], row["label"], sorted(row["nodes"]), sorted(row["reads"]),
                            sorted(row["results"]), row["points"]) for row in document["matches"]}
        return document["model"], rows

    def same_plan(self, model):
        out = self.folder / "fused.onnx"
        self.ok("fuse", model, "-o", out)
        self.assertEqual(self.groups(out), self.groups(model))

    def test_a_small_net_to_the_same_plan(self):
        net = self.folder / "net.onnx"  # a .fir has nodes without names; the written file names them
        self.ok("zoo", "resnet18", "-o", net, "--resolution", "64", "--width", "0.125")
        self.same_plan(net)

    def test_models_to_the_same_plan(self):
        folder = os.environ.get("OPFUSE_TEST_MODELS")
        if not folder:
            self.skipTest("OPFUSE_TEST_MODELS is not set")
        for path in sorted(pathlib.Path(folder).glob("*.onnx")):
            with self.subTest(path.name):
                self.same_plan(path)


class OtherRuntimes(CliTest):
    def test_load_both_forms_and_give_the_same_values(self):
        probe = "import numpy, onnx, onnxruntime, openvino"
        if not PYTHON.exists() or subprocess.run([PYTHON, "-c", probe], capture_output=True).returncode != 0:
            self.skipTest(f"{PYTHON} with onnx, onnxruntime and openvino is not there (bench/install_peers.sh)")
        models = []
        for name in ("resnet18", "mobilenet_v2", "efficientnet_b0"):
            models.append(self.folder / f"{name}.onnx")
            self.ok("zoo", name, "-o", models[-1], "--resolution", "64", "--width", "0.25")
        planned = self.folder / "planned.onnx"  # what a planning target fuses is an export like any other
        self.ok("fuse", models[0], "--target", "tensorrt", "-o", planned)
        same = ("import numpy, onnxruntime, sys\n"
                "x = numpy.linspace(-1, 1, 3 * 64 * 64, dtype=numpy.float32).reshape(1, 3, 64, 64)\n"
                "run = lambda f: onnxruntime.InferenceSession(f, providers=['CPUExecutionProvider']).run(None, {'input': x})[0]\n"
                "a, b = map(run, sys.argv[1:])\n"
                "assert numpy.abs(a - b).max() <= 1e-4 * numpy.abs(a).max()")
        done = subprocess.run([PYTHON, "-c", same, models[0], planned], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = subprocess.run([PYTHON, "-B", ROOT / "bench" / "export_cost.py", "--check-only", "--opfuse", BINARY, *models],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("onnx.checker passes"), len(models))


if __name__ == "__main__":
    unittest.main()
