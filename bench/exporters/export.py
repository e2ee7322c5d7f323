#!/usr/bin/env python3
"""Writes the same models as different exporters write them, at their real size with random weights.

    python3 -m venv venv && venv/bin/pip install torch torchvision transformers timm onnx onnxscript optimum-onnx keras ultralytics
    venv/bin/python bench/exporters/export.py --into FOLDER [NAME ...]
    python3 -m venv venv-tf && venv-tf/bin/pip install tensorflow-cpu tf2onnx
    venv-tf/bin/python bench/exporters/export.py --into FOLDER [NAME ...]
    bench/exporters/table.py FOLDER

Each export is FOLDER/<model>.<exporter>.onnx. What cannot be made is <model>.<exporter>.txt with the reason, so that the table has
a row for it; what is there is not made again. NAME selects models or exporters by a part of "model.exporter".
"""
import argparse
import importlib.metadata
import importlib.util
import os
import pathlib
import re
import sys
import traceback
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow" if importlib.util.find_spec("tensorflow") else "torch")


def have(*packages):
    return all(importlib.util.find_spec(package) for package in packages)


# ---- models: a function that makes (module, example inputs by name) ------------------------------------------------

def torchvision_model(name, **options):
    def make():
        import torch
        import torchvision
        return getattr(torchvision.models, name)(weights=None, **options), {"input": torch.randn(1, 3, 224, 224)}
    return make


def timm_model(name):
    def make():
        import timm
        import torch
        return timm.create_model(name, pretrained=False), {"input": torch.randn(1, 3, 224, 224)}
    return make


def hugging_face_model(kind, attention, **sizes):
    """A transformer at its default (base) configuration; only the last hidden state is exported."""
    def make():
        import torch
        import transformers
        config = getattr(transformers, kind + "Config")(return_dict=False, **sizes)
        config._attn_implementation = attention
        if hasattr(config, "use_cache"):
            config.use_cache = False
        model = getattr(transformers, kind + "Model")(config)
        if kind == "ViT":
            return model, {"pixel_values": torch.randn(1, 3, 224, 224)}
        return by_keywords(model), token_inputs(128)
    return make


def token_inputs(length):
    import torch
    return {"input_ids": torch.randint(0, 1000, (1, length)), "attention_mask": torch.ones(1, length, dtype=torch.int64)}


def by_keywords(model):
    """The model with its inputs in the order of token_inputs."""
    import torch

    class ByKeywords(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask):
            return self.model(input_ids=input_ids, attention_mask=attention_mask)

    return ByKeywords()


def decoder_model(kind, attention="sdpa", **sizes):
    """Four blocks of a decoder with rotary embeddings, grouped queries and a gated MLP; only the last hidden state is exported."""
    def make():
        import transformers
        config = decoder_config(kind, attention, use_cache=False, return_dict=False, **sizes)
        return by_keywords(getattr(transformers, kind + "Model")(config)), token_inputs(64)
    return make


def decoder_config(kind, attention="sdpa", **sizes):
    import transformers
    config = getattr(transformers, kind + "Config")(
        vocab_size=1024, hidden_size=512, intermediate_size=1408, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=4,
        head_dim=64, max_position_embeddings=512, pad_token_id=0, **sizes)
    config._attn_implementation = attention
    return config


