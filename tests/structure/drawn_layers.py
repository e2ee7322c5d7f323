"""Layers drawn for tests/structure/unchanged.py: contractions in the forms that generators tell apart.

Each graph holds a few independent layers: convolutions (groups, strides, dilations, ragged and half vectors of channels), Linears of
known and open rows, gated pairs, products of activations, channel gates, quantised convolutions and Linears, transposed convolutions.
The same seed gives the same text.
"""
import random

ACTIVATIONS = ["", "relu", "sigmoid", "tanh", "gelu", "silu", "hard_swish"]
CHANNELS = [1, 3, 8, 16, 20, 24, 32, 40, 48, 64, 72, 96, 128, 144, 200, 256, 512]


class Layer:
    def __init__(self, rng, number):
        self.rng, self.number, self.lines, self.inputs = rng, number, [], []

    def name(self, name):
        return f"%{name}{self.number}"

    def value(self, name, text):
        self.lines.append(f"  {self.name(name)} = {text}")
        return self.name(name)

    def constant(self, name, shape, dtype="f32"):
        return self.value(name, f"const rand<{self.rng.randrange(1, 99)}> : {dtype}[{','.join(map(str, shape))}]")

    def splat(self, name, value, dtype):
        return self.value(name, f"const splat<{value}> : {dtype}[]")

    def given(self, name, shape):
        self.inputs.append(f"{self.name(name)}: f32[{','.join(map(str, shape))}]")
        return self.name(name)

    def activated(self, x):
        function = self.rng.choice(ACTIVATIONS)
        return self.value("act", f"{function}({x})") if function else x

    def coded(self, x, zero):
        s, z = self.splat("s", 0.02, "f32"), self.splat("z", zero, "u8")
        q = self.value("q", f"quantize_linear({x}, {s}, {z})")
        return self.value("d", f"dequantize_linear({q}, {s}, {z})")

    def coded_weights(self, shape):
        return self.value("w", f"dequantize_linear({self.constant('c', shape, 'i8')}, {self.splat('sw', 0.01, 'f32')})")


def image(layer, channels):
    rng = layer.rng
    return [rng.choice([1, 1, 1, 2, "n"]), channels, rng.choice([5, 7, 14, 17, 28]), rng.choice([5, 7, 14, 19, 28, 56])]


