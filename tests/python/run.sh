#!/usr/bin/env bash
# Builds the wheel against the built and installed opfuse, in a virtual environment, and runs these tests with it.
# Needs python3-venv, python3-dev and PyPI. Exit status 77 (skipped) where PyPI cannot be reached.
set -euo pipefail
build=$1 source=$2
scratch=$build/python-test
rm -rf "$scratch/prefix" "$scratch/dist"
mkdir -p "$scratch"
[[ -x $scratch/venv/bin/python ]] || python3 -m venv "$scratch/venv"
python=$scratch/venv/bin/python
if ! "$python" -m pip install --quiet --disable-pip-version-check "scikit-build-core>=0.11,<2" "nanobind>=3.1,<4" \
    numpy onnx pytest mypy 2>"$scratch/pip.log"; then
  cat "$scratch/pip.log" >&2
  echo "python: packages from PyPI are not to be had; skipped"
  exit 77
fi
cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/install.log"
"$python" -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps "$source" -w "$scratch/dist" \
  --config-settings=build-dir="$scratch/build" --config-settings=cmake.define.OPFUSE_INSTALLED=ON \
  --config-settings=cmake.define.CMAKE_PREFIX_PATH="$scratch/prefix"
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall "$scratch"/dist/opfuse-*.whl
rm -rf "$scratch/prefix"  # the wheel is complete
cd "$scratch"
# Models of 100 MB go into files: beside the build, kept only where a test failed.
OPFUSE_SOURCE=$source "$python" -B -m pytest -q -p no:cacheprovider --basetemp "$scratch/files" -o tmp_path_retention_policy=failed \
  --rootdir "$source/tests/python" "$source/tests/python"
