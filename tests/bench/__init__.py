"""The bench: how fast, how big and how quiet, on a real control plane.  Measures; asserts nothing about time."""
