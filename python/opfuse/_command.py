"""The command line that lies in the package: `opfuse` on the PATH, and `python -m opfuse`."""
from __future__ import annotations

import os
import pathlib
import sys


def main() -> None:
    """Becomes the command, so that signals, exit status and standard streams are its own."""
    command = pathlib.Path(__file__).with_name("opfuse-command")
    os.execv(command, ["opfuse", *sys.argv[1:]])
