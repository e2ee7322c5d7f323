"""Tests of the peers' runner that need no engine but ONNX Runtime:  PYTHON -m unittest discover bench  in the peers' venv."""
import itertools
import pathlib
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from peerlib import flops, inputs, intervals, measure, plot, pool, report  # noqa: E402


def single_node_model(op, x, w, y_rank, **attrs):
    node = helper.make_node(op, ["x", "w"], ["y"], **attrs)
    weights = helper.make_tensor("w", TensorProto.FLOAT, w, np.ones(int(np.prod(w))))
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * y_rank)], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def counted(model, x):
    return flops.count(model, {"x": np.ones(x, np.float32)})[0]


class UsefulFlop(unittest.TestCase):
    # With x = w = 1 every output of a convolution is its number of useful products, so the outputs add up to the count.
    def check_against_sum_of_outputs(self, op, x, w, **attrs):
        model = single_node_model(op, x, w, len(x), **attrs)
        session = flops.onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        products = session.run(None, {"x": np.ones(x, np.float32)})[0].sum()
        self.assertEqual(counted(model, x), 2 * round(float(products)), msg=f"{op} {x} {w} {attrs}")

    def test_convolutions_count_exactly_the_taps_that_fall_on_data(self):
        for stride, dilation, pad in itertools.product((1, 2, 3), (1, 2), (0, 1, 3)):
            self.check_against_sum_of_outputs("Conv", [2, 4, 9, 8], [6, 2, 3, 2], group=2, strides=[stride, 1],
                                              dilations=[1, dilation], pads=[pad, 0, 1, pad])

    def test_auto_padding_is_resolved_as_onnx_says(self):
        for auto in ("SAME_UPPER", "SAME_LOWER", "VALID"):
            self.check_against_sum_of_outputs("Conv", [1, 3, 7, 10], [5, 3, 4, 3], strides=[2, 3], auto_pad=auto)

    def test_transposed_convolutions_leave_out_what_the_padding_crops(self):
        for stride, pad in itertools.product((1, 2, 3), (0, 1)):
            self.check_against_sum_of_outputs("ConvTranspose", [1, 4, 5, 6], [4, 3, 3, 3], strides=[stride, stride],
                                              pads=[pad, pad, 0, pad])

    def test_a_product_counts_two_flop_per_multiply_add(self):
        self.assertEqual(counted(single_node_model("MatMul", [2, 5, 7], [7, 3], 3), [2, 5, 7]), 2 * 2 * 5 * 7 * 3)
        self.assertEqual(counted(single_node_model("Gemm", [7, 5], [3, 7], 2, transA=1, transB=1), [7, 5]), 2 * 5 * 7 * 3)

    def test_products_of_constants_are_free(self):
        model = single_node_model("MatMul", [4, 4], [4, 4], 2)
        model.graph.node.insert(0, helper.make_node("MatMul", ["w", "w"], ["w2"]))
        model.graph.node[1].input[1] = "w2"
        self.assertEqual(counted(model, [4, 4]), 2 * 4 * 4 * 4)


class Inputs(unittest.TestCase):
    def test_a_named_dimension_without_a_size_is_refused_with_the_flag_to_add(self):
        value = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "height"])
        with self.assertRaisesRegex(inputs.UnknownDimension, "--dim height=SIZE"):
            inputs.concrete_shape(value, 1, {})
        self.assertEqual(inputs.concrete_shape(value, 2, {"height": 5}), (2, 3, 5))

    def test_indices_stay_in_their_table_and_other_integers_are_masks(self):
        nodes = [helper.make_node("Gather", ["table", "ids"], ["y"]), helper.make_node("Identity", ["mask"], ["z"])]
        ports = [helper.make_tensor_value_info(n, TensorProto.INT64, [1, 64]) for n in ("ids", "mask")]
        table = helper.make_tensor("table", TensorProto.FLOAT, [7, 2], np.zeros(14))
        model = helper.make_model(helper.make_graph(nodes, "g", ports, [], [table]))
        feeds = inputs.draw(model, {"ids": (1, 64), "mask": (1, 64)}, seed=3)
        self.assertEqual((feeds["ids"].min(), feeds["ids"].max()), (0, 6))
        self.assertEqual(set(np.unique(feeds["mask"])) - {0, 1}, set())

    def test_the_same_seed_draws_the_same_and_another_seed_something_else(self):
        first, again, other = (inputs.image_like(np.random.default_rng(seed), (1, 3, 16, 16)) for seed in (0, 0, 1))
        np.testing.assert_array_equal(first, again)
        self.assertGreater(np.abs(first - other).max(), 0.1)


