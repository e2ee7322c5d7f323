#!/usr/bin/env bash
# Installs opfuse into a scratch prefix, builds the examples against it with find_package, and runs them.
set -euo pipefail
build=$1 source=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/install.log"

example() {  # example NAME ARGUMENTS...: builds it, runs it, and shows what it printed, also in $output
  local name=$1; shift
  cmake -S "$source/examples/$name" -B "$scratch/$name" -DCMAKE_PREFIX_PATH="$scratch/prefix" >"$scratch/configure.log"
  cmake --build "$scratch/$name" >"$scratch/build.log" || { cat "$scratch/build.log"; exit 1; }
  output=$(cd "$scratch" && "$scratch/$name/$name" "$@")
  printf -- '--- %s\n%s\n' "$name" "$output"
}

example run_model
grep -q '8 FusedConvBNAddReLU' <<<"$output"
grep -q '^ran [1-9][0-9]* kernels' <<<"$output"

example add_pattern "$source/examples/patterns/gate.toml"
grep -q '^ *16 FusedSqueezeGate$' <<<"$output"
grep -q '^ *4 FusedConvGate$' <<<"$output"
grep -q '^ *16 FusedDepthwiseConv$' <<<"$output"
grep -aq 'FusedConvGate' "$scratch/fused.onnx"

example edit_plan
grep -q '^switched off: StemConvBNReLUMaxPool@' <<<"$output"
grep -q '^StemConvBNReLUMaxPool: apply is false in the plan$' <<<"$output"

example run_on_gpu
grep -q '^exp(relu(-2)) = 1, exp(relu(2)) = 7.38906, on device 0$' <<<"$output"

# A plug-in links nothing of opfuse: it needs the installed header, and the installed command line finds it.
cmake -S "$source/examples/npu" -B "$scratch/npu" -DCMAKE_PREFIX_PATH="$scratch/prefix" >"$scratch/configure.log"
cmake --build "$scratch/npu" >"$scratch/build.log" || { cat "$scratch/build.log"; exit 1; }
printf 'graph (%%x: f32[5,20]) {\n%%w = const rand<1> : f32[20,30]\n%%m = matmul(%%x, %%w) @"mm"\n%%y = relu(%%m)\nreturn %%y }\n' >"$scratch/net.fir"
OPFUSE_PLUGINS="$scratch/npu" EXAMPLE_NPU_RECORD="$scratch/record" "$scratch/prefix/bin/opfuse" compare "$scratch/net.fir" \
  --target example-npu,cpu --place mm=example-npu
grep -q '^run .* m=5 n=30 k=20 ' "$scratch/record"
