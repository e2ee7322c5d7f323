"""Arrays of GPUs, on the emulated device: bound where they are, results that stay there, streams."""
import threading

import numpy as np
import pytest

import opfuse
import opfuse._device
from test_running import refused


class OfAnotherLibrary:
    """What a torch or cupy array looks like: the DLPack protocol, and the stream that was told to wait."""

    def __init__(self, array):
        self.array, self.streams = array, []

    def __dlpack__(self, *, stream=None, **options):
        self.streams.append(stream)
        return self.array.__dlpack__(stream=stream, **options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.fixture(scope="module")
def exe():
    net = opfuse.Network("twice")
    x = net.input("x", ["n", 8])
    net.output("y", net.op("add", x, x))
    return opfuse.compile(net.model(), "cuda:emulated")


X = np.arange(32, dtype=np.float32).reshape(4, 8)


def test_arrays_of_the_host_go_there_and_back(exe):
    np.testing.assert_array_equal(exe.run({"x": X})["y"], 2 * X)


def test_results_lie_where_inputs_do(exe):
    first = exe.run({"x": exe.to_device(X)})["y"]
    assert isinstance(first, opfuse.DeviceArray)
    assert (first.shape, first.dtype, first.device, first.__dlpack_device__()) == ((4, 8), "float32", 0, (2, 0))
    assert repr(first) == "<opfuse.DeviceArray float32[4, 8] on device 0>"
    second = exe.run({"x": first})["y"]
    np.testing.assert_array_equal(second.numpy(), 4 * X)
    np.testing.assert_array_equal(first.numpy(), 2 * X)


def test_arrays_of_other_libraries_are_taken_where_they_are(exe):
    x, y = OfAnotherLibrary(exe.to_device(X)), OfAnotherLibrary(exe.to_device(np.zeros_like(X)))
    results = exe.run({"x": x}, {"y": y})
    assert results["y"] is y
    np.testing.assert_array_equal(y.array.numpy(), 2 * X)
    assert x.streams == [1] and y.streams == [1], "the default stream waits for their producers"


def test_runs_on_a_stream_of_the_caller(exe):
    class Stream:
        cuda_stream = 0  # torch's default stream

    x = OfAnotherLibrary(exe.to_device(X))
    y = exe.run({"x": x}, stream=Stream())["y"]
    np.testing.assert_array_equal(y.numpy(), 2 * X)  # reads in the default stream's order
    assert x.streams == [1]
    np.testing.assert_array_equal(exe.run({"x": x}, stream=0)["y"].numpy(), 2 * X)
    assert "neither a handle" in refused(exe.run, {"x": x}, stream="fast").message
    assert "host's memory" in refused(exe.run, {"x": X}, stream=0).message
    assert "none of the driver's" in refused(exe.run, {"x": x}, stream=12345).message


def test_another_device(exe):
    y = exe.run({"x": exe.to_device(X, device=1)})["y"]
    assert y.device == 1
    np.testing.assert_array_equal(y.numpy(), 2 * X)
    context = exe.create_context(device=0)
    error = refused(context.bind, "x", exe.to_device(X, device=1))
    assert "lies on device 1" in error.message and "device=" in error.hint
    with pytest.raises(opfuse.Error) as caught:
        exe.create_context(device=7)
    assert caught.value.name == "no_device"


def test_contexts_keep_results_there_on_request(exe):
    context = exe.create_context(device_results=True)
    assert context.device == 0
    context.bind("x", X)
    context.run()
    y = context.output("y")
    np.testing.assert_array_equal(y.numpy(), 2 * X)
    context.bind("x", exe.to_device(3 * X))
    context.run(stream=0)
    assert context.output("y") is y, "an array of the context's own is written again"
    np.testing.assert_array_equal(y.numpy(), 6 * X)


def test_what_cannot_be_used_is_refused(exe):
    x = exe.to_device(X)
    assert "lies on a GPU" in refused(opfuse.Network("host").constant, x).message
    refused(x.write, X[:2])
    x.write(X + 1)
    np.testing.assert_array_equal(x.numpy(), X + 1)

    class Refusing(OfAnotherLibrary):
        def __dlpack__(self, **options):
            raise BufferError("Can't export tensors that require gradient")

    error = refused(exe.run, {"x": Refusing(x)})
    assert "require gradient" in error.message and "detach" in error.hint


def test_threads_share_an_executable(exe):
    failures = []

    def work(first):
        for i in range(5):
            x = X + first + i
            if not np.array_equal(exe.run({"x": exe.to_device(x)})["y"].numpy(), 2 * x):
                failures.append(first)

    threads = [threading.Thread(target=work, args=(100 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_results_are_torch_s_where_inputs_are(monkeypatch):
    """Without a GPU: what is asked of torch."""
    import sys
    import types

    class Tensor:
        pass

    made = []
    torch = types.SimpleNamespace(Tensor=Tensor, float16="half", empty=lambda shape, dtype, device: made.append((shape, dtype, device)) or Tensor())
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert isinstance(opfuse._device.like(Tensor(), [2, 3], "float16", 1), Tensor)
    assert made == [([2, 3], "half", "cuda:1")]
    assert opfuse._device.like(object(), [2], "float32", 0) is None
