"""Sources: the ApiServerSources that watch what is locked.

Owner: ``sources/locked``; there is one.
"""

from lock_enforcement.sources.unit import Sources

__all__ = ["Sources"]
