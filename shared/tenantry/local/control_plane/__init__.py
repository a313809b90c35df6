"""The control plane of one machine: real etcd, kube-apiserver and kube-controller-manager, without containers.

``binaries`` finds the programs or has them built once from pinned Go modules (``catalogue``, ``toolchain``,
``build``); ``plane`` runs them, through ``supervisor``, so that none outlives its purpose; ``state`` tells
what runs.
"""

from tenantry.local.control_plane.binaries import Binaries, Found, ensure_binaries, ensure_helm, ensure_helm4, find_binaries
from tenantry.local.control_plane.catalogue import (
    ALL_MODULES,
    EXTRA_MODULES,
    EXTRAS,
    HELM,
    HELM_CONTROLLER,
    KUSTOMIZE_CONTROLLER,
    SOURCE_CONTROLLER,
    Module,
)
from tenantry.local.control_plane.errors import AlreadyRunning, BinariesError, ControlPlaneError, StartFailed
from tenantry.local.control_plane.folder import wipe
from tenantry.local.control_plane.places import cluster_folder, home
from tenantry.local.control_plane.plane import ControlPlane
from tenantry.local.control_plane.progress import Lines, Progress
from tenantry.local.control_plane.state import Status, status, take_down

__all__ = [
    "ALL_MODULES",
    "EXTRAS",
    "EXTRA_MODULES",
    "HELM",
    "HELM_CONTROLLER",
    "KUSTOMIZE_CONTROLLER",
    "SOURCE_CONTROLLER",
    "AlreadyRunning",
    "Binaries",
    "BinariesError",
    "ControlPlane",
    "ControlPlaneError",
    "Found",
    "Lines",
    "Module",
    "Progress",
    "StartFailed",
    "Status",
    "cluster_folder",
    "ensure_binaries",
    "ensure_helm",
    "ensure_helm4",
    "find_binaries",
    "home",
    "status",
    "take_down",
    "wipe",
]
