"""What each acceptance check of Flux tenancy promises, in at most eight words."""

from __future__ import annotations

FLUX = """\
f-72 What is no profile is refused
"""