def window(layer):
    kernel = layer.rng.choice([(1, 1), (1, 1), (3, 3), (3, 3), (5, 5), (1, 3), (2, 2)])
    stride, dilation = layer.rng.choice([1, 1, 1, 2]), layer.rng.choice([1, 1, 1, 2])
    if (max(kernel) - 1) * dilation > 4:
        dilation = 1
    pad = layer.rng.choice([0, (max(kernel) - 1) * dilation // 2])
    return kernel, f"strides=[{stride},{stride}], dilations=[{dilation},{dilation}], pads=[{pad},{pad},{pad},{pad}]"


def convolution(layer):
    rng = layer.rng
    inputs, outputs, group = rng.choice(CHANNELS), rng.choice(CHANNELS), 1
    if rng.random() < 0.35:
        group, depth, width = rng.choice([2, 4, 8, 32]), rng.choice([1, 2, 4, 8, 12, 16]), rng.choice([1, 2, 4, 8, 12, 24])
        inputs, outputs = group * depth, group * width
    kernel, attributes = window(layer)
    x, w = layer.given("x", image(layer, inputs)), layer.constant("w", [outputs, inputs // group, *kernel])
    bias = ", " + layer.constant("b", [outputs]) if rng.random() < 0.6 else ""
    y = layer.activated(layer.value("v", f"conv({x}, {w}{bias}) {{{attributes}, group={group}}}"))
    return layer.value("y", f"add({y}, {layer.value('h', f'relu({y})')})") if rng.random() < 0.2 else y


def rows(layer):
    return layer.rng.choice([1, 5, 17, 64, 100, 197, "n"])


def linear(layer):
    k, n = layer.rng.choice(CHANNELS), layer.rng.choice(CHANNELS)
    x, w = layer.given("x", [rows(layer), k]), layer.constant("w", [k, n])
    return layer.activated(layer.value("v", f"add({layer.value('m', f'matmul({x}, {w})')}, {layer.constant('b', [n])})"))


def gated(layer):
    k, n = layer.rng.choice([32, 64, 200]), layer.rng.choice([48, 96, 256])
    x = layer.given("x", [rows(layer), k])
    one = layer.value("m", f"matmul({x}, {layer.constant('w', [k, n])})")
    two = layer.value("g", f"matmul({x}, {layer.constant('u', [k, n])})")
    return layer.value("y", f"mul({layer.value('a', f'silu({one})')}, {two})")


def product(layer):
    rng = layer.rng
    m, n, k = rng.choice([41, 64, 197, 256]), rng.choice([20, 40, 64, 197]), rng.choice([24, 33, 64])
    x, w = layer.given("x", [3, m, k]), layer.given("u", [3, k, n])
    if rng.random() < 0.5:
        w = layer.value("t", f"transpose({layer.given('o', [3, n, k])}) {{perm=[0,2,1]}}")
    return layer.activated(layer.value("v", f"matmul({x}, {w})"))


def channel_gate(layer):
    c, o = layer.rng.choice([32, 96, 240]), layer.rng.choice([16, 40, 64])
    x = layer.given("x", [1, c, 14, 14])
    gate = layer.value("g", f"sigmoid({layer.given('f', [1, c, 1, 1])})")
    return layer.value("y", f"conv({layer.value('m', f'mul({x}, {gate})')}, {layer.constant('w', [o, c, 1, 1])})")


def coded_convolution(layer):
    rng = layer.rng
    inputs, outputs = rng.choice([16, 32, 64, 96]), rng.choice([16, 24, 32, 64, 128])
    kernel, attributes = window(layer)
    x = layer.coded(layer.given("x", image(layer, inputs)), rng.choice([0, 7, 128]))
    v = layer.value("v", f"conv({x}, {layer.coded_weights([outputs, inputs, *kernel])}) {{{attributes}}}")
    return layer.value("y", f"quantize_linear({layer.value('r', f'relu({v})')}, {layer.name('s')}, {layer.name('z')})")


def coded_linear(layer):
    k, n = layer.rng.choice([16, 64, 100, 256]), layer.rng.choice([16, 40, 96, 256])
    x = layer.coded(layer.given("x", [rows(layer), k]), layer.rng.choice([0, 128]))
    v = layer.value("v", f"matmul({x}, {layer.coded_weights([k, n])})")
    return layer.value("y", f"quantize_linear({v}, {layer.name('s')}, {layer.name('z')})")


def transposed(layer):
    k = layer.rng.choice([2, 3, 4])
    x, w = layer.given("x", [1, 16, 7, 9]), layer.constant("w", [16, layer.rng.choice([16, 24]), k, k])
    return layer.activated(layer.value("v", f"conv_transpose({x}, {w}) {{strides=[2,2]}}"))


KINDS = [convolution] * 8 + [linear] * 3 + [gated, product, channel_gate, coded_convolution, coded_convolution, coded_linear, transposed]


def draw_graphs(layers, seed=1, per_graph=5):
    """Texts of graphs that hold `layers` layers together."""
    rng = random.Random(seed)
    for first in range(0, layers, per_graph):
        drawn, results = [], []
        for number in range(first, min(first + per_graph, layers)):
            drawn.append(Layer(rng, number))
            results.append(rng.choice(KINDS)(drawn[-1]))
        inputs = ", ".join(i for layer in drawn for i in layer.inputs)
        lines = "\n".join(line for layer in drawn for line in layer.lines)
        yield f"graph ({inputs}) {{\n{lines}\n  return {', '.join(results)}\n}}\n"
