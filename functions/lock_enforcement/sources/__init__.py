"""Sources: the ApiServerSources that watch what is locked.

Owner: ``sources/locked``; there is one.
"""
