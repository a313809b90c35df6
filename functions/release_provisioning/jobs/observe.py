"""Reads for one HelmChart: what it asks for, what runs Helm for it, and what came of it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from release_provisioning.jobs import manifest
from release_provisioning.jobs.plan import Seen, is_managed, outcome_of, upgrades_to, with_wanted
from tenantry.engine.reader import Reader
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
    SECRET,
    SERVICE_ACCOUNT,
    Object,
    is_terminating,
)
from tenantry.model.names import CHART_LABEL

LOOKS = 4
HELM_CHART_CRD = f"{HELM_CHART.plural}.{HELM_CHART.group}"


async def observe_still(namespace: str, name: str, config: Config, reader: Reader) -> Seen:
    """The same as `observe_chart`; where Helm is to run again, when chart and values have been the same for a while.

    So ten namespaces that join a project are one upgrade.  Nothing is remembered and no clocks are compared: it takes two looks
    that want the same.  Who changes a HelmChart without end waits for `LOOKS` of them, not for ever.
    """
    seen = await observe_chart(namespace, name, config, reader)
    quiet_s = config.helm_project_operator.helm_controller.quiet_seconds
    for _ in range(LOOKS if quiet_s else 0):
        before = upgrades_to(seen)
        if not before or not await reader.later(quiet_s):
            break
        seen = await observe_chart(namespace, name, config, reader)
        if upgrades_to(seen) == before:
            break
    return seen


async def observe_chart(namespace: str, name: str, config: Config, reader: Reader) -> Seen:
    """Read a HelmChart and, as far as its plan needs them, the objects that run Helm for it."""
    chart = await reader.get(HELM_CHART, name, namespace)
    if chart is None:
        return await _left_behind(namespace, name, reader)
    if not is_managed(chart, config):
        return Seen(namespace, name, chart)
    account, binding, install, delete = await asyncio.gather(
        reader.get(SERVICE_ACCOUNT, manifest.account_name(name), namespace),
        reader.get(CLUSTER_ROLE_BINDING, manifest.binding_name(namespace, name)),
        reader.get(JOB, manifest.install_name(name), namespace),
        reader.get(JOB, manifest.delete_name(name), namespace),
    )
    if is_terminating(chart):
        target, home, secret, content = await asyncio.gather(
            reader.get(NAMESPACE, manifest.target_namespace(chart)),
            reader.get(NAMESPACE, namespace),
            reader.get(SECRET, manifest.secret_name(name), namespace),
            reader.get(CONFIG_MAP, manifest.content_name(name), namespace),
        )
        pods = await _pods(delete or install, namespace, name, reader, leaving=True)
        # Another replica may have let it go meanwhile, and then taken away what this one has just not found.
        chart = await reader.get(HELM_CHART, name, namespace, again=True)
        if chart is None or not is_terminating(chart):
            return await observe_chart(namespace, name, config, reader)
        parts = (secret, content, account, binding, install, delete)
        waited_s = _waited_s(chart, install, delete)
        return Seen(
            namespace, name, chart, None, *parts, pods=pods, target=target, ending=is_terminating(home), waited_s=waited_s
        )
    further, secret, content = await asyncio.gather(
        reader.get(HELM_CHART_CONFIG, name, namespace),
        reader.get(SECRET, manifest.secret_name(name), namespace),
        reader.get(CONFIG_MAP, manifest.content_name(name), namespace),
    )
    named = sorted({found["name"] for obj in (chart, further) for found in manifest.values_secrets(obj)})
    secrets = dict(zip(named, await asyncio.gather(*(reader.get(SECRET, each, namespace) for each in named)), strict=True))
    pods = await _pods(install, namespace, name, reader)
    seen = Seen(namespace, name, chart, further, secret, content, account, binding, install, delete, secrets, pods)
    return with_wanted(seen, config)


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
    crd = await reader.get_shared(CUSTOM_RESOURCE_DEFINITION, HELM_CHART_CRD)
    versions: list[Object] = ((crd or {}).get("spec") or {}).get("versions") or []
    fields: list[Object] = [
        found["schema"]["openAPIV3Schema"].get("properties", {}).get("status", {}).get("properties", {})
        for found in versions
        if found.get("name") == "v1" and found.get("schema")
    ]
    return any("observedGeneration" not in known for known in fields)


async def _left_behind(namespace: str, name: str, reader: Reader) -> Seen:
    """What has no owner, or has not been collected, and so may have outlived the HelmChart."""
    binding, account, install, delete = await asyncio.gather(
        reader.get(CLUSTER_ROLE_BINDING, manifest.binding_name(namespace, name)),
        reader.get(SERVICE_ACCOUNT, manifest.account_name(name), namespace),
        reader.get(JOB, manifest.install_name(name), namespace),
        reader.get(JOB, manifest.delete_name(name), namespace),
    )
    return Seen(namespace, name, None, account=account, binding=binding, install=install, delete=delete)


async def _pods(job: Object | None, namespace: str, name: str, reader: Reader, *, leaving: bool = False) -> tuple[Object, ...]:
    """The pods of a Job that has had a failure, for what Helm said; on the way out of any that may not have started."""
    if job is None or outcome_of(job) == "complete" or not ((job.get("status") or {}).get("failed") or leaving):
        return ()
    found = await reader.list(POD, namespace, labels={CHART_LABEL: name})
    uid = job["metadata"]["uid"]
    return tuple(pod for pod in found if any(owner.get("uid") == uid for owner in pod["metadata"].get("ownerReferences") or ()))
