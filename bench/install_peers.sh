#!/bin/sh
# Installs the engines that bench/peers.py compares with (ONNX Runtime, OpenVINO) into a virtual environment of their own.
#   bench/install_peers.sh            -> build/peers-venv, or $OPFUSE_PEERS_VENV
# Running it again only installs what is missing.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
venv=${OPFUSE_PEERS_VENV:-$root/build/peers-venv}
# Pinned: numbers of two versions are not one table.
packages="onnxruntime==1.32.0 openvino==2026.4.1 numpy==2.4.6 onnx==1.23.2"

if ! command -v python3 >/dev/null; then
  echo "install_peers: python3 is missing; on Debian: apt install python3 python3-venv" >&2
  exit 2
fi
if [ ! -x "$venv/bin/python" ]; then
  echo "install_peers: creating the virtual environment $venv"
  if ! python3 -m venv "$venv"; then
    echo "install_peers: python3 -m venv failed; on Debian: apt install python3-venv" >&2
    exit 2
  fi
fi
if "$venv/bin/python" - $packages 2>/dev/null <<'PYTHON'
import sys
from importlib.metadata import version
sys.exit(not all(version(name) == wanted for name, _, wanted in (package.partition("==") for package in sys.argv[1:])))
PYTHON
then
  echo "install_peers: everything is already there"
else
  echo "install_peers: installing $packages from PyPI (about 150 MB)"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check $packages
fi
"$venv/bin/python" - <<'PYTHON'
from importlib.metadata import version
for package in ("onnxruntime", "openvino", "numpy", "onnx"):
    print(f"  {package:12} {version(package)}")
PYTHON
echo "install_peers: now run  bench/peers.py MODEL.onnx"
