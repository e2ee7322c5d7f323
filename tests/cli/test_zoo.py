"""The contract on the built-in models: slow, labelled so."""
from harness import CliTest, opfuse

RESNETS = {
    "resnet18": (1, 8, 8, 4, 22),
    "resnet34": (1, 16, 16, 4, 38),
    "resnet50": (1, 16, 32, 5, 55),
    "resnet101": (1, 33, 66, 5, 106),
    "resnet152": (1, 50, 100, 5, 157),
}


class Zoo(CliTest):
    def test_fused_module_counts_of_the_resnets(self):
        for name, (stem, add, relu, bn, total) in RESNETS.items():
            document = self.ok("fuse", f"zoo:{name}", "--dry-run", "--json").json
            modules = dict(document["modules"])
            self.assertEqual(document["module_total"], total, f"{name}: {modules}")
            self.assertEqual(modules.pop("FusedConvBNReLUMaxPool"), stem)
            self.assertEqual(modules.pop("FusedConvBNAddReLU"), add)
            self.assertEqual(modules.pop("FusedConvBNReLU"), relu)
            self.assertEqual(modules.pop("FusedConvBN"), bn)
            self.assertEqual(modules, {"FusedAdaptiveAvgPool2d": 1}, name)

    def test_points_of_resnet50(self):
        points = self.ok("fuse", "zoo:resnet50", "--dry-run", "--json").json["qdq"]
        self.assertEqual((points["declared"], points["tensor_count"]), (72, 55))
        points = self.ok("fuse", "zoo:resnet50", "--dry-run", "--json", "--skip", "AdaptiveAvgPool").json["qdq"]
        self.assertEqual((points["declared"], points["tensor_count"]), (70, 54))

    def test_resnet18_is_equal_group_by_group(self):
        document = self.ok("compare", "zoo:resnet18", "--json").json
        self.assertTrue(document["ok"])
        self.assertGreaterEqual(len(document["groups"]), 22)

    def test_fusion_lowers_the_peak_memory_of_mobilenet(self):
        document = opfuse("bench", "zoo:mobilenet_v2", "--vs-unfused", "--json", "--duration", "300ms").json
        self.assertTrue(document["improved"]["memory"])
        self.assertLess(document["arena_bytes"], 0.7 * document["unfused"]["arena_bytes"])
        self.assertLess(document["bytes"] - 14e6, 0.65 * (document["unfused"]["bytes"] - 14e6), "activations moved")

    def test_the_demo_proves_a_model_equal(self):
        document = self.ok("demo", "--model", "mobilenet_v2", "--seconds", "0.3", "--json").json
        self.assertTrue(document["models"][0]["equal"])
        self.assertLess(document["models"][0]["fused"]["kernels"], document["models"][0]["unfused"]["kernels"])