class Statistics(unittest.TestCase):
    def test_the_interval_holds_the_ratio_and_is_narrow_for_quiet_runs(self):
        rng = np.random.default_rng(0)
        ours = [rng.normal(9.0, 0.1, 20) for _ in range(12)]
        theirs = [rng.normal(10.0, 0.1, 20) for _ in range(12)]
        ratio, low, high = intervals.ratio_of_medians(ours, theirs)
        self.assertTrue(low <= ratio <= high and 0.88 < low and high < 0.92)

    def test_the_interval_of_a_median_is_that_of_the_sign_test(self):
        self.assertEqual(pool.order_interval(range(6)), (0, 5))  # 2/64 of all series
        self.assertEqual(pool.order_interval(range(20)), (5, 14))  # tables: ranks 6 and 15
        self.assertTrue(np.isnan(pool.order_interval([1.0] * 5)[0]))

    def test_calls_are_put_together_turn_by_turn(self):
        case = {"model": "m", "threads": 1, "contestants": [{"name": "p", "status": "ok", "turns": [2.0, 8.0, 2.0]},
                                                            {"name": "opfuse", "status": "ok", "turns": [1.0, 4.0, 1.5], "error": 0.1}]}
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(2):
                pool.add(f"{folder}/pool", case)
            rows, (ratio, low, high, peer, pairs) = pool.together(f"{folder}/pool", "m", 1)
        self.assertEqual((rows["p"]["median"], ratio, low, high, peer, pairs), (2.0, 0.5, 0.5, 0.75, "p", 6))

    def test_errors_are_relative_to_the_largest_reference_value_and_never_hide_a_nan(self):
        reference = {"y": np.array([10.0, 0.0])}
        self.assertAlmostEqual(measure.relative_error({"y": np.array([10.0, 1e-3])}, reference), 1e-4)
        self.assertEqual(measure.relative_error({"y": np.array([np.nan, 0.0])}, reference), np.inf)
        self.assertEqual(measure.relative_error({}, reference), np.inf)


class Report(unittest.TestCase):
    CASE = {"model": "m<1>", "batch": 1, "flop": 2e9, "not_counted": [], "threads": 2, "contexts": 1, "unit": "ms",
            "fma_gflops": {"fma_512": {"median": 200.0, "best": 210.0}}, "faster_peer": "ONNX Runtime",
            "reference": "ONNX Runtime", "other_input_change": 0.2, "contestants": [
                {"name": "ONNX Runtime", "version": "1", "settings": "s", "status": "ok", "reason": "", "median": 20.0,
                 "best": 19.0, "share": 0.5, "share_best": 0.52, "ratio": 1.0, "ratio_low": 1.0, "ratio_high": 1.0},
                {"name": "opfuse", "version": "", "settings": "s", "status": "not run", "reason": "it is not built"}]}

    def test_a_contestant_that_did_not_run_keeps_its_row_and_its_reason(self):
        text = report.case_table(self.CASE)
        self.assertIn("opfuse (not run)", text)
        self.assertIn("opfuse not run: it is not built", text)
        self.assertIn("FMA limit 10.00 ms", text)

    def test_the_plot_is_well_formed_and_shows_every_contestant(self):
        from xml.dom import minidom
        picture = plot.svg([self.CASE], "caption & more")
        self.assertEqual(len(minidom.parseString(picture).getElementsByTagName("rect")), 3)
        self.assertIn("not run", picture)


if __name__ == "__main__":
    unittest.main()
