"""Reads for namespace-registration: a project with its registration namespace, or the namespace of single-namespace mode.

Any one member shows that a project is alive.  The namespace that woke the run is read first, so the usual case needs no list.
A run for events of objects inside a registration namespace does not ask: it repairs what is there and leaves the orphan label as
it is.
"""

from __future__ import annotations

import asyncio

from namespace_registration.projects.plan import Member, Project, SystemNamespace, remembered_project
from tenantry.engine.projects import read_hardening
from tenantry.engine.reader import Reader
from tenantry.engine.reads import by_name
from tenantry.model.config import Config
from tenantry.model.difference import entries_of
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, Object, annotations_of, is_terminating
from tenantry.model.names import ADOPT
from tenantry.model.projects import REGISTRATION_MANAGER, ChartFiles, is_member, is_registration, registration_name


async def observe_system(name: str, charts: tuple[ChartFiles, ...], reader: Reader) -> SystemNamespace:
    """Read the system namespace and its ConfigMaps."""
    namespace = await reader.get(NAMESPACE, name)
    return SystemNamespace(namespace, {} if namespace is None else await _config_maps(name, charts, reader))


async def observe_member(name: str, config: Config, reader: Reader) -> Member:
    """Read a namespace, and where it remembers a project without being in one that project's registration namespace."""
    namespace = await reader.get(NAMESPACE, name)
    remembered = remembered_project(namespace, config)
    return Member(namespace, await reader.get(NAMESPACE, registration_name(remembered)) if remembered else None)


async def observe_project(project: str, charts: tuple[ChartFiles, ...], witness: str, config: Config, reader: Reader) -> Project:
    """Read a project: which namespaces are in it, its registration namespace and what we keep there.

    ``witness`` names a namespace that was a member at some time: reading it may save a list.
    """
    name = registration_name(project)
    registration = await reader.get(NAMESPACE, name)
    ours = registration is not None and is_registration(registration, config)
    alive, members = await _members(project, registration, witness, config, reader)
    if alive is None:
        reader.knows_only_part(NAMESPACE, name)  # its own event asks for the members, too
    if registration is None or not ours or is_terminating(registration):
        return Project(project, registration, ours, alive, members)
    inside = await asyncio.gather(_config_maps(name, charts, reader), read_hardening(name, config, reader))
    return Project(project, registration, ours, alive, members, *inside)


async def _config_maps(namespace: str, charts: tuple[ChartFiles, ...], reader: Reader) -> dict[str, Object | None]:
    return await by_name(CONFIG_MAP, (chart.config_map_name for chart in charts), reader, namespace)


async def _members(
    project: str, registration: Object | None, witness: str, config: Config, reader: Reader
) -> tuple[bool | None, tuple[Object, ...]]:
    if project in config.denied_project_ids:
        return False, ()
    woken_by = [cause.name for cause in sorted(reader.causes) if cause.kind == NAMESPACE.kind]
    inside = [cause for cause in reader.causes if cause.kind != NAMESPACE.kind and cause.namespace == registration_name(project)]
    if registration is not None and reader.causes and len(inside) == len(reader.causes):
        return None, ()
    blocked = registration is not None and not is_registration(registration, config)
    # While a project is not served its members carry a condition: then, and when somebody hands it over, all of them are read.
    adopted = ADOPT in annotations_of(registration) and registration_name(project) in woken_by
    settled = registration is not None and not blocked and bool(entries_of(registration, REGISTRATION_MANAGER))
    hint = [witness] if witness and reader.causes and settled else []
    witnesses: tuple[Object, ...] = ()
    for name in dict.fromkeys([*woken_by, *hint] if not adopted else ()):
        found = await reader.get(NAMESPACE, name)
        if found is not None and is_member(found, project, config):
            witnesses = (*witnesses, found)
            if not blocked:
                break  # one is enough, unless each is to get the condition that its project is not served
    if witnesses:
        # One witness carries the decision; it must still be a member when everything is written.
        await reader.get(NAMESPACE, witnesses[0]["metadata"]["name"], verify=lambda found: is_member(found, project, config))
        return True, witnesses
    members = await _list_members(project, config, reader)

    async def alive(fresh: Reader) -> bool:
        return bool(await _list_members(project, config, fresh))

    reader.depends_on(alive, bool(members))
    return bool(members), members


async def _list_members(project: str, config: Config, reader: Reader) -> tuple[Object, ...]:
    labelled = await reader.list(NAMESPACE, labels={config.project_label: project})
    return tuple(found for found in labelled if is_member(found, project, config))
