"""``tenantry profile apply``: gives a cluster the policies that its TenancyProfile and its versions ask for (f-82)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

import click

from tenantry.api import Api
from tenantry.cli.create.written import Row, row_of, told
from tenantry.cli.one_line import OneLine, WrongUse
from tenantry.cli.options import kubeconfig_option
from tenantry.cli.output import output_option
from tenantry.cli.profile.wanted import PERSON, current_profile, served_by, tenancy_profile
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT, TENANCY_PROFILE
from tenantry.model.flux.policies import GENERATED, documents
from tenantry.model.flux.policies.compared import is_as_generated
from tenantry.model.flux.policies.parts import LABELS
from tenantry.model.flux.profile import PROFILES, Profile
from tenantry.model.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, Kind, Object

_KINDS = {each.kind: each for each in (ACCESS_INDEX, CLUSTER_ROLE, CLUSTER_ROLE_BINDING, TENANCY_PROFILE, *GENERATED)}
_OURS = ",".join(f"{key}={value}" for key, value in LABELS.items())


@click.command(cls=OneLine)
@click.option("--security-profile", type=click.Choice(PROFILES), help="Write this into the TenancyProfile first.")
@click.option("--prune", is_flag=True, help="Take away policies of ours that are not wanted any more.")
@kubeconfig_option
@output_option
def apply(security_profile: str | None, prune: bool, kubeconfig: Path | None, output: str) -> None:
    """Write the admission policies that the TenancyProfile asks for, for the versions that the cluster serves.

    With profile single-tenant it takes all of them away. What is there already and as it should be is not written.

    \b
    Examples:
      tenantry profile apply --prune
      tenantry profile apply --security-profile=single-tenant
    """

    async def run() -> list[Row]:
        async with await Api.connect(field_manager=PERSON, kubeconfig=kubeconfig) as api:
            rows = []
            found = await current_profile(api)
            if security_profile:
                rows.append(await _written(api, tenancy_profile(security_profile), None))
                found = await current_profile(api)
            if found is None:
                raise WrongUse(f"there is no TenancyProfile {DEFAULT}; give --security-profile, one of {', '.join(PROFILES)}")
            return rows + await apply_profile(api, Profile.of(found), prune=prune)

    told(asyncio.run(run()), output)


async def apply_profile(api: Api, profile: Profile, *, prune: bool) -> list[Row]:
    """Make the policies of a cluster those of a profile; returns what became of each object.

    Superfluous ones are named, and taken away with ``prune`` or when nothing is to be enforced: first bindings, then policies.
    """
    there: dict[tuple[str, str], Object] = {}
    for kind in GENERATED:
        there |= {(kind.kind, each["metadata"]["name"]): each for each in await _ours(api, kind)}
    rows = []
    wanted: set[tuple[str, str]] = set()
    for document in documents(profile, await served_by(api)):
        named = document["kind"], document["metadata"]["name"]
        wanted.add(named)
        rows.append(await _written(api, document, there.get(named)))
    return rows + await _superfluous(api, there, wanted, remove=prune or not profile.is_multi_tenant)


async def _ours(api: Api, kind: Kind) -> list[Object]:
    if await api.served(kind.api_version, kind.kind) is None:
        return []
    return (await api.list(kind, label_selector=_OURS)).items


async def _written(api: Api, document: Object, live: Object | None) -> Row:
    kind = _KINDS[document["kind"]]
    if live is not None and is_as_generated(document, live):
        return row_of(document, "unchanged")
    live = live or await api.get(kind, document["metadata"]["name"])
    stored = await api.apply(kind, document)
    if live is None:
        return row_of(document, "created")
    return row_of(document, "unchanged" if _version(live) == _version(stored) else "updated")


def _version(found: Object) -> str:
    """What differs when anything but its status was written: of what has a status the generation."""
    metadata = found["metadata"]
    return str(metadata.get("generation") or metadata["resourceVersion"])


async def _superfluous(
    api: Api, there: dict[tuple[str, str], Object], wanted: Collection[tuple[str, str]], *, remove: bool
) -> list[Row]:
    rows = []
    for named, found in there.items():
        if named in wanted:
            continue
        if remove:
            await api.delete(_KINDS[named[0]], named[1])
        rows.append(row_of(found, "deleted" if remove else "superfluous: take it away with --prune"))
    return rows
