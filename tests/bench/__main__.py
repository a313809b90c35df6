"""``python -m tests.bench``."""

from __future__ import annotations

from tests.bench.run import main

main()
