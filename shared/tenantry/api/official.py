"""The parts of the official client that we use, without the rest of it.

``import kubernetes.aio.client`` runs the package initialisers of ``kubernetes`` and ``kubernetes.aio``, which
import the whole synchronous client beside the asynchronous one: half of a function's start.  While the three
modules that we need are imported, empty packages stand in for these two, and everything is taken away again,
so that whoever imports ``kubernetes`` later gets it whole.  Where that does not work (another layout of the package)
the plain import is used; a test fails when that happens with the pinned version.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

_STAND_INS = ("kubernetes", "kubernetes.aio")
_NEEDED = (
    "kubernetes.aio.client.configuration",
    "kubernetes.aio.client.rest",
    "kubernetes.aio.config.incluster_config",
    "kubernetes.aio.config.kube_config",
)


def _import_slim() -> dict[str, ModuleType] | None:
    """The needed modules behind stand-ins, or None where that is not possible."""
    if any(name in sys.modules for name in _STAND_INS):
        return None
    spec = importlib.util.find_spec("kubernetes")
    if spec is None or not spec.submodule_search_locations:
        return None
    root = Path(spec.submodule_search_locations[0])
    for name in _STAND_INS:
        package = ModuleType(name)
        package.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = package
    try:
        return {name: importlib.import_module(name) for name in _NEEDED}
    except Exception:
        return None
    finally:
        # Our modules keep what they imported; whoever imports kubernetes later gets the real packages.
        for name in [name for name in sys.modules if name.partition(".")[0] == "kubernetes"]:
            del sys.modules[name]


slim = _import_slim()
_modules = slim or {name: importlib.import_module(name) for name in _NEEDED}

Configuration: Any = _modules["kubernetes.aio.client.configuration"].Configuration
RESTClientObject: Any = _modules["kubernetes.aio.client.rest"].RESTClientObject
incluster_config: Any = _modules["kubernetes.aio.config.incluster_config"]
kube_config: Any = _modules["kubernetes.aio.config.kube_config"]
