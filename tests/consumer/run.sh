#!/usr/bin/env bash
# Installs opfuse into a scratch prefix, builds the example against it with find_package, and runs it.
set -euo pipefail
build=$1 source=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/install.log"
cmake -S "$source/examples/run_model" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$scratch/prefix" >"$scratch/configure.log"
cmake --build "$scratch/build" >"$scratch/build.log"
output=$("$scratch/build/run_model")
printf '%s\n' "$output"
grep -q '8 FusedConvBNAddReLU' <<<"$output"
grep -q '^ran [1-9][0-9]* kernels' <<<"$output"
