"""The virtual environment that holds the other engines (bench/install_peers.sh)."""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def enter_virtual_environment(program):
    """Continue in the interpreter that has the peers, unless this one has them; exit 2 when there is none."""
    try:
        import numpy, onnx, onnxruntime, openvino  # noqa: E401, F401
        return
    except ImportError as missing:
        python = pathlib.Path(os.environ.get("OPFUSE_PEERS_VENV", ROOT / "build" / "peers-venv")) / "bin" / "python"
        if python.exists() and pathlib.Path(sys.prefix).resolve() != python.parent.parent.resolve():
            os.execv(python, [str(python), *sys.argv])
        print(f"{program}: {missing}; install the peers first:\n  bench/install_peers.sh", file=sys.stderr)
        sys.exit(2)
