"""Arrays in and out, contexts, threads."""
import asyncio
import sys
import threading
import time
import types

import numpy as np
import onnx.reference
import pytest

import opfuse
from conftest import save_model
from opfuse._notebook import plan_table


class OnlyDlpack:
    """An array of another library: nothing but the DLPack protocol."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def refused(call, *arguments, **options):
    with pytest.raises(opfuse.Error) as caught:
        call(*arguments, **options)
    assert caught.value.code == "E0602"
    return caught.value


def test_values_are_the_reference_s(conv_file):
    x = np.random.default_rng(2).standard_normal((2, 16, 6, 6), dtype=np.float32)
    [want] = onnx.reference.ReferenceEvaluator(str(conv_file)).run(None, {"x": x})
    got = opfuse.compile(opfuse.load(conv_file)).run({"x": x})["y"]
    assert got.shape == want.shape and got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * np.abs(want).max())


def test_fused_and_unfused_agree(resnet, resnet_exe, image):
    unfused = opfuse.compile(resnet, fused=False).run({"input": image})["output"]
    fused = resnet_exe.run({"input": image})["output"]
    assert np.abs(fused - unfused).max() <= 2e-5 * np.abs(unfused).max()


def test_fixed_inputs_fold_and_are_held_to(tmp_path):
    file = save_model(tmp_path / "m.onnx", [onnx.helper.make_node("Reshape", ["x", "shape"], ["y"], name="rows")],
                      {"x": (onnx.TensorProto.FLOAT, [2, 6]), "shape": (onnx.TensorProto.INT64, [2])},
                      {"y": (onnx.TensorProto.FLOAT, ["rows", "columns"])})
    x, shape = np.arange(12, dtype=np.float32).reshape(2, 6), np.array([3, 4])
    for exe in (opfuse.compile(opfuse.load(file, fixed_inputs={"shape": shape})),
                opfuse.compile(opfuse.load(file), fixed_inputs={"shape": shape})):
        assert exe.outputs()[0].shape == (3, 4)
        np.testing.assert_array_equal(exe.run({"x": x})["y"], x.reshape(3, 4))
        np.testing.assert_array_equal(exe.run({"x": x, "shape": shape})["y"], x.reshape(3, 4))
        refused(exe.run, {"x": x, "shape": np.array([4, 3])})


def test_chains_are_launches_of_two_unless_switched_off():
    model = opfuse.Model.zoo("mobilenet_v2")
    x = np.random.default_rng(3).random((1, 3, 224, 224), dtype=np.float32)
    together, apart, without = (opfuse.compile(model, exact=True, **options)
                                for options in ({}, {"chains": False}, {"no_pass": ["join-chains"]}))

    def chained(exe):
        context = exe.create_context()
        context.bind("input", x)
        return [launch.name for launch in context.launches() if "+Fused" in launch.name]

    assert chained(together) and not chained(apart) and not chained(without)
    first, second = (exe.run({"input": x})["output"] for exe in (together, apart))
    assert np.abs(first - second).max() <= 2e-5 * np.abs(second).max()


def test_each_element_type_keeps_its_own(typed_file):
    exe = opfuse.compile(opfuse.load(typed_file))
    rows = np.array([4, 0, 2])
    out = exe.run({"rows": rows, "level": np.float32(0.2).reshape(())})
    table = np.linspace(-1, 1, 20, dtype=np.float32).reshape(5, 4)[rows]
    assert out["values"].dtype == np.float32 and out["above"].dtype == np.bool_
    np.testing.assert_array_equal(out["values"], np.maximum(table, 0))
    np.testing.assert_array_equal(out["above"], table > np.float32(0.2))


def test_open_dimensions_take_their_value_from_each_run(conv_file):
    exe = opfuse.compile(opfuse.load(conv_file))
    for batch in (1, 3, 0, 2):
        assert exe.run({"x": np.ones((batch, 16, 6, 6), np.float32)})["y"].shape == (batch, 4, 6, 6)
    fixed = opfuse.compile(opfuse.load(conv_file), dims={"n": 2})
    assert fixed.inputs()[0].shape == (2, 16, 6, 6)
    refused(fixed.run, {"x": np.ones((3, 16, 6, 6), np.float32)})


def test_variants_run_where_their_sizes_fit(conv_file):
    model = opfuse.load(conv_file)
    exe = opfuse.compile(model, specialize=[{"n": 1}, {"n": 2}])
    assert exe.variants() == [{"n": 1}, {"n": 2}]
    general = opfuse.compile(model)
    assert general.variants() == []
    for batch in (1, 2, 3, 17):
        x = np.random.default_rng(batch).standard_normal((batch, 16, 6, 6), np.float32)
        context = exe.create_context(threads=1)
        context.bind("x", x)
        assert context.variant() == ({"n": batch} if batch <= 2 else {})
        np.testing.assert_allclose(exe.run({"x": x})["y"], general.run({"x": x})["y"], rtol=1e-5, atol=1e-5)
    with pytest.raises(opfuse.Error) as caught:
        opfuse.compile(model, specialize=[{"m": 1}])
    assert caught.value.name == "unknown_name"


def test_results_belong_to_the_caller(resnet_exe, image):
    first = resnet_exe.run({"input": image})["output"]
    kept = first.copy()
    resnet_exe.run({"input": 1 - image})
    np.testing.assert_array_equal(first, kept)
    assert first.flags.writeable and first.ctypes.data % 64 == 0


def test_out_is_written_in_place(resnet_exe, image):
    out = np.full((1, 1000), np.nan, np.float32)
    result = resnet_exe.run({"input": image}, out={"output": out})["output"]
    assert result is out and np.isfinite(out).all()
    refused(resnet_exe.run, {"input": image}, out={"scores": out})
    out.flags.writeable = False
    assert "read-only" in refused(resnet_exe.run, {"input": image}, out={"output": out}).message


def test_inputs_are_read_where_they_are(resnet_exe, image):
    context = resnet_exe.create_context()
    array = np.zeros_like(image)
    context.bind("input", array)
    context.run()
    zeros = context.output("output").copy()
    array[...] = image  # no bind in between: the context reads this memory
    context.run()
    assert not np.array_equal(context.output("output"), zeros)
    np.testing.assert_array_equal(context.output("output"), resnet_exe.run({"input": image})["output"])


def test_bound_arrays_stay_alive(resnet_exe, image):
    context = resnet_exe.create_context()
    array = image.copy()
    before = sys.getrefcount(array)
    context.bind("input", array)
    assert sys.getrefcount(array) > before
    del array
    context.run()
    np.testing.assert_array_equal(context.output("output"), resnet_exe.run({"input": image})["output"])


def test_a_bound_output_is_given_back_itself(resnet_exe, image):
    context, out = resnet_exe.create_context(), np.empty((1, 1000), np.float32)
    context.bind("input", image)
    context.bind("output", out)
    context.run()
    assert context.output("output") is out
    refused(context.output, "scores")


def test_anything_with_dlpack_is_an_array(resnet_exe, image):
    want = resnet_exe.run({"input": image})["output"]
    np.testing.assert_array_equal(resnet_exe.run({"input": OnlyDlpack(image)})["output"], want)
    out = np.empty((1, 1000), np.float32)
    resnet_exe.run({"input": memoryview(image)}, out={"output": OnlyDlpack(out)})
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(np.from_dlpack(resnet_exe.run({"input": image})["output"]), want)


def test_read_only_inputs_are_fine(resnet_exe, image):
    want = resnet_exe.run({"input": image})["output"]
    image.flags.writeable = False
    np.testing.assert_array_equal(resnet_exe.run({"input": image})["output"], want)


def test_nothing_is_converted_behind_one_s_back(resnet_exe, image):
    assert "float32" in refused(resnet_exe.run, {"input": image.astype("f8")}).message.replace("f32", "float32")
    assert "ascontiguousarray" in refused(resnet_exe.run, {"input": image.transpose(0, 1, 3, 2)}).hint
    assert "asarray" in refused(resnet_exe.run, {"input": image.tolist()}).hint
    refused(resnet_exe.run, {"input": image[0]})
    refused(resnet_exe.run, {"input": image.astype("c8")})


def test_missing_and_unknown_names_are_errors(resnet_exe, image):
    assert "inputs: input" in refused(resnet_exe.run, {}).hint
    refused(resnet_exe.run, {"input": image, "mask": image})
    resnet_exe.run({"input": image})  # and it still runs


def test_an_opf_runs_again(resnet_exe, image, tmp_path):
    resnet_exe.save(tmp_path / "net.opf")
    again = opfuse.Executable.load(tmp_path / "net.opf")
    np.testing.assert_array_equal(again.run({"input": image})["output"], resnet_exe.run({"input": image})["output"])


def test_a_context_measures(resnet_exe, image):
    context = resnet_exe.create_context(threads=1, profile=True)
    context.bind("input", image)
    context.run()
    assert context.threads == 1 and context.arena_bytes > 0
    assert len(context.launches()) == len(context.launch_nanoseconds()) > 0
    assert sum(context.launch_nanoseconds()) <= context.total_nanoseconds
    assert any(launch.pattern == "ConvBNAddReLU" for launch in context.launches())


def test_threads_run_one_executable_at_once(resnet_exe, image):
    want = resnet_exe.run({"input": image})["output"]
    wrong = []

    def work():
        for _ in range(5):
            if not np.array_equal(resnet_exe.run({"input": image})["output"], want):
                wrong.append(threading.get_ident())
    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def counted_while(work):
    """How often another thread came to run while `work` did, and the seconds it took."""
    count, stop = 0, threading.Event()

    def tick():
        nonlocal count
        while not stop.is_set():
            count += 1
            time.sleep(0.001)
    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    stop.set()
    thread.join()
    return count, seconds


def test_the_interpreter_is_free_while_opfuse_compiles(resnet):
    count, seconds = counted_while(lambda: opfuse.compile(resnet, cache=False))
    assert seconds > 0.2 and count > 20 * seconds  # with the lock held it would be once or twice


def test_the_interpreter_is_free_while_a_model_runs(resnet_exe, image):
    context = resnet_exe.create_context(threads=1)
    context.bind("input", np.repeat(image, 1, axis=0))

    def one_long_call():
        deadline = time.perf_counter() + 0.5
        while time.perf_counter() < deadline:
            context.run()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)  # nobody is made to give the lock up: the other thread runs only if run() lets it go
    try:
        count, seconds = counted_while(one_long_call)
    finally:
        sys.setswitchinterval(interval)
    assert count > 20 * seconds


def test_a_context_in_use_by_another_thread_is_an_error(resnet_exe, image):
    context = resnet_exe.create_context(threads=1)
    context.bind("input", image)
    errors, stop = [], threading.Event()

    def work():
        while not stop.is_set():
            try:
                context.run()
            except opfuse.Error as error:
                errors.append(error)
    threads = [threading.Thread(target=work) for _ in range(2)]
    [t.start() for t in threads]
    deadline = time.perf_counter() + 10
    while not errors and time.perf_counter() < deadline:
        time.sleep(0.01)
    stop.set()
    [t.join() for t in threads]
    assert errors and "another thread" in errors[0].message
    context.run()


def test_runs_in_other_threads_give_the_same(conv_file):
    exe = opfuse.compile(opfuse.load(conv_file))
    arrays = [np.random.default_rng(seed).standard_normal((2, 16, 6, 6), dtype=np.float32) for seed in range(4)]
    want = [exe.run({"x": x})["y"] for x in arrays]
    futures = [exe.submit({"x": x}) for x in arrays]
    for future, y in zip(futures, want):
        np.testing.assert_array_equal(future.result()["y"], y)

    async def gathered():
        return await asyncio.gather(*(exe.run_async({"x": x}) for x in arrays))

    for result, y in zip(asyncio.run(gathered()), want):
        np.testing.assert_array_equal(result["y"], y)
    mine = np.empty_like(want[0])
    assert exe.submit({"x": arrays[0]}, {"y": mine}).result()["y"] is mine
    with pytest.raises(opfuse.Error):
        exe.submit({}).result()


def test_a_profile_prints_and_shows_as_a_table(conv_file):
    exe = opfuse.compile(opfuse.load(conv_file))
    profile = exe.profile({"x": np.zeros((2, 16, 6, 6), np.float32)}, runs=3, threads=1)
    assert profile.runs == 3 and profile.threads == 1 and profile.launches and profile.milliseconds > 0
    assert all(launch.microseconds > 0 and launch.sources for launch in profile.launches)
    assert profile.launches[0].name in str(profile)
    page = profile._repr_html_()
    assert page.count("<tr>") == 1 + len(profile.launches) and profile.launches[0].name in page
    with pytest.raises(ValueError):
        exe.profile({"x": np.zeros((2, 16, 6, 6), np.float32)}, runs=0)
    refused(exe.profile, {})


def test_plans_show_as_a_table():
    model = opfuse.Model.zoo("resnet18")
    fused = opfuse.fuse(model)
    page = fused._repr_html_()
    assert page == fused.plan._repr_html_() and "FusedConvBNAddReLU" in page

    class Missing(list):
        def missed(self):
            return [types.SimpleNamespace(rule="ConvBN", anchor="a<b>", reason="shared", bytes_saved=2e6)] * 12

    page = plan_table(Missing())
    assert "not fused: 10 of 12" in page and "a&lt;b&gt;" in page and "<b>" not in page


def test_compiling_tells_how_far_it_is(conv_file):
    told = []
    opfuse.compile(opfuse.load(conv_file), progress=lambda *step: told.append(step))
    assert told and all(isinstance(name, str) and done <= max(total, done) for name, done, total in told)

    def stop(*step):
        raise KeyError("enough")

    with pytest.raises(KeyError):
        opfuse.compile(opfuse.load(conv_file), progress=stop)
