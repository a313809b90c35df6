"""Reads for one HelmChart: what it asks for, what runs Helm for it, and what came of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

from release_provisioning.jobs import manifest, rights
from release_provisioning.jobs.plan import plan_chart, with_wanted
from release_provisioning.jobs.rights import StrayBinding
from release_provisioning.jobs.seen import ObservedHelmChart, is_managed, outcome_of
from tenantry.engine.leftovers import observe_leftovers
from tenantry.engine.reader import Reader
from tenantry.engine.reads import by_name
from tenantry.model.config import Config
from tenantry.model.kinds import (
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    HELM_CHART,
    HELM_CHART_CONFIG,
    JOB,
    NAMESPACE,
    POD,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    Object,
    is_terminating,
)
from tenantry.model.leftovers import Leftovers
from tenantry.model.names import CHART_LABEL
from tenantry.model.plan import Delete, Plan


async def observe_chart(namespace: str, name: str, config: Config, reader: Reader) -> ObservedHelmChart:
    """Read a HelmChart and, as far as its plan needs them, the objects that run Helm for it."""
    chart = await reader.get(HELM_CHART, name, namespace)
    if chart is None:
        seen = await _left_behind(namespace, name, reader)
        return replace(seen, leftovers=await _leftovers(plan_chart(seen, config), reader))
    if not is_managed(chart, config):
        return ObservedHelmChart(namespace, name, chart)
    place, names = manifest.target_namespace(chart), manifest.Names(namespace, name)
    # Bindings before the Jobs that need them: the binding of a newer Job is never seen beside the end of an older one.
    further, secret, content, account, binding, role_binding = await asyncio.gather(
        reader.get(HELM_CHART_CONFIG, name, namespace) if not is_terminating(chart) else _nothing(),
        reader.get(SECRET, names.secret, namespace),
        reader.get(CONFIG_MAP, names.content, namespace),
        reader.get(SERVICE_ACCOUNT, names.account, namespace),
        reader.get(CLUSTER_ROLE_BINDING, names.binding),
        _role_binding(place, namespace, name, reader),
    )
    install, delete = await _jobs(namespace, name, reader)
    parts = (secret, content, account, binding, install, delete)
    if is_terminating(chart):
        target, home = await asyncio.gather(reader.get(NAMESPACE, place), reader.get(NAMESPACE, namespace))
        pods = await _pods(delete or install, namespace, name, reader, leaving=True)
        # Another replica may have let it go meanwhile, and then taken away what this one has just not found.
        chart = await reader.get(HELM_CHART, name, namespace, again=True)
        if chart is None or not is_terminating(chart):
            return await observe_chart(namespace, name, config, reader)
        seen = ObservedHelmChart(namespace, name, chart, None, *parts, pods=pods, target=target, role_binding=role_binding)
        return replace(seen, ending=is_terminating(home), waited_s=_waited_s(chart, install, delete))
    named = sorted({found["name"] for obj in (chart, further) for found in manifest.values_secrets(obj)})
    secrets = await by_name(SECRET, named, reader, namespace)
    pods = await _pods(install, namespace, name, reader)
    seen = ObservedHelmChart(namespace, name, chart, further, *parts, secrets, pods, role_binding=role_binding)
    return with_wanted(replace(seen, homeless=await _is_homeless(seen, config, reader)), config)


async def observe_stray(place: str, namespace: str, name: str, config: Config, reader: Reader) -> StrayBinding:
    """Read a binding that may be left of a HelmChart, and what may still need it; a ``place`` of "" for all namespaces."""
    wanted = manifest.Names(namespace, name).binding
    binding = await reader.get(ROLE_BINDING if place else CLUSTER_ROLE_BINDING, wanted, place)
    chart = await reader.get(HELM_CHART, name, namespace) if binding is not None else None
    if rights.is_minded(chart, place, config):
        return StrayBinding(place, name, namespace, binding, chart)
    jobs = await _jobs(namespace, name, reader) if chart is not None else ()
    stray = StrayBinding(place, name, namespace, binding, chart, tuple(job for job in jobs if job is not None))
    return replace(stray, leftovers=await _leftovers(rights.plan_stray(stray, config), reader))


async def _leftovers(plan: Plan, reader: Reader) -> Leftovers:
    return await observe_leftovers((write.live for write in plan.writes() if isinstance(write, Delete)), reader)


async def _nothing() -> None:
    return None


async def _jobs(namespace: str, name: str, reader: Reader) -> tuple[Object | None, Object | None]:
    names = manifest.Names(namespace, name)
    return await asyncio.gather(reader.get(JOB, names.install, namespace), reader.get(JOB, names.delete, namespace))


async def _role_binding(place: str, namespace: str, name: str, reader: Reader) -> Object | None:
    """The binding of Helm's account in the namespace of the release.

    At rest there is none: a sweep, whose list has those with our label, does not ask for the one of each HelmChart.
    """
    wanted = manifest.Names(namespace, name).binding
    if reader.live:
        return await reader.get(ROLE_BINDING, wanted, place)
    found = await reader.list(ROLE_BINDING, place, labels={CHART_LABEL: name})
    return next((each for each in found if each["metadata"]["name"] == wanted), None)


async def _is_homeless(seen: ObservedHelmChart, config: Config, reader: Reader) -> bool:
    """Whether a Job needs a binding in a namespace that nobody can make one in."""
    needed = rights.is_working(seen) or not seen.jobs
    if not needed or seen.role_binding is not None or rights.reaches_everywhere(seen.existing, config):
        return False
    target = await reader.get(NAMESPACE, manifest.target_namespace(seen.existing))
    return target is None or is_terminating(target)


def _waited_s(chart: Object, install: Object | None, delete: Object | None) -> float:
    """Since when a deletion waits for what it waits for: its own time, or that of a Job that came or was ended later."""
    jobs = [found["metadata"] for found in (install, delete) if found is not None]
    stamps = [found.get("deletionTimestamp") for found in (chart["metadata"], *jobs)]
    if delete is not None:
        stamps.append(delete["metadata"].get("creationTimestamp"))
    newest = max(datetime.fromisoformat(stamp) for stamp in stamps if stamp)
    return (datetime.now(UTC) - newest).total_seconds()


async def has_plain_status(reader: Reader) -> bool:
    """Whether the HelmChart CRD in force has a status without times and generation, as that of K3s and RKE2."""
    crd = await reader.get_shared(CUSTOM_RESOURCE_DEFINITION, f"{HELM_CHART.plural}.{HELM_CHART.group}")
    versions: list[Object] = ((crd or {}).get("spec") or {}).get("versions") or []
    fields: list[Object] = [
        found["schema"]["openAPIV3Schema"].get("properties", {}).get("status", {}).get("properties", {})
        for found in versions
        if found.get("name") == "v1" and found.get("schema")
    ]
    return any("observedGeneration" not in known for known in fields)


async def _left_behind(namespace: str, name: str, reader: Reader) -> ObservedHelmChart:
    """What has no owner, or has not been collected, and so may have outlived the HelmChart."""
    names = manifest.Names(namespace, name)
    account, (install, delete), binding = await asyncio.gather(
        reader.get(SERVICE_ACCOUNT, names.account, namespace),
        _jobs(namespace, name, reader),
        reader.get(CLUSTER_ROLE_BINDING, names.binding),
    )
    place = next((manifest.target_of(job) for job in (install, delete) if job is not None), "")
    role_binding = await _role_binding(place, namespace, name, reader) if place else None
    return ObservedHelmChart(
        namespace, name, None, account=account, binding=binding, install=install, delete=delete, role_binding=role_binding
    )


async def _pods(job: Object | None, namespace: str, name: str, reader: Reader, *, leaving: bool = False) -> tuple[Object, ...]:
    """The pods of a Job that has had a failure, for what Helm said; on the way out of any that may not have started."""
    if job is None or outcome_of(job) == "complete" or not ((job.get("status") or {}).get("failed") or leaving):
        return ()
    found = await reader.list(POD, namespace, labels={CHART_LABEL: name})
    uid = job["metadata"]["uid"]
    return tuple(pod for pod in found if any(owner.get("uid") == uid for owner in pod["metadata"].get("ownerReferences") or ()))
