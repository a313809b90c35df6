"""What each acceptance check of Flux tenancy promises, in at most eight words."""

from __future__ import annotations

FLUX = """\
f-1 Local references need no grant
f-2 One's own namespace is local
f-3 A grant is not read locally
f-4 What is not shared is denied
f-5 A chart repository for everybody
f-6 Namespaces without labels count too
f-7 No selector is nobody
f-8 A namespace is selected by its name
f-9 A selector needs all of its pairs
f-10 One of several selectors is enough
f-11 Values are compared exactly
f-13 Only what is beside a source grants it
f-14 A bad annotation grants nothing, told once
f-16 A denial does not show what exists
f-17 Image automation needs a grant to write
f-19 A source that is a chart needs one
f-20 No grant opens alerts
f-21 Receivers are local
f-23 Exempt namespaces may name everything
f-60 Only two profiles are legal
f-68 Every field and kind of source
f-69 A new namespace has what labels give
f-72 What is no profile is refused
f-76 Grants that are written by hand go
f-77 A full index keeps what it has
f-79 Grants at once; same carriers, same bytes
f-80 Selectors that imitate the index grant nothing
f-84 All policies are typed
f-86 References are judged whoever asks
f-91 A thousand references are judged within budget
f-118 A chart made elsewhere: by its name only
f-129 The shortcut of RFC-0003, to the byte
f-130 Single-tenant takes everything away
f-131 Each addition to a profile, and no other
"""
