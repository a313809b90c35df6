"""Releases of projects: from a ProjectHelmChart to its namespace, HelmChart, HelmRelease and status.

Owner: ``release/<name>``, the name of the Helm release.
"""

from release_provisioning.projects.unit import Releases

__all__ = ["Releases"]
