#!/usr/bin/env bash
# run.sh PLUGIN_FOLDER OPFUSE SCRATCH [VENV ...]: the provider in the real ONNX Runtime: of OPFUSE_PEERS_VENV, of the first environment that has
# it, or of one with packages of PyPI. Exit status 77 (skipped) where those are not to be had.
set -euo pipefail
export OPFUSE_EP=$1 OPFUSE_BINARY=$2
scratch=$3
cd "$(dirname "${BASH_SOURCE[0]}")"
for venv in ${OPFUSE_PEERS_VENV:+"$OPFUSE_PEERS_VENV"} "${@:4}" "$scratch/venv"; do
  "$venv/bin/python" -c 'import numpy, onnx, onnxruntime' 2>/dev/null && break
done
if ! "$venv/bin/python" -c 'import numpy, onnx, onnxruntime' 2>/dev/null; then
  mkdir -p "$scratch"
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check numpy onnx==1.23.2 onnxruntime==1.32.0 2>"$scratch/pip.log" ||
    { cat "$scratch/pip.log" >&2; echo "onnxruntime: packages of PyPI are not to be had; skipped"; exit 77; }
fi
"$venv/bin/python" -B -m unittest -v test_provider
