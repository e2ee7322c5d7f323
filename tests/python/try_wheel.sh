#!/usr/bin/env bash
# try_wheel.sh PYTHON WHEEL: installs the wheel into an empty environment, far from the sources, and uses it as a newcomer
# would: the command, the module, the C API, headers, types.
set -euo pipefail
python=$1 wheel=$(realpath "$2")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$python" -m venv "$scratch/venv"
"$scratch/venv/bin/pip" install --quiet --disable-pip-version-check "$wheel"
cd "$scratch"
unset OPFUSE_LLVM_LIB
export XDG_CACHE_HOME=$scratch/cache PATH=$scratch/venv/bin:/usr/bin:/bin
opfuse --version
opfuse fuse zoo:resnet18 -o fused.onnx | grep "read back"
opfuse compile zoo:resnet18 -o resnet18.opf
python -m opfuse run resnet18.opf >run.txt
python - <<'PYTHON'
import numpy, opfuse, pathlib
model = opfuse.load("fused.onnx")
exe = opfuse.compile(opfuse.fuse(model))
image = numpy.ones((1, 3, 224, 224), numpy.float32)
ours = exe.run({"input": image})["output"]
loaded = opfuse.Executable.load("resnet18.opf").run({"input": image})["output"]
assert ours.shape == (1, 1000) and numpy.abs(ours - loaded).max() <= 1e-4 * numpy.abs(ours).max()
folder = pathlib.Path(opfuse.__file__).parent
for name in ("py.typed", "_core.pyi", "include/opfuse/opfuse.h", "include/opfuse/opfuse.hpp", "libopfuse_runtime.so.0"):
    assert (folder / name).exists(), name
print("module: ok,", opfuse.__version__)
PYTHON
if command -v cc >/dev/null; then
  package=$(python -c 'import opfuse, os; print(os.path.dirname(opfuse.__file__))')
  printf '%s\n' '#include <opfuse/opfuse.h>' '#include <stdio.h>' 'int main(void) { opfuse_executable* e; if (opfuse_load("resnet18.opf", &e)) return puts(opfuse_last_error()), 1; puts(opfuse_version_text()); return 0; }' >use.c
  cc -I "$package/include" use.c "$package/libopfuse_runtime.so.0" -Wl,-rpath,"$package" -o use && ./use
fi
echo "wheel: ok"
