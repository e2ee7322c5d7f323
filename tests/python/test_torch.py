"""PyTorch: fuse, transform, torch.compile. Skipped where torch is not installed: it is no dependency, and large."""
import numpy as np
import pytest

import opfuse

torch = pytest.importorskip("torch")


class Block(torch.nn.Module):
    def __init__(self, channels, stride=1):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(channels, channels, 3, stride, 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(channels)
        self.relu = torch.nn.ReLU(inplace=True)
        self.conv2 = torch.nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = torch.nn.BatchNorm2d(channels)
        self.downsample = torch.nn.Sequential(torch.nn.Conv2d(channels, channels, 1, stride, bias=False), torch.nn.BatchNorm2d(channels)) if stride > 1 else None

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += identity
        return self.relu(y)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, 16, 7, 2, 3, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(16)
        self.relu = torch.nn.ReLU(inplace=True)
        self.maxpool = torch.nn.MaxPool2d(3, 2, 1)
        self.layer1, self.layer2 = Block(16), Block(16, 2)
        self.avgpool = torch.nn.AdaptiveAvgPool2d((1, 1))
        self.fc = torch.nn.Linear(16, 10)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.flatten(self.avgpool(self.layer2(self.layer1(x))), 1))


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    net = Net()
    with torch.no_grad():
        for _ in range(3):
            net(torch.randn(4, 3, 32, 32))  # statistics of the norms
    return net.eval()


X = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(1))
EXPECTED = {"FusedConvBNReLUMaxPool": 1, "FusedConvBNReLU": 2, "FusedConvBNAddReLU": 2, "FusedConvBN": 1, "FusedAdaptiveAvgPool2d": 1, "FusedLinear": 1}


def test_transform_wraps_the_original_modules(net):
    result = opfuse.transform(net, X, patterns=opfuse.TENSORRT_FUSION_PATTERNS)
    assert result.modules() == EXPECTED
    with torch.no_grad():
        assert torch.equal(result.model(X), net(X)), "bit for bit"
    kept = dict(net.named_parameters())
    assert all(any(p is q for q in kept.values()) for p in result.model.parameters()), "the same parameters, not folded"


def test_transform_with_fewer_patterns(net):
    assert opfuse.transform(net, X, patterns=["ConvBNReLU"]).modules() == {"FusedConvBNReLU": 3}


GUIDE = """
from opfuse import transform
from opfuse import TENSORRT_FUSION_PATTERNS

result = transform(model, patterns=TENSORRT_FUSION_PATTERNS)

from collections import Counter

fused_counts = Counter(
    type(m).__name__
    for m in result.model.modules()
    if hasattr(type(m).__name__, 'startswith')
    and type(m).__name__.startswith('Fused')
)
for name, count in sorted(fused_counts.items()):
    print(f"  {name}: {count}")
"""  # a published guide of operator fusions, but for its imports


def run_guide(model, capsys):
    exec(GUIDE, space := {"model": model})
    assert capsys.readouterr().out.splitlines() == [f"  {name}: {count}" for name, count in sorted(space["fused_counts"].items())]
    return space["result"], dict(space["fused_counts"])


def counts_after_export(module, example):
    return opfuse.fuse(module, example, patterns=opfuse.TENSORRT_FUSION_PATTERNS).modules()


def test_the_guide_runs_with_other_imports(net, capsys):
    result, counts = run_guide(net, capsys)
    assert counts == EXPECTED and result.shapes == [[1, 3, 224, 224]], "sizes that it found itself"
    with torch.no_grad():
        assert torch.equal(result.model(X), net(X))
    pytest.importorskip("onnxscript")
    exported = counts_after_export(result.model, X)
    assert exported == counts_after_export(net, X)
    # An exported classifier becomes a 1x1 convolution before the pool is flattened.
    assert exported == {**{k: v for k, v in EXPECTED.items() if k != "FusedLinear"}, "FusedConvBN": 2}


