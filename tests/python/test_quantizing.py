"""Quantising from Python: samples as dicts, more than once."""
import struct
import zlib

import numpy as np
import pytest

import opfuse


@pytest.fixture
def samples():
    draw = np.random.default_rng(5)
    return [{"x": draw.standard_normal((2, 16, 6, 6), dtype=np.float32)} for _ in range(4)]


def test_a_list_and_a_function_give_the_same_model(conv_file, samples):
    model = opfuse.load(conv_file)
    first = opfuse.quantize(model, samples, bias_correction=True)
    second = opfuse.quantize(model, lambda: iter(samples), opfuse.plan(model), bias_correction=True)
    assert first.model.text() == second.model.text()
    assert first.report["agreement"]["outputs"][0]["sqnr"] > 25
    got, want = (opfuse.compile(m).run(samples[0])["y"] for m in (first.model, model))
    assert 0 < np.abs(got - want).max() < 0.1 * np.abs(want).max()


def test_an_iterator_is_gone_through_once(conv_file, samples):
    """The samples to compare on are kept; one buffer may serve all samples."""
    model = opfuse.load(conv_file)
    buffer = np.empty_like(samples[0]["x"])

    def filled():
        for sample in samples:
            buffer[:] = sample["x"]
            yield {"x": buffer}

    made = opfuse.quantize(model, filled(), compare_samples=3, activations="by-sign")
    want = opfuse.quantize(model, lambda: iter(samples), compare_samples=3, activations="by-sign")
    assert made.report["activations"] == "by_sign"
    assert made.model.text() == want.model.text()
    assert made.report["agreement"] == want.report["agreement"]
    with pytest.raises(TypeError, match="more than once"):
        opfuse.quantize(model, filled(), equalize="auto")


def test_other_samples_judge_by_a_metric_of_one_s_own(conv_file, samples):
    model = opfuse.load(conv_file)
    heldout = [{"x": 1.5 * sample["x"]} for sample in samples[:2]]
    seen = []

    def score(index, outputs):
        assert set(outputs) == {"y"} and outputs["y"].shape == (2, 4, 6, 6)
        seen.append(index)
        return float(outputs["y"].mean())

    steps = []
    made = opfuse.quantize(model, samples, evaluate=heldout, metric=score, progress=lambda *step: steps.append(step))
    assert made.report["agreement"]["samples"] == 2
    assert seen == [0, 1] * 2  # both models
    assert made.report["metric"]["name"] == "score"
    assert made.report["metric"]["codes"] == pytest.approx(made.report["metric"]["float"], rel=0.05)
    assert ("calibrate", 4, 4) in steps
    assert opfuse.quantize(model, samples, evaluate=iter(heldout), metric="cosine").report["metric"]["codes"] > 0.99

    def broken(index, outputs):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError):
        opfuse.quantize(model, samples, metric=broken)


def test_max_drop_leaves_modules_in_float(conv_file, samples, tmp_path):
    model = opfuse.load(conv_file)
    made = opfuse.quantize(model, samples, metric="sqnr", max_drop="90%")
    assert [point["left"] for point in made.report["search"]["frontier"]] == [0]
    made = opfuse.quantize(model, iter(samples), metric="sqnr", max_drop=0.01)
    assert made.report["search"]["frontier"][-1]["left"] == 1 and not made.report["products"]
    for name in ("r.html", "r.json"):
        made.save_report(tmp_path / name)
    assert "<polyline" in (tmp_path / "r.html").read_text()
    with pytest.raises(opfuse.Error, match="r.txt"):
        made.save_report(tmp_path / "r.txt")
    with pytest.raises(opfuse.Error, match="needs --metric"):
        opfuse.quantize(model, samples, max_drop="1%")


def test_to_converts(tmp_path):
    onnx = pytest.importorskip("onnx")
    helper, draw = onnx.helper, np.random.default_rng(2)
    weights = onnx.numpy_helper.from_array(draw.standard_normal((64, 96), np.float32), "w")
    value = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"], name="product")], "g", [value("x", 1, [4, 64])], [value("y", 1, [4, 96])], [weights])
    model = opfuse.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    rows = [{"x": draw.standard_normal((4, 64), np.float32)} for _ in range(4)]
    for to, least in (("f16", 50), ("bf16", 35), ("int8-weights", 35), ("int4-weights", 12)):
        made = opfuse.quantize(model, rows, to=to)
        assert made.report["to"] == to and made.report["agreement"]["outputs"][0]["sqnr"] > least
        alone = opfuse.quantize(model, to=to, evaluate=rows[:2])
        assert alone.report["agreement"]["samples"] == 2
        alone.save(tmp_path / "m.onnx")
    assert opfuse.quantize(model, to="int8-weights", block=16).report["block"] == 16
    with pytest.raises(TypeError, match="samples are needed"):
        opfuse.quantize(model)
    with pytest.raises(opfuse.Error, match="method does not apply"):
        opfuse.quantize(model, rows, to="f16", method="minmax")
    with pytest.raises(opfuse.Error, match="int3"):
        opfuse.quantize(model, to="int3-weights")


def test_errors_pass_through(conv_file, samples):
    model = opfuse.load(conv_file)
    with pytest.raises(opfuse.Error, match="no array for the input 'x'"):
        opfuse.quantize(model, [{"z": samples[0]["x"]}])
    with pytest.raises(opfuse.Error, match="NaN"):
        opfuse.quantize(model, [{"x": samples[0]["x"] * np.nan}])

    def broken():
        raise KeyError("mine")

    with pytest.raises(KeyError):
        opfuse.quantize(model, broken)


