"""python -m opfuse: the command line."""
from ._command import main

main()
