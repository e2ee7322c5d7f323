#!/bin/sh
# Installs the engines that bench/peers.py compares with (ONNX Runtime, OpenVINO) into a virtual environment of their own.
#   bench/install_peers.sh            -> build/peers-venv, or $OPFUSE_PEERS_VENV
# Running it again only installs what is missing.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
venv=${OPFUSE_PEERS_VENV:-$root/build/peers-venv}
packages="onnxruntime openvino numpy onnx"

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
if "$venv/bin/python" -c "import $(echo "$packages" | tr ' ' ',')" 2>/dev/null; then
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
