"""opfuse.transform: a torch module whose fused groups are children that wrap the original submodules.

The module is traced, written down as an opfuse.Network under the names of the traced nodes (_torch_network.py) and planned;
each group of a named pattern becomes a child. The result is run beside the original before it is returned: same bits, or an error.
"""
from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Iterator

import torch
import torch.fx
from torch.fx.passes.shape_prop import ShapeProp
from torch.fx.passes.utils.fuser_utils import fuse_by_partitions

from ._core import Plan
from ._torch_network import network_of


@dataclasses.dataclass(frozen=True)
class Transformed:
    """A module with fused children, and the plan behind it."""

    model: torch.nn.Module  #: computes what the original computes, bit for bit, in eager mode
    plan: Plan
    shapes: list[list[int]]  #: of the inputs that it was planned and checked with; it runs with others too

    def modules(self) -> dict[str, int]:
        """Children by class: {"FusedConvBNReLU": 32, ...}"""
        counts: dict[str, int] = {}
        for child in self.model.children():
            name = type(child).__name__
            if name.startswith("Fused"):
                counts[name] = counts.get(name, 0) + 1
        return counts


def transform(module: torch.nn.Module, example: typing.Any = None, patterns: Iterable[typing.Any] | None = None) -> Transformed:
    """The module, in eval mode, with its fused groups as children. Without an example of its inputs, usual sizes are tried."""
    import opfuse
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"opfuse.transform takes a torch.nn.Module, not {type(module).__name__}")
    module.eval()
    try:
        traced = torch.fx.symbolic_trace(module)
    except Exception as problem:
        raise TypeError(f"torch.fx cannot trace {type(module).__name__}: {problem}. opfuse.fuse(module, example) exports it instead") from problem
    inputs = _usual_inputs(module, traced) if example is None else tuple(example) if isinstance(example, (tuple, list)) else (example,)
    with torch.no_grad():
        expected = module(*_copies(inputs))
        ShapeProp(traced).propagate(*_copies(inputs))
    model = network_of(traced)
    fused = opfuse.fuse(model, patterns=patterns if patterns is not None else opfuse.TENSORRT_FUSION_PATTERNS)
    nodes = {node.name: node for node in traced.graph.nodes}
    groups = [entry for entry in fused.plan if entry.apply and entry.module.startswith("Fused")]
    partitions = [{nodes[name]: None for name in entry.nodes if name in nodes} for entry in groups]
    kept = [(entry, part) for entry, part in zip(groups, partitions) if part]
    fuse_by_partitions(traced, [part for _, part in kept], prefix="opfuse_group_")
    for i, (entry, _) in enumerate(kept):
        _name_child(traced, f"opfuse_group_{i}", entry.module)
    traced.recompile()
    with torch.no_grad():
        if not _same(expected, traced(*_copies(inputs))):
            raise RuntimeError(f"the groups of {type(module).__name__} do not compute what it computes; it may write in place to a value that is read "
                               "later, or draw random numbers. The module itself is unchanged")
    return Transformed(traced, fused.plan, [list(value.shape) for value in inputs if isinstance(value, torch.Tensor)])


def _name_child(traced: torch.fx.GraphModule, name: str, module: str) -> None:
    """A class of its own name for the child; torch.fx gives each graph module its own class."""
    child = traced.get_submodule(name)
    type(child).__name__ = type(child).__qualname__ = module
    number = 0
    while hasattr(traced, wish := f"{module}_{number}"):
        number += 1
    traced.add_module(wish, child)
    for node in traced.graph.nodes:
        if node.op == "call_module" and node.target == name:
            node.target = wish
    traced.delete_submodule(name)


def _copies(inputs: tuple[typing.Any, ...]) -> tuple[typing.Any, ...]:
    """A module may write into its inputs."""
    return tuple(value.clone() if isinstance(value, torch.Tensor) else value for value in inputs)


def _same(a: typing.Any, b: typing.Any) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.shape == b.shape and a.dtype == b.dtype and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b)


_SIDES = (224, 256, 299, 384, 512, 32, 28, 64, 128)  # of images, as classifiers and detectors take them


def _usual_inputs(module: torch.nn.Module, traced: torch.fx.GraphModule) -> tuple[torch.Tensor, ...]:
    """Inputs that the first layers take: of the channels they say, of the first usual size that the whole module takes."""
    places = [node for node in traced.graph.nodes if node.op == "placeholder" and not node.args]
    layers = [next(_layers_after(traced, place), None) for place in places]
    problem: Exception | None = None
    for side in _SIDES:
        made = [None if layer is None else _input_of(layer, side) for layer in layers]
        inputs = tuple(value for value in made if value is not None)
        if len(inputs) < len(made) or not made:
            break
        try:
            with torch.no_grad():
                module(*inputs)
            return inputs
        except Exception as met:
            problem = problem or met
    raise TypeError(f"opfuse.transform needs an example of the inputs of {type(module).__name__}: transform(module, torch.randn(...))") from problem


def _layers_after(traced: torch.fx.GraphModule, place: torch.fx.Node) -> Iterator[torch.nn.Module]:
    """Layers that read the input, nearest first; functions in between are passed."""
    seen, queue = {place}, [place]
    for node in queue:
        for user in node.users:
            if user.op == "call_module":
                yield traced.get_submodule(str(user.target))
            elif user not in seen:
                seen.add(user)
                queue.append(user)


def _input_of(layer: torch.nn.Module, side: int) -> torch.Tensor | None:
    generator = torch.Generator().manual_seed(0)
    for rank, kind in ((1, torch.nn.Conv1d), (2, torch.nn.Conv2d), (3, torch.nn.Conv3d)):
        if isinstance(layer, kind):
            return torch.randn(1, layer.in_channels, *[side if rank < 3 else side // 8] * rank, generator=generator)
    if isinstance(layer, torch.nn.Linear):
        return torch.randn(1, layer.in_features, generator=generator)
    if isinstance(layer, torch.nn.Embedding):
        return torch.zeros(1, 16, dtype=torch.int64)
    return None
