"""The data folder of one control plane: made private, told from a stranger's folder, and wiped.

Nothing is deleted by pattern: wiping removes exactly the entries that a control plane writes, so a wrong
``--data`` cannot cost somebody's files.
"""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path

from tenantry.local.control_plane.errors import AlreadyRunning, ControlPlaneError

_MARKER = "lock"
_ENTRIES = (
    "etcd",
    "etcd.sock",
    "peer.sock",
    "certs",
    "manager-certs",
    "ca.crt",
    "tokens.csv",
    "service-account.key",
    "kubeconfig",
    "controller-manager.kubeconfig",
    "etcd.log",
    "kube-apiserver.log",
    "kube-controller-manager.log",
    "supervisor.log",
    "state.json",
)


def prepare_folder(folder: Path) -> None:
    """Make the folder, readable by its owner alone: it holds tokens, keys and etcd's sockets.

    Raises:
        ControlPlaneError: it has files and none is a control plane's.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / _MARKER).exists() and any(folder.iterdir()):
        raise ControlPlaneError(f"{folder} has files that are not a control plane's.\nRemedy: name an empty or a new folder.")
    folder.chmod(0o700)


def wipe(folder: Path) -> None:
    """Remove what a control plane wrote.

    Raises:
        AlreadyRunning: it runs, or is starting.
    """
    if not (folder / _MARKER).exists():
        return
    with (folder / _MARKER).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AlreadyRunning(
                f"The data in {folder} is in use.\nRemedy: `tenantry cluster down`, then start again."
            ) from error
        for name in _ENTRIES:
            entry = folder / name
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink(missing_ok=True)
