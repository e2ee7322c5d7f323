"""opfuse as an execution provider of the real ONNX Runtime: whole graphs and parts of them, open sizes, threads, sessions, options, compiled models.

    OPFUSE_EP=folder of the plug-in  OPFUSE_BINARY=opfuse  python -m unittest test_provider
"""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = pathlib.Path(os.environ["OPFUSE_EP"])
if not (BUILT / "__init__.py").exists():  # of a build tree, not an installed package
    PACKAGE = pathlib.Path(tempfile.mkdtemp(prefix="opfuse-ep-"))
    unittest.addModuleCleanup(shutil.rmtree, PACKAGE)
    shutil.copytree(ROOT / "plugins/onnxruntime/onnxruntime_ep_opfuse", PACKAGE / "onnxruntime_ep_opfuse", ignore=shutil.ignore_patterns("__pycache__"))
    (PACKAGE / "onnxruntime_ep_opfuse/libonnxruntime_ep_opfuse.so").symlink_to(BUILT / "libonnxruntime_ep_opfuse.so")
    sys.path.insert(0, str(PACKAGE))
import onnxruntime_ep_opfuse  # noqa: E402
FLOAT = TensorProto.FLOAT
RANDOM = numpy.random.default_rng(0)


def value(name, *shape):
    return helper.make_tensor_value_info(name, FLOAT, shape)


def constant(name, *shape):
    return onnx.numpy_helper.from_array(RANDOM.standard_normal(shape, numpy.float32) * 0.2, name)


def model_of(nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(constants))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made)
    return made


def branch(op, result):
    return helper.make_graph([helper.make_node(op, ["b"], [result])], result, [], [value(result, "N", 8, 16, 16)])


def around_a_branch():
    """conv -> relu -> If, decided at run time -> add with what stands in front of it -> conv -> relu"""
    nodes = [helper.make_node("Conv", ["x", "w0"], ["a"], name="conv0", pads=[1, 1, 1, 1]), helper.make_node("Relu", ["a"], ["b"], name="relu0"),
             helper.make_node("Mul", ["b", "half"], ["h"], name="half0"),
             helper.make_node("If", ["take"], ["c"], name="choice", then_branch=branch("Sin", "t"), else_branch=branch("Cos", "e")),
             helper.make_node("Add", ["c", "h"], ["d"], name="add1"), helper.make_node("Conv", ["d", "w1"], ["f"], name="conv1", pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["f"], ["y"], name="relu1")]
    take = helper.make_tensor_value_info("take", TensorProto.BOOL, [])
    half = onnx.numpy_helper.from_array(numpy.float32(0.5), "half")
    return model_of(nodes, [value("x", "N", 3, 16, 16), take], [value("y", "N", 8, 16, 16)], [constant("w0", 8, 3, 3, 3), constant("w1", 8, 8, 3, 3), half])


def whole():
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("GlobalAveragePool", ["b"], ["c"]), helper.make_node("Flatten", ["c"], ["d"]), helper.make_node("Softmax", ["d"], ["y"])]
    return model_of(nodes, [value("x", "N", 3, 16, 16)], [value("y", "N", 8)], [constant("w", 8, 3, 3, 3)])


def session(model, only_opfuse=False, entries=(), **settings):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    for key, text in (*entries, *((("session.disable_cpu_ep_fallback", "1"),) if only_opfuse else ())):
        options.add_session_config_entry(key, text)
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    onnxruntime_ep_opfuse.session_options(options, **settings)
    return onnxruntime.InferenceSession(model if isinstance(model, str) else model.SerializeToString(), options)


def plain(model, feeds):
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)


def image(batch=1):
    return RANDOM.random((batch, 3, 16, 16), numpy.float32)


