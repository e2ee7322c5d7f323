#!/usr/bin/env python3
"""PyTorch beside opfuse on a GPU: single kernels in this process, a model in a process of its own.

    bench/gpu_torch.py MODEL BATCH MODE        eager, compile or max-autotune; prints JSON; status 77: cannot run here"""
import json
import statistics
import sys
import tempfile

MODES = ["eager", "compile", "max-autotune"]


class Missing(Exception):
    """Why torch cannot run here."""


def torch_on_gpu():
    try:
        import torch
    except ImportError as e:
        raise Missing(str(e)) from None
    if not torch.cuda.is_available():
        raise Missing("torch sees no GPU")
    torch.backends.cudnn.benchmark = True
    return torch


def median_us(torch, call, runs=50, warm=20):
    for _ in range(warm):
        call()
    torch.cuda.synchronize()
    times = []
    for _ in range(runs):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return round(statistics.median(times), 2)


def call_of(torch, kind, shape, name):
    half = {"device": "cuda", "dtype": torch.half}
    if kind == "product":
        m, k, n = shape
        x, w = torch.randn(m, k, **half), torch.randn(k, n, **half)
        return lambda: torch.matmul(x, w)
    if kind == "convolution":
        batch, channels, size, out, kernel, stride = shape
        last = torch.channels_last
        x = torch.randn(batch, channels, size, size, **half).to(memory_format=last)
        w = torch.randn(out, channels, kernel, kernel, **half).to(memory_format=last)
        return lambda: torch.nn.functional.conv2d(x, w, stride=stride, padding=kernel // 2)
    if kind == "attention":
        heads, tokens, depth = shape
        q, k, v = (torch.randn(1, heads, tokens, depth, **half) for _ in range(3))
        return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)
    count, length = shape
    x, g, b = torch.randn(count, length, **half), torch.randn(length, **half), torch.randn(length, **half)
    calls = {"layer_norm": lambda: torch.nn.functional.layer_norm(x, (length,), g, b), "softmax": lambda: torch.softmax(x, 1),
             "chain": lambda: torch.relu(x) * x + x}
    return torch.compile(calls[name.split()[0]], dynamic=False)


def kernel(kind, shape, name=""):
    torch = torch_on_gpu()
    with torch.no_grad():
        us = median_us(torch, call_of(torch, kind, shape, name))
    values = {"us": us}
    if kind == "product":
        m, k, n = shape
        values["tflop_per_s"] = round(2e-6 * m * k * n / us, 1)
    return values


def module_of(torch, name):
    """The same layers with weights as they are drawn: times do not depend on them."""
    if name == "bert_base":
        import transformers
        model = transformers.BertModel(transformers.BertConfig())
        return model, lambda batch: (torch.randint(0, 1000, (batch, 128), device="cuda"),)
    import torchvision
    model = getattr(torchvision.models, name)(weights=None)
    return model, lambda batch: (torch.randn(batch, 3, 224, 224, device="cuda", dtype=torch.half),)


def model(name, batch, mode):
    torch = torch_on_gpu()
    try:
        module, inputs = module_of(torch, name)
    except ImportError as e:
        raise Missing(str(e)) from None
    module = module.cuda().half().eval()
    arguments = inputs(batch)
    if arguments[0].dim() == 4:
        module, arguments = module.to(memory_format=torch.channels_last), tuple(a.to(memory_format=torch.channels_last) for a in arguments)
    if mode != "eager":
        import os
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp()
        torch._inductor.config.freezing = True
        torch._dynamo.reset()
        module = torch.compile(module, mode="default" if mode == "compile" else mode, dynamic=False)
    with torch.no_grad():
        us = median_us(torch, lambda: module(*arguments))
    return {"ms": round(us * 1e-3, 4), "torch": torch.__version__}


if __name__ == "__main__":
    try:
        print(json.dumps(model(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
    except Missing as reason:
        print(reason)
        sys.exit(77)
