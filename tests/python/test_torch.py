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


def test_torch_compile_refuses_training(net):
    pytest.importorskip("onnxscript")
    torch._dynamo.reset()
    with pytest.raises(Exception, match="no_grad"):
        torch.compile(net, backend="opfuse")(X)
