"""Releases of projects: from a ProjectHelmChart to its namespace, HelmChart, HelmRelease and status.

Owner: ``release/<name>``, the name of the Helm release.
"""
