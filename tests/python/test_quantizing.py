"""Quantising from Python: samples as dicts, more than once."""
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


def test_what_cannot_be_gone_through_again_is_refused(conv_file, samples):
    with pytest.raises(TypeError, match="more than once"):
        opfuse.quantize(opfuse.load(conv_file), iter(samples))


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
