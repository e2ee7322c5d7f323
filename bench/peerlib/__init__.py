"""The parts of bench/peers.py: one idea per file."""
