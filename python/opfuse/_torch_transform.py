"""opfuse.transform: a torch module whose fused groups are children that wrap the original submodules.

The module is traced, written down as an opfuse.Network under the names of the traced nodes, and planned; each group of a
named pattern becomes a child. What opfuse has no word for here ends the network: its result is a new input.
"""
from __future__ import annotations

import dataclasses
import operator
import typing
from collections.abc import Iterable

import torch
import torch.fx
from torch.fx.passes.shape_prop import ShapeProp
from torch.fx.passes.utils.fuser_utils import fuse_by_partitions

from ._core import Network, NetworkValue, Plan


@dataclasses.dataclass(frozen=True)
class Transformed:
    """A module with fused children, and the plan behind it."""

    model: torch.nn.Module  #: computes what the original computes, bit for bit, in eager mode
    plan: Plan

    def modules(self) -> dict[str, int]:
        """Children by class: {"FusedConvBNReLU": 32, ...}"""
        counts: dict[str, int] = {}
        for child in self.model.children():
            name = type(child).__name__
            if name.startswith("Fused"):
                counts[name] = counts.get(name, 0) + 1
        return counts


def transform(module: torch.nn.Module, example: typing.Any, patterns: Iterable[typing.Any] | None = None) -> Transformed:
    """The module, in eval mode, with its fused groups as children."""
    import opfuse
    module.eval()
    traced = torch.fx.symbolic_trace(module)
    inputs = tuple(example) if isinstance(example, (tuple, list)) else (example,)
    with torch.no_grad():
        ShapeProp(traced).propagate(*inputs)
    model = _Writer(traced).network.model()
    fused = opfuse.fuse(model, patterns=patterns if patterns is not None else opfuse.TENSORRT_FUSION_PATTERNS)
    nodes = {node.name: node for node in traced.graph.nodes}
    groups = [entry for entry in fused.plan if entry.apply and entry.module.startswith("Fused")]
    partitions = [{nodes[name]: None for name in entry.nodes if name in nodes} for entry in groups]
    kept = [(entry, part) for entry, part in zip(groups, partitions) if part]
    fuse_by_partitions(traced, [part for _, part in kept], prefix="opfuse_group_")
    for i, (entry, _) in enumerate(kept):
        _name_child(traced, f"opfuse_group_{i}", entry.module)
    traced.recompile()
    return Transformed(traced, fused.plan)


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


class _Writer:
    """A traced module as a network; one method for each kind of operator."""

    def __init__(self, traced: torch.fx.GraphModule) -> None:
        self.traced = traced
        self.network = Network(type(traced).__name__)
        self.values: dict[torch.fx.Node, NetworkValue] = {}
        read_outside: list[torch.fx.Node] = []
        for node in traced.graph.nodes:
            value = None if node.op in ("placeholder", "output", "get_attr") else self.written(node)
            if value is None:
                read_outside += [read for read in node.all_input_nodes if read in self.values]
                value = self.fresh(node)
            if value is not None:
                self.values[node] = value
        for node in dict.fromkeys(read_outside):
            self.network.output(f"result {node.name}", self.values[node])

    def fresh(self, node: torch.fx.Node) -> NetworkValue | None:
        meta = node.meta.get("tensor_meta")
        if node.op == "output" or not hasattr(meta, "shape") or meta.dtype != torch.float32:
            return None
        return self.network.input(f"value {node.name}", [int(size) for size in meta.shape])

    def operand(self, node: torch.fx.Node, index: int) -> NetworkValue | None:
        argument = node.args[index] if index < len(node.args) else None
        return self.values.get(argument) if isinstance(argument, torch.fx.Node) else None

    def written(self, node: torch.fx.Node) -> NetworkValue | None:
        x = self.operand(node, 0)
        if x is None or any(isinstance(a, torch.fx.Node) for a in node.kwargs.values()):
            return None
        if node.op == "call_module":
            layer = self.traced.get_submodule(str(node.target))
            for kind, write in _LAYERS.items():
                if type(layer) is kind:
                    return write(self.network, x, layer, node.name)
            return None
        if node.target in _ADDITIONS:
            y = self.operand(node, 1)
            same = y is not None and node.kwargs.get("alpha", 1) == 1
            return self.network.add(x, y, name=node.name) if same and y is not None else None
        act = _FUNCTIONS.get(node.target)
        plain = len(node.args) == 1 and set(node.kwargs) <= {"inplace"}
        return self.network.named_op(act, node.name, [x], {}) if act and plain else None