class Provider(unittest.TestCase):
    def same(self, got, want):
        for g, w in zip(got, want, strict=True):
            numpy.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)

    def test_whole_graph_of_open_batch(self):
        model = whole()
        runs = session(model, only_opfuse=True)
        self.assertEqual(runs.get_providers()[0], "OpfuseExecutionProvider")
        for batch in (1, 3, 8, 1):
            feeds = {"x": image(batch)}
            self.same(runs.run(None, feeds), plain(model, feeds))

    def test_built_in_model(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/m.onnx"
            subprocess.run([os.environ["OPFUSE_BINARY"], "zoo", "mobilenet_v2", "--resolution", "32", "--width", "0.25", "-o", path, "-q"], check=True)
            feeds = {"input": RANDOM.random((1, 3, 32, 32), numpy.float32)}
            self.same(session(path, only_opfuse=True).run(None, feeds), plain(onnx.load(path), feeds))

    def test_parts_around_a_node_that_stays(self):
        model = around_a_branch()
        runs = session(model)
        owners = {node.name: part.ep_name for part in runs.get_provider_graph_assignment_info() for node in part.get_nodes()}
        self.assertEqual(owners["choice"], "CPUExecutionProvider")
        for name in ("conv0", "relu0", "half0", "add1", "conv1", "relu1"):
            self.assertEqual(owners[name], "OpfuseExecutionProvider", owners)
        for take in (True, False):
            feeds = {"x": image(2), "take": numpy.array(take)}
            self.same(runs.run(None, feeds), plain(model, feeds))

    def test_small_parts_stay(self):
        owners = {part.ep_name for part in session(around_a_branch(), min_nodes=4).get_provider_graph_assignment_info()}
        self.assertEqual(owners, {"CPUExecutionProvider"})

    def test_many_threads_and_sessions(self):
        model = whole()
        feeds = [{"x": image(1 + i % 3)} for i in range(24)]
        want = [plain(model, f) for f in feeds]
        sessions = [session(model, threads=1), session(model, threads=2)]
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            got = list(pool.map(lambda i: sessions[i % 2].run(None, feeds[i % 24]), range(240)))
        for i, result in enumerate(got):
            self.same(result, want[i % 24])

    def test_options(self):
        with self.assertRaisesRegex(Exception, "no option 'thread': target, threads, exact"):
            session(whole(), thread=1)
        with self.assertRaisesRegex(Exception, "threads = 'two': write a number"):
            session(whole(), threads="two")
        with self.assertRaisesRegex(Exception, "E0401"):
            session(whole(), target="cpu:none")
        feeds = {"x": image(8)}
        runs = session(whole(), only_opfuse=True, exact=1, specialize="N=8", target="cpu:baseline")
        self.assertEqual(runs.run(None, feeds)[0].shape, (8, 8))

    def test_wrong_sizes_are_an_error_of_the_run(self):
        model = whole()
        runs = session(model)
        with self.assertRaises(Exception):
            runs.run(None, {"x": RANDOM.random((1, 3, 17, 16), numpy.float32)})
        feeds = {"x": image()}
        self.same(runs.run(None, feeds), plain(model, feeds))

    def test_compiled_models(self):
        for embed in "01":
            with self.subTest(embed=embed), tempfile.TemporaryDirectory() as folder:
                model, path, compiled = around_a_branch(), f"{folder}/m.onnx", f"{folder}/c.onnx"
                onnx.save(model, path)
                session(path, entries=[("ep.context_enable", "1"), ("ep.context_file_path", compiled), ("ep.context_embed_mode", embed)])
                self.assertEqual(len(list(pathlib.Path(folder).glob("*.opf"))), 0 if embed == "1" else 2)
                kinds = [node.op_type for node in onnx.load(compiled).graph.node]
                self.assertEqual(sorted(kinds), ["EPContext", "EPContext", "If"])
                feeds = {"x": image(2), "take": numpy.array(True)}
                self.same(session(compiled).run(None, feeds), plain(model, feeds))


if __name__ == "__main__":
    unittest.main()
