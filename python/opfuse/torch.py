"""PyTorch: torch.compile(backend="opfuse"), opfuse.fuse(module, example), opfuse.transform(module, example).

Needs torch and, for the first two, the exporter's onnx and onnxscript.
"""
from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Sequence

import torch

from . import _core
from ._core import Executable, Model
from ._torch_transform import Transformed, transform

__all__ = ["Transformed", "backend", "model_of", "transform"]


def model_of(module: torch.nn.Module, example: typing.Any) -> Model:
    """The module as torch exports it for these inputs, in eval mode, not optimised: fusing is opfuse's."""
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"a Model or a torch.nn.Module is needed, not {type(module).__name__}")
    if example is None:
        raise TypeError("a torch module needs an example of its inputs: opfuse.fuse(module, torch.randn(1, 3, 224, 224))")
    inputs = tuple(example) if isinstance(example, (tuple, list)) else (example,)
    training = module.training
    module.eval()
    try:
        with torch.no_grad():
            program = torch.onnx.export(module, inputs, dynamo=True, optimize=False, verbose=False)
    finally:
        module.train(training)
    assert program is not None
    proto = program.model_proto
    seen: set[str] = set()
    for i, output in enumerate(proto.graph.output):  # one value returned twice, which ONNX does not have
        if output.name in seen:
            proto.graph.node.add(op_type="Identity", input=[output.name], output=[f"{output.name} again {i}"])
            output.name = f"{output.name} again {i}"
        seen.add(output.name)
    return _core.load_bytes(proto.SerializeToString(), {}, {}, "", [])


def backend(graph: torch.fx.GraphModule, example_inputs: Sequence[typing.Any]) -> Callable[..., typing.Any]:
    """torch.compile(module, backend="opfuse"), for inference: call it under torch.no_grad().

    Each set of input shapes is compiled when it is first seen. Parameters and buffers are packed into the program; where
    one was changed since, it is compiled again. Inputs and buffers that the module writes to are written.
    """
    return _Compiled(graph)


class _Program:
    """The graph compiled for some shapes, some values of what is no tensor, and some weights."""

    def __init__(self, graph: torch.fx.GraphModule, moving: list[int], arguments: Sequence[typing.Any]) -> None:
        self.weights = [value for i, value in enumerate(arguments) if i not in moving and isinstance(value, torch.Tensor)]
        self.states = [_state(weight) for weight in self.weights]
        self.results, self.written = _eager(graph, arguments)
        self.moving = sorted({*moving, *self.written})
        closed = _Closed(graph, arguments, self.moving, self.written)
        model = model_of(closed, [arguments[i] for i in self.moving])
        self.exe: Executable = _core.compile(model, _core.Target.host(), _core.CompileOptions())
        self.inputs = [info.name for info in self.exe.inputs()]
        self.outputs = [(info.name, [int(size) for size in info.shape], getattr(torch, info.dtype)) for info in self.exe.outputs()]
        if len(self.inputs) != len(self.moving):
            raise RuntimeError(f"the exported model has {len(self.inputs)} inputs, the graph {len(self.moving)}")

    def current(self) -> bool:
        return all(_state(weight) == state for weight, state in zip(self.weights, self.states))

    def __call__(self, arguments: Sequence[typing.Any]) -> tuple[typing.Any, ...]:
        arrays = {name: arguments[i].detach().contiguous() for name, i in zip(self.inputs, self.moving)}
        computed = {name: torch.empty(shape, dtype=dtype) for name, shape, dtype in self.outputs}
        self.exe.run(arrays, computed)
        values = iter(computed.values())
        results = tuple(next(values) if result is _COMPUTED else result for result in self.results)
        for i in self.written:
            arguments[i].copy_(next(values))
        return results


class _Compiled:
    """What torch calls. Modules of one class share it, so weights are told apart by identity."""

    def __init__(self, graph: torch.fx.GraphModule) -> None:
        self.graph = graph
        self.places = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self.programs: dict[tuple[typing.Any, ...], _Program] = {}

    def __call__(self, *arguments: typing.Any) -> typing.Any:
        if torch.is_grad_enabled() and any(isinstance(a, torch.Tensor) and a.requires_grad for a in arguments):
            raise RuntimeError("opfuse compiles inference only: call the module under torch.no_grad() or torch.inference_mode()")
        if any(isinstance(a, torch.Tensor) and a.device.type != "cpu" for a in arguments):
            raise RuntimeError("the opfuse backend runs on the CPU: move module and inputs there")
        moving = [i for i, (node, value) in enumerate(zip(self.places, arguments)) if isinstance(value, torch.Tensor) and not _is_weight(node, value)]
        key = tuple((tuple(a.shape), a.dtype) if i in moving else id(a) if isinstance(a, torch.Tensor) else (type(a), a) for i, a in enumerate(arguments))
        program = self.programs.get(key)
        if program is None or not program.current():
            program = self.programs[key] = _Program(self.graph, moving, arguments)
        return program(arguments)


_COMPUTED = object()  # stands for a tensor among results


def _eager(graph: torch.fx.GraphModule, arguments: Sequence[typing.Any]) -> tuple[list[typing.Any], list[int]]:
    """Runs the graph once: its results, those that are no tensors by value, and the arguments that it writes to."""
    with torch.inference_mode(False), torch.no_grad():
        copies = [value.detach().clone() if isinstance(value, torch.Tensor) else value for value in arguments]
        before = [value._version if isinstance(value, torch.Tensor) else 0 for value in copies]
        results = graph(*copies)
        written = [i for i, value in enumerate(copies) if isinstance(value, torch.Tensor) and value._version != before[i]]
    listed = results if isinstance(results, (tuple, list)) else [results]
    return [_COMPUTED if isinstance(result, torch.Tensor) else result for result in listed], written


def _state(weight: torch.Tensor) -> tuple[int, int]:
    """Changes where the weight does: in place, or by other memory."""
    return weight.data_ptr(), -1 if weight.is_inference() else weight._version


class _Closed(torch.nn.Module):
    """The graph with all but the moving inputs given. Returns its tensors, then the inputs that it has written to."""

    def __init__(self, graph: torch.fx.GraphModule, arguments: Sequence[typing.Any], moving: list[int], written: list[int]) -> None:
        super().__init__()
        self.graph, self.count, self.moving, self.written = graph, len(arguments), moving, written
        self.frozen = {i: value for i, value in enumerate(arguments) if i not in moving}
        for i, value in self.frozen.items():
            if isinstance(value, torch.Tensor):
                self.register_buffer(f"frozen_{i}", value.detach())

    def forward(self, *moving: torch.Tensor) -> typing.Any:
        given = dict(zip(self.moving, moving)) | {i: moving[self.moving.index(i)].clone() for i in self.written}
        arguments = [given[i] if i in given else getattr(self, f"frozen_{i}", self.frozen[i]) for i in range(self.count)]
        results = self.graph(*arguments)
        listed = results if isinstance(results, (tuple, list)) else [results]
        return (*[r for r in listed if isinstance(r, torch.Tensor)], *[arguments[i] for i in self.written])


def _is_weight(node: torch.fx.Node, value: torch.Tensor) -> bool:
    """Dynamo hands over parameters and buffers of the module as inputs."""
    return isinstance(value, torch.nn.Parameter) or "_parameters_" in node.name or "_buffers_" in node.name