def test_the_guide_on_resnet50(capsys):
    torchvision = pytest.importorskip("torchvision")
    torch.manual_seed(0)
    resnet = torchvision.models.resnet50(weights=None).eval()
    result, counts = run_guide(resnet, capsys)
    assert counts == {"FusedConvBNReLUMaxPool": 1, "FusedConvBNAddReLU": 16, "FusedConvBNReLU": 32, "FusedConvBN": 4, "FusedAdaptiveAvgPool2d": 1,
                      "FusedLinear": 1}
    image = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(result.model(image), resnet(image))


class Block1d(torch.nn.Module):
    """What ViT and ConvNeXt are made of, beside attention."""

    def __init__(self):
        super().__init__()
        self.norm, self.scale = torch.nn.LayerNorm(16, eps=1e-6), torch.nn.Parameter(torch.ones(16))
        self.up, self.act, self.down = torch.nn.Linear(16, 64), torch.nn.GELU(), torch.nn.Linear(64, 16, bias=False)
        self.drop = torch.nn.Dropout(0.1)

    def forward(self, x):
        y = self.down(self.act(self.up(self.norm(x))))
        y = torch.nn.functional.layer_norm(self.drop(y), [16], self.scale, None)
        return x + torch.nn.functional.leaky_relu(y, 0.2)


def test_transform_of_norms_and_linears():
    block, x = Block1d().eval(), torch.randn(2, 5, 16)
    result = opfuse.transform(block, x, ["LayerNorm", "LinearReLU", "Linear"])
    assert result.modules() == {"FusedLayerNorm": 2, "FusedLinearReLU": 1, "FusedLinear": 1}
    with torch.no_grad():
        assert torch.equal(result.model(x), block(x))
    assert opfuse.transform(block, x).modules() == result.modules()
    with pytest.raises(TypeError, match="example"):
        opfuse.transform(block)  # the norm says how wide its input is, not which rank it has


@pytest.mark.parametrize("act, fused", [
    (torch.nn.ReLU6(), True), (torch.nn.LeakyReLU(0.1), True), (torch.nn.ELU(), True), (torch.nn.GELU(), True), (torch.nn.GELU("tanh"), True),
    (torch.nn.SiLU(), True), (torch.nn.Hardswish(), True), (torch.nn.Hardsigmoid(), True), (torch.nn.Tanh(), False), (torch.nn.Softplus(), False)],
    ids=str)
def test_the_eight_activations(act, fused):
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1), act).eval()
    x = torch.randn(1, 3, 8, 8)
    result = opfuse.transform(net, x)
    assert result.modules() == ({"FusedConvBNReLU": 1} if fused else {"FusedConvBN": 1})
    with torch.no_grad():
        assert torch.equal(result.model(x), net(x))


class WritesInPlace(torch.nn.Module):
    """The second reader of y sees what relu_ left there."""

    def __init__(self):
        super().__init__()
        self.conv, self.other = torch.nn.Conv2d(3, 4, 1), torch.nn.Conv2d(3, 4, 1)

    def forward(self, x):
        y = self.conv(x)
        z = torch.relu_(y)
        return torch.cat([self.other(x) + y, z], 1)


def test_writes_in_place_keep_their_order():
    net, x = WritesInPlace().eval(), torch.randn(1, 3, 4, 4)
    with torch.no_grad():
        assert torch.equal(opfuse.transform(net, x).model(x), net(x))


