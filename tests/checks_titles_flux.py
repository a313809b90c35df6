"""What each acceptance check of Flux tenancy promises, in at most eight words."""

from __future__ import annotations

FLUX = """\
f-60 Only two profiles are legal
f-72 What is no profile is refused
f-129 The shortcut of RFC-0003, to the byte
f-130 Single-tenant takes everything away
f-131 Each addition to a profile, and no other
"""
