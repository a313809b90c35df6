"""Releases: HelmReleases, the releases that they name, and the objects of these.

Owners: ``release/<name of the HelmRelease>``; all of them live in the system namespace.
"""