def split_decoder():
    """A Llama block by hand: RMSNorm, rotate-half by chunk (a Split), grouped queries by repeat_interleave, SwiGLU."""
    import torch
    from torch.nn import functional

    class Norm(torch.nn.Module):
        def __init__(self, width):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.rand(width) + 0.5)

        def forward(self, x):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight

    class Block(torch.nn.Module):
        def __init__(self, width=512, heads=8, groups=4, hidden=1408):
            super().__init__()
            self.heads, self.groups, self.size = heads, groups, width // heads
            linear = lambda n, m: torch.nn.Linear(n, m, bias=False)  # noqa: E731
            self.q, self.k, self.v = linear(width, width), linear(width, groups * self.size), linear(width, groups * self.size)
            self.o, self.gate, self.up, self.down = (linear(width, width), linear(width, hidden), linear(width, hidden),
                                                     linear(hidden, width))
            self.first, self.second = Norm(width), Norm(width)

        def turned(self, x):
            position = torch.arange(x.shape[2]).unsqueeze(1)
            angle = position * 10000 ** (-torch.arange(0, self.size, 2) / self.size)
            cos, sin = (torch.cat([f(angle)] * 2, -1) for f in (torch.cos, torch.sin))
            a, b = x.chunk(2, -1)
            return x * cos + torch.cat([-b, a], -1) * sin

        def attention(self, x):
            batch, length, width = x.shape
            q, k, v = (f(x).view(batch, length, -1, self.size).transpose(1, 2) for f in (self.q, self.k, self.v))
            q, k = self.turned(q), self.turned(k)
            k, v = (t.repeat_interleave(self.heads // self.groups, 1) for t in (k, v))
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.o(y.transpose(1, 2).reshape(batch, length, width))

        def forward(self, x):
            x = x + self.attention(self.first(x))
            y = self.second(x)
            return x + self.down(functional.silu(self.gate(y)) * self.up(y))

    return torch.nn.Sequential(Block(), Block()), {"input": torch.randn(1, 64, 512)}


def yolo(name):
    """ultralytics' detector, as its exporter prepares it."""
    def make():
        import torch
        from ultralytics.nn.tasks import DetectionModel
        model = DetectionModel(f"{name}.yaml", verbose=False).eval()
        for module in model.modules():
            if hasattr(module, "export"):
                module.export, module.format = True, "onnx"
        return model, {"images": torch.randn(1, 3, 640, 640)}
    return make


def torch_attention():
    """nn.MultiheadAttention in a pre-norm block, with batch first."""
    import torch

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = torch.nn.MultiheadAttention(256, 8, batch_first=True)
            self.norm = torch.nn.LayerNorm(256)

        def forward(self, x):
            y = self.norm(x)
            return x + self.attention(y, y, y, need_weights=False)[0]

    return Block(), {"input": torch.randn(1, 50, 256)}


TORCH_MODELS = {
    "resnet50": torchvision_model("resnet50"),
    "mobilenet_v2": torchvision_model("mobilenet_v2"),
    "efficientnet_b0": torchvision_model("efficientnet_b0"),
    "convnext_tiny": torchvision_model("convnext_tiny"),
    "vit_b_16": torchvision_model("vit_b_16"),
    "swin_t": torchvision_model("swin_t"),
    "multihead_attention": torch_attention,
    "timm_vit_b_16": timm_model("vit_base_patch16_224"),
    "timm_convnext_tiny": timm_model("convnext_tiny"),
    "timm_swin_t": timm_model("swin_tiny_patch4_window7_224"),
    "bert_base_eager": hugging_face_model("Bert", "eager"),
    "bert_base_sdpa": hugging_face_model("Bert", "sdpa"),
    "distilbert_eager": hugging_face_model("DistilBert", "eager"),
    "distilbert_sdpa": hugging_face_model("DistilBert", "sdpa"),
    "gpt2_eager": hugging_face_model("GPT2", "eager"),
    "gpt2_sdpa": hugging_face_model("GPT2", "sdpa"),
    "hf_vit_b_16": hugging_face_model("ViT", "sdpa"),
    "llama_eager": decoder_model("Llama", "eager"),
    "llama_sdpa": decoder_model("Llama"),
    "llama_by_hand": split_decoder,
    "qwen3": decoder_model("Qwen3"),
    "phi3": decoder_model("Phi3"),
    "yolov8n": yolo("yolov8n"),
}
#: Those that are exported at opset 23 too, which has Attention and RMSNormalization, and with open batch and sequence.
AT_OPSET_23 = ("vit_b_16", "multihead_attention", "timm_vit_b_16", "bert_base_sdpa", "gpt2_sdpa", "llama_sdpa", "llama_by_hand", "qwen3")
OPEN = ("bert_base_sdpa", "gpt2_sdpa", "llama_sdpa", "llama_by_hand", "qwen3", "phi3")
#: What a model needs beside torch and torchvision, by the beginning of its name.
PACKAGES = {"timm": ["timm"], "bert": ["transformers"], "distilbert": ["transformers"], "gpt2": ["transformers"],
            "hf": ["transformers"], "llama": ["transformers"], "qwen3": ["transformers"], "phi3": ["transformers"],
            "yolov8n": ["ultralytics"]}


def keras_application(name):
    def make():
        import keras
        return getattr(keras.applications, name)(weights=None)
    return make


def keras_attention():
    """keras.layers.MultiHeadAttention and a feed-forward block."""
    import keras
    x = keras.Input((50, 256), batch_size=1, name="input")
    y = keras.layers.LayerNormalization(epsilon=1e-6)(x)
    y = keras.layers.Add()([x, keras.layers.MultiHeadAttention(8, 32)(y, y)])
    z = keras.layers.LayerNormalization(epsilon=1e-6)(y)
    z = keras.layers.Dense(256)(keras.layers.Dense(1024, activation="relu")(z))
    return keras.Model(x, keras.layers.Add()([y, z]))


KERAS_MODELS = {
    "keras_resnet50": keras_application("ResNet50"),
    "keras_mobilenet_v2": keras_application("MobileNetV2"),
    "keras_convnext_tiny": keras_application("ConvNeXtTiny"),
    "keras_attention": keras_attention,
}
OPTIMUM_MODELS = {"bert_base": "Bert", "distilbert": "DistilBert", "gpt2": "GPT2", "hf_vit_b_16": "ViT", "hf_swin_t": "Swin",
                  "hf_convnext_tiny": "ConvNext", "llama": "Llama", "qwen3": "Qwen3", "phi3": "Phi3"}
DECODERS = ("Llama", "Qwen3", "Phi3")

# ---- exporters: write a file ------------------------------------------------------------------------------------------


def without_vmap():
    """transformers makes masks with vmap, which TorchScript cannot trace; Optimum has the same masks without."""
    try:
        from optimum.exporters.onnx.model_patcher import eager_mask_without_vmap, sdpa_mask_without_vmap
        from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS as masks
    except ImportError:
        return
    masks.register("sdpa", sdpa_mask_without_vmap)
    masks.register("eager", eager_mask_without_vmap)


def torch_script(make, path):
    import torch
    without_vmap()
    model, inputs = make()
    torch.onnx.export(model.eval(), tuple(inputs.values()), str(path), input_names=list(inputs), opset_version=17,
                      dynamo=False)


def torch_dynamo(make, path, opset=None, is_open=False):
    import torch
    model, inputs = make()
    shapes = None
    if is_open:
        batch, sequence = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("sequence", min=2, max=512)
        shapes = tuple({0: batch, 1: sequence} for _ in inputs)
        inputs = {name: torch.cat([array, array]) for name, array in inputs.items()}  # a batch of 1 would stay 1
    torch.onnx.export(model.eval(), tuple(inputs.values()), str(path), input_names=list(inputs), dynamo=True, opset_version=opset,
                      dynamic_shapes=shapes)


def optimum(kind, path, task="feature-extraction"):
    import tempfile

    import transformers
    from optimum.exporters.onnx import main_export
    with tempfile.TemporaryDirectory() as folder:
        config = decoder_config(kind) if kind in DECODERS else getattr(transformers, kind + "Config")()
        getattr(transformers, kind + ("Model" if task == "feature-extraction" else "ForCausalLM"))(config).save_pretrained(folder)
        main_export(folder, output=path.parent / path.stem, task=task, no_post_process=True, do_validation=False)
    os.replace(path.parent / path.stem / "model.onnx", path)


def tf2onnx(make, path):
    import tf2onnx as converter
    import tensorflow as tf
    model = make()
    signature = [tf.TensorSpec((1, *model.inputs[0].shape[1:]), tf.float32, name="input")]
    function = tf.function(lambda x: model(x, training=False), input_signature=signature)
    converter.convert.from_function(function, input_signature=signature, opset=17, output_path=str(path))


def keras_export(make, path):
    """With TensorFlow or PyTorch under it, by KERAS_BACKEND."""
    import numpy
    model = make()
    model(numpy.zeros((1, *model.inputs[0].shape[1:]), "float32"))  # Keras exports models that were called
    model.export(str(path), format="onnx", verbose=False)


def combinations():
    """(model, exporter, packages, function)"""
    for name, make in TORCH_MODELS.items():
        packages = ["torch", "torchvision", *PACKAGES.get(name.split("_")[0], [])]
        yield name, "torchscript", packages, lambda path, make=make: torch_script(make, path)
        packages.append("onnxscript")
        yield name, "dynamo", packages, lambda path, make=make: torch_dynamo(make, path)
        if name in AT_OPSET_23:
            yield name, "dynamo_23", packages, lambda path, make=make: torch_dynamo(make, path, opset=23)
        if name in OPEN:
            yield name, "dynamo_open", packages, lambda path, make=make: torch_dynamo(make, path, is_open=True)
    for name, kind in OPTIMUM_MODELS.items():
        yield name, "optimum", ["optimum", "transformers"], lambda path, kind=kind: optimum(kind, path)
        if kind in DECODERS:
            yield name, "optimum_cache", ["optimum", "transformers"], lambda path, kind=kind: optimum(
                kind, path, "text-generation-with-past")
    for name, make in KERAS_MODELS.items():
        yield name, "tf2onnx", ["tensorflow", "tf2onnx"], lambda path, make=make: tf2onnx(make, path)
        yield name, "keras", ["tensorflow", "tf2onnx"], lambda path, make=make: keras_export(make, path)
        yield name, "keras_torch", ["torch", "keras"], lambda path, make=make: keras_export(make, path)


def versions(packages):
    found = []
    for package in packages:
        for name in (package, package + "-cpu"):
            try:
                found.append(f"{package} {importlib.metadata.version(name)}")
                break
            except importlib.metadata.PackageNotFoundError:
                pass
    return ", ".join(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--into", type=pathlib.Path, required=True, metavar="FOLDER")
    options = parser.parse_args()
    options.into.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for model, exporter, packages, export in combinations():
        label = f"{model}.{exporter}"
        path, excuse = options.into / f"{label}.onnx", options.into / f"{label}.txt"
        if options.names and not any(name in label for name in options.names):
            continue
        if path.exists() or not have(*packages):
            continue
        print(f"{label} ...", flush=True)
        try:
            export(path)
            excuse.unlink(missing_ok=True)
            (options.into / f"{label}.with").write_text(versions(packages) + "\n")
        except Exception as error:  # noqa: BLE001: an exporter's failure of any kind is a row of the table
            traceback.print_exc(limit=-3)
            path.unlink(missing_ok=True)
            reason = str(error).strip().splitlines()[0] if str(error) else ""
            excuse.write_text(f"{type(error).__name__}: {re.sub(r' *# /.*', '', reason)}\n")  # without paths of this machine
    return 0


if __name__ == "__main__":
    sys.exit(main())
