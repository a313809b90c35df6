"""Flux: sources, who may use them, and what refers to them."""
