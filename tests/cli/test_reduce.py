"""opfuse reduce: commands that fail, that do not, that never end."""
import unittest

from harness import BINARY, CliTest


class Reduce(CliTest):
    def test_finds_the_node_a_command_fails_for(self):
        out = self.folder / "small.onnx"
        command = f"{BINARY} inspect --json {{}} | grep -q MaxPool && exit 9"
        result = self.ok("reduce", "zoo:resnet18", "--fails", command, "-o", out)
        self.assertIn("1 of ", result.out)
        self.assertIn("exit 9", result.err)
        self.assertIn("MaxPool", self.ok("inspect", "--json", out).out)
        self.assertLess(out.stat().st_size, 2000)

    def test_goes_by_what_the_command_prints(self):
        out = self.folder / "small.onnx"
        result = self.ok("reduce", "zoo:mobilenet_v2", "--fails", f"{BINARY} inspect", "--says", "Gemm", "-o", out)
        self.assertIn("1 of ", result.out)

    def test_a_hang_is_a_failure(self):
        out = self.folder / "small.onnx"
        self.ok("reduce", "zoo:resnet18", "--fails", "sleep 60 #", "--timeout", "0.2", "--max-tries", "3", "-o", out)

    def test_a_command_that_does_not_fail_is_refused(self):
        self.fails(2, "reduce", "zoo:resnet18", "--fails", "true", says=["E0401", "does not fail"])
        self.fails(2, "reduce", "zoo:resnet18", "--fails", "true", "--says", "x", says=["does not print"])


if __name__ == "__main__":
    unittest.main()
