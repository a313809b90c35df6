"""Paas: what its three kinds declare, and what follows from them for several functions.  Values and pure functions."""
