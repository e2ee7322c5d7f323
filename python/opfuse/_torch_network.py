"""A traced torch module as an opfuse.Network, for opfuse.transform: tables of layers and functions, and how each is written.

Nodes keep their names, so that groups of the plan name nodes of the trace. What no table has ends the network: its result is
a new input, and what it reads is an output, which no group can swallow.
"""
from __future__ import annotations

import operator
import typing

import torch
import torch.fx

from ._core import Model, Network, NetworkValue

F = torch.nn.functional


def network_of(traced: torch.fx.GraphModule) -> Model:
    """The trace needs the shapes that torch's ShapeProp leaves."""
    return _Writer(traced).network.model()


class _Writer:
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
        if not read_outside:  # nothing is known of this module: a network needs an output
            self.network.output("nothing", self.network.op("identity", self.network.input("none", [1])))
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
        if x is not None and node.target is F.layer_norm:
            return self.norm_called(node, x)
        if x is None or any(isinstance(a, torch.fx.Node) for a in node.kwargs.values()):
            return None
        if node.op == "call_module":
            layer = self.traced.get_submodule(str(node.target))
            plain = len(node.args) == 1 and not node.kwargs
            return _LAYERS[type(layer)](self.network, x, layer, node.name) if plain and type(layer) in _LAYERS else None
        if node.target in _ADDITIONS:
            y = self.operand(node, 1)
            same = y is not None and node.kwargs.get("alpha", 1) == 1
            return self.network.add(x, y, name=node.name) if same and y is not None else None
        if node.target not in _FUNCTIONS:
            return None
        op, parameters = _FUNCTIONS[node.target]
        given = self.parameters(node, parameters)
        return None if given is None else _activation(self.network, x, op, given, node.name)

    def parameters(self, node: torch.fx.Node, defaults: dict[str, typing.Any]) -> dict[str, typing.Any] | None:
        """Arguments after the first by name; None where one is computed or not known."""
        names = [*defaults, "inplace"]
        given = dict(zip(names, node.args[1:])) | dict(node.kwargs)
        given.pop("inplace", None)
        known = len(node.args) <= len(names) + 1 and all(name in defaults and not isinstance(value, torch.fx.Node) for name, value in given.items())
        return {**defaults, **given} if known else None

    def norm_called(self, node: torch.fx.Node, x: NetworkValue) -> NetworkValue | None:
        names = ("normalized_shape", "weight", "bias", "eps")
        given = dict(zip(names, node.args[1:])) | dict(node.kwargs)
        arrays = [self.attribute(given.get(name)) for name in ("weight", "bias")]
        if any(array is None and given.get(name) is not None for array, name in zip(arrays, ("weight", "bias"))):
            return None
        shape = given["normalized_shape"]
        sizes = [shape] if isinstance(shape, int) else shape
        if not isinstance(sizes, (tuple, list)) or not all(isinstance(size, int) for size in sizes):
            return None
        return _norm(self.network, x, [int(size) for size in sizes], arrays[0], arrays[1], float(given.get("eps", 1e-5)), node.name)

    def attribute(self, node: typing.Any) -> torch.Tensor | None:
        """The parameter or buffer that a get_attr node reads."""
        if not isinstance(node, torch.fx.Node) or node.op != "get_attr":
            return None
        found: typing.Any = self.traced
        for word in str(node.target).split("."):
            found = getattr(found, word)
        return found if isinstance(found, torch.Tensor) else None


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


def _layer_norm(net: Network, x: NetworkValue, layer: typing.Any, name: str) -> NetworkValue | None:
    return _norm(net, x, list(layer.normalized_shape), layer.weight, layer.bias, layer.eps, name)


def _norm(net: Network, x: NetworkValue, shape: list[int], scale: torch.Tensor | None, bias: torch.Tensor | None, epsilon: float,
          name: str) -> NetworkValue:
    operands = [net.constant(_array(torch.ones(shape) if scale is None else scale))]
    operands += [] if bias is None else [net.constant(_array(bias))]
    return net.named_op("layer_norm", name, [x, *operands], {"axis": -len(shape), "epsilon": epsilon})


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
    bias = [] if layer.bias is None else [net.constant(_array(layer.bias))]
    if len(x.info.shape) == 2:
        return net.named_op("gemm", name, [x, net.constant(_array(layer.weight)), *bias], {"transB": True})
    product = net.named_op("matmul", name, [x, net.constant(_array(layer.weight.t()))], {})
    return net.add(product, bias[0], name=f"{name} bias") if bias else product


def _activation(net: Network, x: NetworkValue, op: str, parameters: dict[str, typing.Any], name: str) -> NetworkValue | None:
    """With torch's names for parameters."""
    attributes: dict[str, typing.Any] = {}
    if op == "gelu":
        attributes = {"form": {"none": "exact", "tanh": "tanh"}[parameters["approximate"]]}
    elif op == "hard_sigmoid":
        attributes = {"alpha": 1 / 6, "beta": 0.5}
    elif op == "relu6":
        op, attributes = "clip", {"min": 0.0, "max": 6.0}
    elif parameters:
        ((_, alpha),) = parameters.items()
        attributes = {"alpha": float(alpha)}
    return net.named_op(op, name, [x], attributes)


def _activation_layer(op: str, *names: str) -> typing.Callable[..., NetworkValue | None]:
    return lambda net, x, layer, name: _activation(net, x, op, {n: getattr(layer, n) for n in names}, name)


_LAYERS: dict[type, typing.Callable[..., NetworkValue | None]] = {
    torch.nn.Conv1d: _conv, torch.nn.Conv2d: _conv, torch.nn.BatchNorm1d: _batch_norm, torch.nn.BatchNorm2d: _batch_norm,
    torch.nn.LayerNorm: _layer_norm, torch.nn.MaxPool2d: _max_pool, torch.nn.AdaptiveAvgPool2d: _mean, torch.nn.Linear: _linear,
    torch.nn.ReLU: _activation_layer("relu"), torch.nn.ReLU6: _activation_layer("relu6"), torch.nn.SiLU: _activation_layer("silu"),
    torch.nn.Sigmoid: _activation_layer("sigmoid"), torch.nn.Tanh: _activation_layer("tanh"),
    torch.nn.Hardswish: _activation_layer("hard_swish"), torch.nn.Hardsigmoid: _activation_layer("hard_sigmoid"),
    torch.nn.LeakyReLU: _activation_layer("leaky_relu", "negative_slope"), torch.nn.ELU: _activation_layer("elu", "alpha"),
    torch.nn.GELU: _activation_layer("gelu", "approximate"),
}
_ADDITIONS = {operator.add, operator.iadd, torch.add, "add", "add_"}
#: Functions and methods of one tensor, with their other parameters but "inplace".
_FUNCTIONS: dict[typing.Any, tuple[str, dict[str, typing.Any]]] = {
    **dict.fromkeys((torch.relu, torch.relu_, F.relu, F.relu_, "relu", "relu_"), ("relu", {})),
    **dict.fromkeys((torch.sigmoid, F.sigmoid, "sigmoid", "sigmoid_"), ("sigmoid", {})),
    **dict.fromkeys((torch.tanh, F.tanh, "tanh", "tanh_"), ("tanh", {})),
    F.silu: ("silu", {}), F.hardswish: ("hard_swish", {}), F.hardsigmoid: ("hard_sigmoid", {}), F.relu6: ("relu6", {}),
    F.leaky_relu: ("leaky_relu", {"negative_slope": 0.01}), F.elu: ("elu", {"alpha": 1.0}), F.gelu: ("gelu", {"approximate": "none"}),
}
