"""The ConfigMaps by which an installation gives its functions their configuration; kustomize names each new one anew."""

from __future__ import annotations

from collections.abc import Iterable

from tenantry.api import Api
from tenantry.model.kinds import CONFIG_MAP, Object
from tenantry.model.names import SYSTEM_NAMESPACE

CONFIG_MAP_NAME = "tenantry-config"
FILE = "tenantry.yaml"
PART_OF = "app.kubernetes.io/part-of=tenantry"
"""Selects what an installation consists of."""


async def newest_installed(api: Api) -> Object | None:
    """The newest ConfigMap with a configuration among those of the installation.

    Raises:
        ApiError: they cannot be read.
    """
    return newest_of((await api.list(CONFIG_MAP, SYSTEM_NAMESPACE, label_selector=PART_OF)).items)


def newest_of(config_maps: Iterable[Object]) -> Object | None:
    """The newest ConfigMap with a configuration; None where none has one."""
    named = [each for each in config_maps if each["metadata"]["name"].startswith(CONFIG_MAP_NAME)]
    maps = [each for each in named if FILE in (each.get("data") or {})]
    return max(maps, key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["name"]), default=None)
