"""Reads for rbac-aggregation: one release with its Roles, the bindings there, and those that say who the people are.

What decides who gets a right is read again after the writes: somebody may have lost it meanwhile, and the replica that got that
event may have found nothing to take away yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Hashable, Sequence
from dataclasses import replace

from rbac_aggregation.projects.claims import ReleaseClaim, ReleaseKey, has_given_up, winner
from rbac_aggregation.projects.levels import kept_binding, level_roles, levels_in_use
from rbac_aggregation.projects.plan import intent
from rbac_aggregation.projects.seen import ObservedRights, is_ours, owner_text
from tenantry.engine.projects import read_claimants
from tenantry.engine.reader import Reader
from tenantry.engine.reads import by_name
from tenantry.model.config import Config
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    PROJECT_HELM_CHART,
    ROLE,
    ROLE_BINDING,
    Object,
    labels_of,
)
from tenantry.model.names import ROLE_OF
from tenantry.model.releases import chart_key


async def observe_release(release: ReleaseKey, config: Config, reader: Reader) -> ObservedRights:
    """Read a release and everything that decides about its bindings, which is little where it has no Roles."""
    claimants, roles, bindings = await asyncio.gather(
        read_claimants(release.name, config, reader),
        reader.list(ROLE, release.namespace, labels={ROLE_OF: release.name}),
        reader.list(ROLE_BINDING, release.namespace, keep=kept_binding(config)),
    )
    charts = tuple(claimants.values())
    if not roles and not any(map(is_ours, bindings)):
        return ObservedRights(release, None, None, charts=charts)
    claim, namespace = await _winner(release, charts, config, reader)
    sources, missing, given_up = await asyncio.gather(
        _sources(claim, roles, config, reader),
        _missing(roles, config, reader),
        _given_up(release, claim, bindings, config, reader),
    )
    seen = ObservedRights(release, claim, namespace, tuple(roles), tuple(bindings), sources, missing, given_up, charts)

    async def again(fresh: Reader) -> Hashable:
        return intent(await _once_more(seen, config, fresh), config)

    reader.depends_on(again, intent(seen, config))
    return seen


async def _once_more(seen: ObservedRights, config: Config, reader: Reader) -> ObservedRights:
    """What was decided on, read anew: by name where that is possible, since lists of a kind at rest wait for the API server."""
    claim = seen.claim
    if claim is None:
        charts = await read_claimants(seen.release.name, config, reader)
        claim, _ = await _winner(seen.release, charts.values(), config, reader)
        return replace(seen, claim=claim)
    metadata = claim.chart["metadata"]
    chart, sources, roles = await asyncio.gather(
        reader.get(PROJECT_HELM_CHART, metadata["name"], metadata["namespace"]),
        _sources(claim, seen.roles, config, reader),
        asyncio.gather(*(reader.get(ROLE, role["metadata"]["name"], seen.release.namespace) for role in seen.roles)),
    )
    return replace(
        seen,
        claim=replace(claim, chart=chart) if chart is not None else None,
        roles=tuple(role for role in roles if role is not None and labels_of(role).get(ROLE_OF) == seen.release.name),
        sources=sources,
    )


async def _winner(
    release: ReleaseKey, charts: Collection[Object], config: Config, reader: Reader
) -> tuple[ReleaseClaim | None, Object | None]:
    """Who of them has the release, and its namespace."""
    homes = sorted({chart["metadata"]["namespace"] for chart in charts})  # read once for all: they may be thousands (a-19)
    found = await by_name(NAMESPACE, (release.namespace, *homes), reader)
    namespace = found[release.namespace]
    return winner(release, charts, found, namespace, config), namespace


async def _sources(claim: ReleaseClaim | None, roles: Sequence[Object], config: Config, reader: Reader) -> tuple[Object, ...]:
    """The bindings that can name people: of the registration namespace and of the cluster."""
    if claim is None or not levels_in_use(roles, config):
        return ()
    inside, everywhere = await asyncio.gather(
        reader.list(ROLE_BINDING, claim.chart["metadata"]["namespace"], keep=kept_binding(config)),
        reader.list_shared(CLUSTER_ROLE_BINDING),
    )
    return (*inside, *everywhere)


async def _missing(roles: Sequence[Object], config: Config, reader: Reader) -> frozenset[str]:
    """The ClusterRoles that levels in use are taken from and that do not exist."""
    named = level_roles(config)
    wanted = sorted({named[level] for level in levels_in_use(roles, config)})
    found = await asyncio.gather(*(reader.get_shared(CLUSTER_ROLE, name) for name in wanted))
    return frozenset(name for name, role in zip(wanted, found, strict=True) if role is None)


async def _given_up(
    release: ReleaseKey, claim: ReleaseClaim | None, bindings: list[Object], config: Config, reader: Reader
) -> frozenset[str]:
    """The ProjectHelmCharts that bindings here were made for and that certainly do not have the release any more."""
    holder = str(chart_key(claim.chart)) if claim is not None else ""
    texts = sorted({owner_text(binding) for binding in bindings} - {"", holder})

    async def certain(text: str) -> bool:
        namespace, _, name = text.partition("/")
        if not namespace or not name:
            return False
        chart, home = await asyncio.gather(reader.get(PROJECT_HELM_CHART, name, namespace), reader.get(NAMESPACE, namespace))
        return has_given_up(chart, home, release, config)

    found = await asyncio.gather(*map(certain, texts))
    return frozenset(text for text, gone in zip(texts, found, strict=True) if gone)
