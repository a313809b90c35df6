"""The ConfigMaps by which an installation gives its functions their configuration; kustomize names each new one anew."""

from __future__ import annotations

from collections.abc import Iterable

from tenantry.model.kinds import Object

CONFIG_MAP_NAME = "tenantry-config"
FILE = "tenantry.yaml"


def newest_of(config_maps: Iterable[Object]) -> Object | None:
    """The newest ConfigMap with a configuration; None where none has one."""
    named = [each for each in config_maps if each["metadata"]["name"].startswith(CONFIG_MAP_NAME)]
    maps = [each for each in named if FILE in (each.get("data") or {})]
    return max(maps, key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["name"]), default=None)