def _array(tensor: torch.Tensor | None) -> typing.Any:
    return None if tensor is None else tensor.detach().contiguous()


def _conv(net: Network, x: NetworkValue, layer: typing.Any, name: str) -> NetworkValue | None:
    same = all(len(set(sizes)) == 1 for sizes in (layer.stride, layer.dilation))
    if layer.padding_mode != "zeros" or isinstance(layer.padding, str) or len(set(layer.padding)) != 1 or not same:
        return None
    return net.conv(x, stride=layer.stride[0], pad=layer.padding[0], dilation=layer.dilation[0], group=layer.groups,
                    weights=_array(layer.weight), bias=_array(layer.bias), name=name)


def _batch_norm(net: Network, x: NetworkValue, layer: typing.Any, name: str) -> NetworkValue | None:
    if layer.running_mean is None:
        return None
    return net.batch_norm(x, scale=_array(layer.weight), bias=_array(layer.bias), mean=_array(layer.running_mean),
                          variance=_array(layer.running_var), epsilon=layer.eps, name=name)


def _max_pool(net: Network, x: NetworkValue, layer: typing.Any, name: str) -> NetworkValue | None:
    def two(value: typing.Any) -> list[int]:
        return [value, value] if isinstance(value, int) else list(value)
    if layer.return_indices or layer.ceil_mode:
        return None
    return net.named_op("max_pool", name, [x], {"kernel_shape": two(layer.kernel_size), "strides": two(layer.stride),
                                                "pads": two(layer.padding) * 2, "dilations": two(layer.dilation)})


def _mean(net: Network, x: NetworkValue, layer: typing.Any, name: str) -> NetworkValue | None:
    return net.named_op("global_average_pool", name, [x], {}) if layer.output_size in (1, (1, 1)) else None


def _linear(net: Network, x: NetworkValue, layer: typing.Any, name: str) -> NetworkValue | None:
    if len(x.info.shape) != 2:
        return None
    weights = [net.constant(_array(layer.weight))] + ([net.constant(_array(layer.bias))] if layer.bias is not None else [])
    return net.named_op("gemm", name, [x, *weights], {"transB": True})


def _activation(op: str) -> typing.Callable[..., NetworkValue | None]:
    return lambda net, x, layer, name: net.named_op(op, name, [x], {})


_LAYERS: dict[type, typing.Callable[..., NetworkValue | None]] = {
    torch.nn.Conv1d: _conv, torch.nn.Conv2d: _conv, torch.nn.BatchNorm1d: _batch_norm, torch.nn.BatchNorm2d: _batch_norm,
    torch.nn.MaxPool2d: _max_pool, torch.nn.AdaptiveAvgPool2d: _mean, torch.nn.Linear: _linear, torch.nn.ReLU: _activation("relu"),
    torch.nn.SiLU: _activation("silu"), torch.nn.Sigmoid: _activation("sigmoid"), torch.nn.Tanh: _activation("tanh"),
    torch.nn.Hardswish: _activation("hard_swish"),
}
_ADDITIONS = {operator.add, operator.iadd, torch.add}
_FUNCTIONS = {torch.relu: "relu", torch.nn.functional.relu: "relu", torch.sigmoid: "sigmoid", torch.tanh: "tanh",
              torch.nn.functional.silu: "silu"}
