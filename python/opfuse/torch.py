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
    return _core.load_bytes(program.model_proto.SerializeToString(), {}, {}, "")


def backend(graph: torch.fx.GraphModule, example_inputs: Sequence[typing.Any]) -> Callable[..., typing.Any]:
    """torch.compile(module, backend="opfuse"), for inference: call it under torch.no_grad().

    Each set of input shapes is compiled when it is first seen. Parameters and buffers are packed into the program; where
    one was changed in place since, it is compiled again.
    """
    return _Compiled(graph)


class _Program:
    """The graph compiled for some shapes."""

    def __init__(self, graph: torch.fx.GraphModule, arguments: Sequence[typing.Any]) -> None:
        places = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self.moving = [i for i, (node, value) in enumerate(zip(places, arguments)) if isinstance(value, torch.Tensor) and not _is_weight(node, value)]
        frozen = {i: value for i, value in enumerate(arguments) if i not in self.moving}
        self.weights = [value for value in frozen.values() if isinstance(value, torch.Tensor)]
        self.versions = [weight._version for weight in self.weights]
        model = model_of(_Closed(graph, frozen, len(arguments)), [arguments[i] for i in self.moving])
        self.exe: Executable = _core.compile(model, _core.Target.host(), _core.CompileOptions())
        self.inputs = [info.name for info in self.exe.inputs()]
        self.outputs = [(info.name, [int(size) for size in info.shape], getattr(torch, info.dtype)) for info in self.exe.outputs()]
        if len(self.inputs) != len(self.moving):
            raise RuntimeError(f"the exported model has {len(self.inputs)} inputs, the graph {len(self.moving)}")

    def current(self) -> bool:
        return all(weight._version == version for weight, version in zip(self.weights, self.versions))

    def __call__(self, arguments: Sequence[typing.Any]) -> list[torch.Tensor]:
        arrays = {name: arguments[i].detach().contiguous() for name, i in zip(self.inputs, self.moving)}
        results = {name: torch.empty(shape, dtype=dtype) for name, shape, dtype in self.outputs}
        self.exe.run(arrays, results)
        return list(results.values())


class _Compiled:
    """What torch calls: one program for each set of shapes."""

    def __init__(self, graph: torch.fx.GraphModule) -> None:
        self.graph = graph
        self.programs: dict[tuple[typing.Any, ...], _Program] = {}
        (output,) = [node for node in graph.graph.nodes if node.op == "output"]
        self.results = output.args[0]

    def __call__(self, *arguments: typing.Any) -> typing.Any:
        if torch.is_grad_enabled() and any(isinstance(a, torch.Tensor) and a.requires_grad for a in arguments):
            raise RuntimeError("opfuse compiles inference only: call the module under torch.no_grad() or torch.inference_mode()")
        if any(isinstance(a, torch.Tensor) and a.device.type != "cpu" for a in arguments):
            raise RuntimeError("the opfuse backend runs on the CPU: move module and inputs there")
        key = tuple((tuple(a.shape), a.dtype) if isinstance(a, torch.Tensor) else a for a in arguments)
        program = self.programs.get(key)
        if program is None or not program.current():
            program = self.programs[key] = _Program(self.graph, arguments)
        computed = iter(program(arguments))
        results = self.results if isinstance(self.results, (tuple, list)) else [self.results]
        return tuple(next(computed) if isinstance(result, torch.fx.Node) else result for result in results)


class _Closed(torch.nn.Module):
    """The graph with all but the moving inputs given."""

    def __init__(self, graph: torch.fx.GraphModule, frozen: dict[int, typing.Any], count: int) -> None:
        super().__init__()
        self.graph, self.frozen, self.count = graph, frozen, count
        for i, value in frozen.items():
            if isinstance(value, torch.Tensor):
                self.register_buffer(f"frozen_{i}", value.detach())

    def forward(self, *moving: torch.Tensor) -> typing.Any:
        rest = iter(moving)
        arguments = [next(rest) if i not in self.frozen else getattr(self, f"frozen_{i}", self.frozen[i]) for i in range(self.count)]
        results = self.graph(*arguments)
        return tuple(r for r in results if isinstance(r, torch.Tensor)) if isinstance(results, (tuple, list)) else results


def _is_weight(node: torch.fx.Node, value: torch.Tensor) -> bool:
    """Dynamo hands over parameters and buffers of the module as inputs."""
    return isinstance(value, torch.nn.Parameter) or "_parameters_" in node.name or "_buffers_" in node.name