def test_transform_of_what_it_does_not_know():
    class Sorts(torch.nn.Module):
        def forward(self, x):
            return torch.sort(x).values

    class Branches(torch.nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    assert opfuse.transform(Sorts(), torch.randn(3)).modules() == {}
    with pytest.raises(TypeError, match="cannot trace Branches"):
        opfuse.transform(Branches(), torch.randn(3))
    with pytest.raises(TypeError, match="not str"):
        opfuse.transform("net", X)


def test_tensors_are_read_and_written_where_they_are(net):
    model = opfuse.Network()
    model.output("y", model.op("relu", model.input("x", [2, 3])))
    exe = opfuse.compile(model.model())
    x, y = torch.tensor([[-1.0, 2, -3], [4, -5, 6]]), torch.zeros(2, 3)
    assert exe.run({"x": x}, {"y": y})["y"] is y and torch.equal(y, torch.relu(x))
    context = exe.create_context(threads=1)
    context.bind("x", x)
    context.bind("y", y)
    x.neg_()  # bound, not copied
    context.run()
    assert torch.equal(y, torch.relu(x))
    with pytest.raises(opfuse.Error, match="E0602"):
        exe.run({"x": torch.zeros(3, 2).t()})


def test_a_module_exports_and_fuses(net):
    pytest.importorskip("onnxscript")
    fused = opfuse.fuse(net, X)
    assert fused.modules()["FusedConvBNReLUMaxPool"] == 1 and fused.modules()["FusedConvBNAddReLU"] == 2
    exe = opfuse.compile(fused)
    with torch.no_grad():
        want = net(X).numpy()
    got = exe.run({exe.inputs()[0].name: X})[exe.outputs()[0].name]
    assert np.abs(got - want).max() <= 1e-5 * np.abs(want).max()


def test_torch_compile(net):
    pytest.importorskip("onnxscript")
    compiled = torch.compile(net, backend="opfuse")
    with torch.no_grad():
        torch.testing.assert_close(compiled(X), net(X), rtol=1e-4, atol=1e-5)
        first = compiled(X)
        net.fc.bias.add_(1)
        torch.testing.assert_close(compiled(X), first + 1, rtol=1e-4, atol=1e-5)
        net.fc.bias.sub_(1)


def compiled(module):
    pytest.importorskip("onnxscript")
    torch._dynamo.reset()
    return torch.compile(module, backend="opfuse")


class Counts(torch.nn.Module):
    """Results that are no tensors, an argument that is none, state of its own."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x, times=2):
        self.seen += 1
        return {"y": self.linear(x) * times, "rows": x.shape[0], "seen": self.seen * 1}


def test_torch_compile_with_other_sizes_and_state():
    module, want = Counts().eval(), Counts().eval()
    want.load_state_dict(module.state_dict())
    with torch.no_grad():
        fast = compiled(module)
        for rows, times in ((3, 2), (5, 2), (5, 3), (3, 2)):
            x = torch.randn(rows, 4)
            got, expected = fast(x, times), want(x, times)
            torch.testing.assert_close(got["y"], expected["y"], rtol=1e-4, atol=1e-5)
            assert got["rows"] == rows and torch.equal(got["seen"], expected["seen"])
    assert torch.equal(module.seen, want.seen)


def test_torch_compile_writes_to_its_input():
    def grow(x):
        x.add_(1)
        return x * 2

    a = torch.ones(3)
    with torch.no_grad():
        assert torch.equal(compiled(grow)(a), torch.full((3,), 4.0)) and torch.equal(a, torch.full((3,), 2.0))


def test_modules_of_one_class_keep_their_weights():
    first, second = torch.nn.Linear(4, 4).eval(), torch.nn.Linear(4, 4).eval()
    x = torch.randn(2, 4)
    compiled(first)
    with torch.inference_mode():
        a, b = torch.compile(first, backend="opfuse"), torch.compile(second, backend="opfuse")
        for module, fast in ((first, a), (second, b), (first, a)):
            torch.testing.assert_close(fast(x), module(x), rtol=1e-4, atol=1e-5)
        first.weight.data = second.weight.data.clone()
        torch.testing.assert_close(a(x), first(x), rtol=1e-4, atol=1e-5)


def test_torch_compile_refuses_training(net):
    pytest.importorskip("onnxscript")
    torch._dynamo.reset()
    with pytest.raises(Exception, match="no_grad"):
        torch.compile(net, backend="opfuse")(X)