def test_what_is_of_another_type_is_told(conv_file, samples):
    model = opfuse.load(conv_file)
    with pytest.raises(TypeError, match="not str: opfuse.load"):
        opfuse.quantize(str(conv_file), samples)
    with pytest.raises(TypeError, match="a list is needed, not 'Conv'"):
        opfuse.quantize(model, samples, skip="Conv")
    with pytest.raises(TypeError, match="metric of sample 0 is not a number: 'good'"):
        opfuse.quantize(model, samples, metric=lambda number, outputs: "good")
    for given in ([samples[0]["x"]], iter([samples[0]["x"]])):
        with pytest.raises(TypeError, match="sample 0 is not a dict"):
            opfuse.quantize(model, given)


def test_samples_may_come_one_after_another(conv_file, samples):
    """Read from wherever they are, as often as it takes; nothing is kept."""
    reads = []

    def one_after_another():
        for index in range(len(samples)):
            reads.append(index)
            yield {"x": samples[index]["x"].astype(np.float64).astype(np.float32)}

    made = opfuse.quantize(opfuse.load(conv_file), one_after_another)
    assert made.report["calibrated_with"] == 4
    assert reads == list(range(4)) * 2  # calibration, comparison


def test_files_are_samples(conv_file, samples, tmp_path):
    model = opfuse.load(conv_file)
    for index, sample in enumerate(samples):
        np.savez(tmp_path / f"{index}.npz", **sample)
    from_files = opfuse.quantize(model, tmp_path)
    assert from_files.model.text() == opfuse.quantize(model, samples).model.text()
    assert from_files.report["calibrated_with"] == 8  # a file holds two samples
    assert opfuse.quantize(model, tmp_path, opfuse.plan(model), most=2).report["calibrated_with"] == 2
    (tmp_path / "2.npz").write_bytes(b"PK")
    with pytest.raises(opfuse.Error, match="2.npz"):
        opfuse.quantize(model, tmp_path)
    with pytest.raises(opfuse.Error, match="nowhere"):
        opfuse.quantize(model, tmp_path / "nowhere")
    with pytest.raises(TypeError, match="path"):
        opfuse.quantize(model, samples, most=2)
    with pytest.raises(TypeError, match="'meen'"):
        opfuse.quantize(model, tmp_path, images={"meen": 0})
    with pytest.raises(opfuse.Error, match="window-sums"):
        opfuse.quantize(model, samples, weight_rounding="up")


def test_pictures_are_normalised(tmp_path):
    """16 x 16, one colour each."""
    onnx = pytest.importorskip("onnx")
    draw = np.random.default_rng(1)
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    weights = [numpy_helper.from_array(draw.standard_normal(shape, np.float32), name) for shape, name in (((16, 3, 3, 3), "w"), ((16,), "b"))]
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["y"])], "colours",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 3, "h", "w_"])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 16, "h", "w_"])], weights)
    folder = tmp_path / "pictures"
    folder.mkdir()
    for index in range(3):
        rows = b"".join(b"\0" + draw.integers(0, 256, 48, np.uint8).tobytes() for _ in range(16))

        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        (folder / f"{index}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 2, 0, 0, 0))
                                              + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    model = opfuse.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    made = opfuse.quantize(model, folder, min_linear=0, keep_float=[],
                           images={"mean": [0.5, 0.5, 0.5], "std": 0.25, "size": (8, 8), "fit": "crop", "channels": "bgr"})
    low, high = made.report["tensors"][0]["range"]
    assert -2 <= low < -0.5 and 0.5 < high <= 2
    with pytest.raises(opfuse.Error, match="channels of pictures are rgb or bgr"):
        opfuse.quantize(model, folder, images={"channels": "gbr"})


def test_bad_samples_are_named(conv_file, samples):
    model = opfuse.load(conv_file)
    with pytest.raises(opfuse.Error, match="no sample"):
        opfuse.quantize(model, [])
    with pytest.raises(opfuse.Error, match="does not read"):
        opfuse.quantize(model, [{**samples[0], "z": samples[0]["x"]}])
    with pytest.raises(opfuse.Error, match="x"):
        opfuse.quantize(model, [{"x": samples[0]["x"][:, :3]}])
    with pytest.raises(opfuse.Error, match="u8, s8 or by-sign"):
        opfuse.quantize(model, samples, activations="signs")
    with pytest.raises(opfuse.Error, match="not a method"):
        opfuse.quantize(model, samples, method="best")
    with pytest.raises(TypeError, match="torch"):
        opfuse.quantize(model, samples, example=samples[0]["x"])


def test_a_torch_module_is_exported_on_the_way():
    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(16, 8, 3, padding=1)).eval()
    example = torch.randn(1, 3, 12, 12)
    model = opfuse.fuse(module, example).model
    name = model.inputs()[0].name
    samples = [{name: torch.randn(1, 3, 12, 12).numpy()} for _ in range(4)]
    made = opfuse.quantize(module, samples, example=example, bias_correction=True)
    assert len(made.report["products"]) == 2
    with torch.no_grad():
        want = module(torch.from_numpy(samples[0][name])).numpy()
    got = next(iter(opfuse.compile(made.model).run(samples[0]).values()))
    assert 0 < np.abs(got - want).max() < 0.1 * np.abs(want).max()
