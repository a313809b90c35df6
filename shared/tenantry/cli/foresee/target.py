"""Which functions a cluster has, and by which configuration they work."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tenantry.api import Api
from tenantry.api.errors import Forbidden
from tenantry.cli.config_maps import FILE, newest_of
from tenantry.model.config import Config
from tenantry.model.descriptor import Service
from tenantry.model.kinds import CONFIG_MAP, SERVICE_ACCOUNT
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.serving.config import CONFIG_VARIABLE, load_config, parse_config
from tenantry.serving.installed import descriptors, services_of


class NotInstalled(LookupError):
    """The cluster has no function; the message says what to do."""


async def installed_services(api: Api, functions: Sequence[str]) -> tuple[list[Service], str]:
    """The Services whose accounts the cluster has, or those of the functions that are named; and what could not be seen.

    Raises:
        NotInstalled: there is none.
    """
    if functions:
        return list(services_of(functions)), ""
    every = services_of(descriptors())
    try:
        accounts = {each["metadata"]["name"] for each in (await api.list(SERVICE_ACCOUNT, SYSTEM_NAMESPACE)).items}
    except Forbidden:
        told = f"which functions are installed (ServiceAccounts in {SYSTEM_NAMESPACE}): all are taken to be"
        return list(every), told
    found = [each for each in every if each.name in accounts]
    if not found:
        raise NotInstalled(
            f"this cluster has no Tenantry: there is no ServiceAccount of a function in namespace {SYSTEM_NAMESPACE}; "
            "install it, or say with --function of which function you want to know what it would do"
        )
    return found, ""


async def configuration(api: Api, path: Path | None) -> tuple[Config, str]:
    """The configuration to plan with, and where it comes from.

    A file that is given, else the one that ``TENANTRY_CONFIG`` names, else the newest ConfigMap of the installation, else the
    defaults.

    Raises:
        ConfigError: it cannot be used.
    """
    if path is not None:
        return load_config(path), str(path)
    if named := os.environ.get(CONFIG_VARIABLE, ""):
        return load_config(), f"{named} ({CONFIG_VARIABLE})"
    try:
        newest = newest_of((await api.list(CONFIG_MAP, SYSTEM_NAMESPACE)).items)
    except Forbidden:
        return Config(), f"defaults: the ConfigMaps in {SYSTEM_NAMESPACE} cannot be read; name the file with {CONFIG_VARIABLE}"
    if newest is None:
        return Config(), "defaults"
    name = f"ConfigMap {SYSTEM_NAMESPACE}/{newest['metadata']['name']}"
    return parse_config(newest["data"][FILE], name), name
