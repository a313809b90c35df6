"""What can go wrong with the control plane, each error with its remedy in the message.

::

    ControlPlaneError
    ├── BinariesError      no usable binaries, no Go, a build that failed, no room on the disk
    ├── AlreadyRunning     another control plane holds the data folder
    └── StartFailed        a process ended or did not become ready; carries the end of its log
"""

from __future__ import annotations


class ControlPlaneError(Exception):
    """The control plane cannot do what was asked; the message says what is wrong and what to do."""


class BinariesError(ControlPlaneError):
    """etcd, kube-apiserver or kube-controller-manager cannot be found or built."""


class AlreadyRunning(ControlPlaneError):
    """The data folder belongs to a control plane that is running."""


class StartFailed(ControlPlaneError):
    """A process of the control plane ended, or did not become ready in time."""


class PortTaken(StartFailed):
    """Another process took a chosen port before ours could listen on it."""
