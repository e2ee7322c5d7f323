"""What bench/gpu.py runs: models as text graphs whose weights are drawn by seeds, and single kernels at the models' shapes."""
import re
import subprocess

MODELS = ["resnet50", "mobilenet_v2", "convnext_tiny", "vit_b_16", "bert_base"]
BATCHES = [1, 32, 128]
REDUCED = {"resnet18": 32}  # resolution in a dry run: emulated, a run takes seconds

PRODUCTS = {  # m, k, n
    "vit_b_16 qkv, batch 32": (6304, 768, 2304), "vit_b_16 up, batch 32": (6304, 768, 3072), "vit_b_16 down, batch 32": (6304, 3072, 768),
    "bert_base qkv, batch 32": (4096, 768, 2304), "convnext up, batch 32": (100352, 96, 384), "convnext down, batch 32": (6272, 1536, 384),
    "resnet50 head, batch 128": (128, 2048, 1000), "8192^3": (8192, 8192, 8192)}
CONVOLUTIONS = {  # batch, channels, size, out, kernel, stride
    "3x3 64, batch 128": (128, 64, 56, 64, 3, 1), "3x3 128, batch 128": (128, 128, 28, 128, 3, 1), "3x3 256, batch 128": (128, 256, 14, 256, 3, 1),
    "3x3 512, batch 128": (128, 512, 7, 512, 3, 1), "1x1 256 to 64, batch 128": (128, 256, 56, 64, 1, 1), "3x3 128 stride 2, batch 128": (128, 128, 56, 128, 3, 2),
    "stem 7x7, batch 128": (128, 3, 224, 64, 7, 2)}
ATTENTIONS = {"vit_b_16, batch 32": (384, 197, 64), "bert_base, batch 32": (384, 128, 64), "vit_b_16, batch 1": (12, 197, 64)}  # heads, tokens, depth
ROWS = {"layer_norm 768": (100864, 768), "softmax 1024": (65536, 1024), "chain 1024": (131072, 1024)}
SHARE_WANTED = {"layer_norm": 85, "softmax": 85, "chain": 90}  # percent of the copy rate


def product(m, k, n):
    return f"graph @product(%x: f16[{m},{k}]) {{\n  %w = const rand<1> : f16[{k},{n}]\n  %y = matmul(%x, %w)\n  return %y\n}}\n"


def convolution(batch, channels, size, out, kernel, stride):
    pad = kernel // 2
    return (f"graph @convolution(%x: f16[{batch},{channels},{size},{size}]) {{\n  %w = const rand<1> : f16[{out},{channels},{kernel},{kernel}]\n"
            f"  %y = conv(%x, %w) {{kernel_shape = [{kernel},{kernel}], pads = [{pad},{pad},{pad},{pad}], strides = [{stride},{stride}]}}\n  return %y\n}}\n")


def attention(heads, tokens, depth):
    return (f"graph @attention(%q: f16[{heads},{tokens},{depth}], %k: f16[{heads},{depth},{tokens}], %v: f16[{heads},{tokens},{depth}]) {{\n"
            "  %c = const splat<0.125> : f16[]\n  %s = matmul(%q, %k)\n  %t = mul(%s, %c)\n  %p = softmax(%t) {axis = 2}\n"
            "  %y = matmul(%p, %v)\n  return %y\n}\n")


def rows(name, count, length):
    body = {"layer_norm": f"  %g = const rand<1> : f16[{length}]\n  %b = const rand<2> : f16[{length}]\n  %y = layer_norm(%x, %g, %b) {{axis = 1}}\n",
            "softmax": "  %y = softmax(%x) {axis = 1}\n", "chain": "  %a = relu(%x)\n  %b = mul(%a, %x)\n  %y = add(%b, %x)\n"}[name.split()[0]]
    return f"graph @rows(%x: f16[{count},{length}]) {{\n{body}  return %y\n}}\n"


def kernel_texts(dry_run):
    """{kind: {name: (text, shape)}}"""
    if dry_run:
        return {"product": {"small": (product(48, 64, 32), (48, 64, 32))}, "rows": {"chain 64": (rows("chain", 32, 64), (32, 64))}}
    return {"product": {n: (product(*s), s) for n, s in PRODUCTS.items()}, "convolution": {n: (convolution(*s), s) for n, s in CONVOLUTIONS.items()},
            "attention": {n: (attention(*s), s) for n, s in ATTENTIONS.items()}, "rows": {n: (rows(n, *s), s) for n, s in ROWS.items()}}


def model_text(opfuse, model, batch, folder, dry_run):
    """The built-in model in f16 (a dry run: f32, small), written once."""
    path = folder / f"{model}-{batch}.fir"
    if path.exists():
        return path
    raw = folder / f"{model}-{batch}-written.fir"
    small = ["--resolution", str(REDUCED[model]), "--width", "0.125", "--classes", "10"] if dry_run else []
    subprocess.run([opfuse, "zoo", model, "--batch", str(batch), "-o", raw, "--force", *small], check=True, capture_output=True)
    count = 0

    def drawn(_):
        nonlocal count
        count += 1
        return f"rand<{count}> : f32["

    text = re.sub(r'file<"[^"]*", \d+> : f32\[', drawn, raw.read_text())
    if not dry_run:
        text = re.sub(r"= cast\((%\S+)\) : f32", r"= cast(\1) {to = f16} : f32", text)
        text = re.sub(r"\bf32\b", "f16", text)
    path.write_text(text)
    for left in folder.glob(raw.stem + ".*"):
        if left.suffix != ".bin" or 'file<"' not in text:  # integers are not drawn
            left.unlink()
    return path
