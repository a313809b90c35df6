"""Taking Tenantry out of a cluster: releases, what sends events, the functions, their rights, then what the functions made.

In this order nothing is left that only a function can take away, no function meets a right that is gone, and none puts back what
is removed.  Functions that run on one machine are asked to end and waited for like the pods of a cluster.  Only objects
that are named in our own files, or that our field managers wrote, are touched; namespaces of projects and everything that
people put into them stay.  Every step tolerates what is not there, missing kinds included.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable, Mapping

from tenantry.api import Api
from tenantry.api.errors import ConflictError, NotFound
from tenantry.local.deployment import deployment_folder, documents
from tenantry.local.followed import STAND_IN
from tenantry.local.install import Say
from tenantry.local.kinds import kind_of
from tenantry.local.policies import PART_OF, until_in_force
from tenantry.local.presence import END, PRESENCE
from tenantry.local.removal import Files
from tenantry.local.taking import POLL_S, Taking, Uninstallation, is_part_of
from tenantry.model.config import Config
from tenantry.model.difference import owns
from tenantry.model.flux.policies import GENERATED
from tenantry.model.flux.policies.parts import LABELS
from tenantry.model.kinds import (
    API_SERVER_SOURCE,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CLUSTER_SERVICE_VERSION,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    DEPLOYMENT,
    HELM_CHART,
    HELM_RELEASE,
    JOB,
    LEASE,
    MUTATING_WEBHOOKS,
    NAMESPACE,
    NAMESPACE_SCOPE,
    POD,
    PROJECT_HELM_CHART,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    VALIDATING_WEBHOOKS,
    Key,
    Kind,
    Object,
    annotations_of,
    is_terminating,
    key_of,
    labels_of,
)
from tenantry.model.names import (
    API_GROUP,
    CHART_LABEL,
    CHART_MANAGED_BY,
    CLEANUP,
    HELM_CHART_FINALIZER,
    INJECTION_ORIGINAL,
    NAMESPACE_LIST,
    OPERATED,
    PROJECT_ID,
    SYSTEM_NAMESPACE,
)
from tenantry.model.pointer import pointer
from tenantry.model.projects import REGISTRATION_MANAGER, RELEASE_MANAGER, is_registration
from tenantry.serving.dead_letters import NAME as DEAD_LETTERS
from tenantry.serving.installed import descriptors, services_of

MANAGERS = "tenantry-"
ANSWER_S = 15.0
"""Who holds a Lease on one machine and lives answers within this time."""
_ROLES = (CLUSTER_ROLE_BINDING, CLUSTER_ROLE)
"""Of Flux tenancy those that are generated with its policies."""
_GIVES_HELM = (ROLE_BINDING, CLUSTER_ROLE_BINDING)
"""The rights of Helm's accounts, in the namespaces of releases or in all."""

_RUNS_HELM = (JOB, SERVICE_ACCOUNT, SECRET, CONFIG_MAP)
"""What release-provisioning makes for a HelmChart in the system namespace."""

_INJECTED = (CLUSTER_SERVICE_VERSION, VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS)


class Uninstaller(Taking):
    """One uninstallation as an administrator.

    Args:
        crds: remove our CustomResourceDefinitions too, and with them every object of these kinds.
        dry_run: only look.
        timeout_s: how long releases may take to go, then functions, and then CRDs.
    """

    def __init__(
        self, api: Api, config: Config, say: Say, *, crds: bool = False, dry_run: bool = False, timeout_s: float = 300.0
    ) -> None:
        super().__init__(api, say, dry_run=dry_run, timeout_s=timeout_s)
        self._config = config
        self._crds = crds

    async def run(self) -> Uninstallation:
        """Do it; when releases or functions do not go in time, ``remaining`` names them and nothing after them is removed.

        Raises:
            ApiError: the API server refuses or is away; a second call goes on where this one ended.
        """
        for chart in await self._charts():
            await self._ask_for_clean_up(chart)
        if not self._dry_run and not await self._are_gone(self._releases):
            return self.done
        files = Files.read()
        for document in files.sending:
            await self._remove_file(document)
        await self._remove_products(API_SERVER_SOURCE)
        for document in files.running:
            await self._remove_file(document, propagation="Foreground")  # it goes when its pods have gone
        await self._ask_to_end()
        if not self._dry_run and not await self._are_gone(self._functions):
            return self.done
        for document in [*files.other, *files.rights]:
            await self._remove_file(document)
        await self._leave_helm_charts()
        await self._let_go()
        await self._leave_namespace_scopes()
        await self._remove_products()  # again of sources, should a function have made one at its end
        await self._leave_namespaces()
        await self._remove_policies()
        await self._remove_configuration()
        if self._crds:
            await self._remove_crds()
        for name in (SYSTEM_NAMESPACE, self._config.helm_project_operator.system_namespace):
            await self._remove_namespace(name)
        return self.done

    # -- releases ----------------------------------------------------------------------------------------

    async def _charts(self) -> list[Object]:
        """The ProjectHelmCharts that this installation serves."""
        config, operator = self._config, self._config.helm_project_operator
        versions = {chart.helm_api_version for chart in operator.charts}
        if config.project_label:
            homes = {each["metadata"]["name"] for each in await self._list(NAMESPACE) if is_registration(each, config)}
        else:
            homes = {operator.system_namespace}
        charts = await self._list(PROJECT_HELM_CHART)
        return [
            chart
            for chart in charts
            if chart["metadata"]["namespace"] in homes and (chart.get("spec") or {}).get("helmApiVersion") in versions
        ]

    async def _ask_for_clean_up(self, chart: Object) -> None:
        if labels_of(chart).get(CLEANUP) == "true":
            return
        self.done.cleaned_up.append(str(key_of(chart)))
        if self._dry_run:
            return
        metadata = {part: chart["metadata"][part] for part in ("name", "namespace", "uid")}
        body = {"apiVersion": chart["apiVersion"], "kind": chart["kind"], "metadata": {**metadata, "labels": {CLEANUP: "true"}}}
        try:
            await self._api.apply(PROJECT_HELM_CHART, body)
        except ConflictError:
            return  # it is gone
        self._say(f"asked for clean-up of {key_of(chart)}")

    async def _releases(self) -> list[str]:
        """The HelmCharts and HelmReleases of this installation that are still there."""
        operator = self._config.helm_project_operator
        groups = {chart.helm_api_version.partition("/")[0] for chart in operator.charts}
        found: list[str] = []
        for kind in (HELM_CHART, HELM_RELEASE):
            items = await self._list(kind, operator.system_namespace, f"{OPERATED}=true")
            found += [str(key_of(each)) for each in items if labels_of(each).get(API_GROUP) in groups]
        return sorted(found)

    # -- what runs ---------------------------------------------------------------------------------------

    async def _leases(self) -> list[Object]:
        return await self._list(LEASE, SYSTEM_NAMESPACE, _selector(PRESENCE))

    async def _ask_to_end(self) -> None:
        """Have what runs on one machine end; a Lease that nobody answers for is what a killed process left."""
        asked = await self._leases()
        for lease in asked:
            self.done.removed.append(str(key_of(lease)))
            if not self._dry_run:
                self._say(f"asked {_holder(lease)} to end")
                path = pointer("metadata", "annotations")
                annotations = {**annotations_of(lease), END: "true"}
                with contextlib.suppress(NotFound):
                    await self._api.json_patch(
                        LEASE, lease["metadata"]["name"], SYSTEM_NAMESPACE, [{"op": "add", "path": path, "value": annotations}]
                    )
        give_up_at = time.monotonic() + ANSWER_S
        while asked and not self._dry_run:
            asked = [lease for lease in await self._leases() if not (lease.get("spec") or {}).get("renewTime")]
            if asked and time.monotonic() > give_up_at:
                for lease in asked:
                    self._say(f"{_holder(lease)} does not answer: nothing runs there any more")
                    await self._api.delete(LEASE, lease["metadata"]["name"], SYSTEM_NAMESPACE, uid=lease["metadata"]["uid"])
                return
            await asyncio.sleep(POLL_S if asked else 0)

    async def _functions(self) -> list[str]:
        """What runs functions and takes their dead letters: in the cluster, and on machines that answered."""
        names = ",".join((*(service.name for service in services_of(descriptors())), DEAD_LETTERS))
        selector = _selector(PART_OF) + f",app.kubernetes.io/name in ({names})"
        found = [each for kind in _RUNNING for each in await self._list(kind, SYSTEM_NAMESPACE, selector)]
        return sorted(
            [*(str(key_of(each)) for each in found), *(f"{_holder(each)} ({key_of(each)})" for each in await self._leases())]
        )

    # -- what people made: it stays, so no descriptor can say what is done to it -------------------------

    async def _let_go(self) -> None:
        """Take the finalizers of functions off, which nobody does any more."""
        for held in (finalizer for service in services_of(descriptors()) for finalizer in service.finalizers):
            for found in await self._list(held.kind):
                if not held.shared or _written_by_functions(found):
                    await self._take_finalizer_off(held.kind, found, held.name)

    async def _leave_helm_charts(self) -> None:
        """HelmCharts that people made stay, and so do their releases; what ran Helm for them goes."""
        namespace, name = self._config.helm_project_operator.system_namespace, self._config.helm_project_operator.controller_name
        going = await self._releases()  # with a dry run they are still there
        for chart in await self._list(HELM_CHART, namespace):
            if str(key_of(chart)) in going:
                continue
            ours = owns(chart, RELEASE_MANAGER, "metadata", "annotations", CHART_MANAGED_BY)
            if ours and annotations_of(chart).get(CHART_MANAGED_BY) == name:
                await self._take_off(HELM_CHART, chart, "annotations", CHART_MANAGED_BY)
            if HELM_CHART_FINALIZER in (chart["metadata"].get("finalizers") or ()):
                self.done.kept.append(f"{key_of(chart)}: its Helm release stays as it is, also when the HelmChart is deleted")
        for kind in (*_GIVES_HELM, *_RUNS_HELM):
            for live in await self._list(kind, "" if kind in _GIVES_HELM else namespace, CHART_LABEL):
                named = f"helm-{namespace}-{labels_of(live)[CHART_LABEL]}"
                if _written_by_functions(live) and (kind not in _GIVES_HELM or live["metadata"]["name"] == named):
                    await self._delete(kind, live)

    async def _leave_namespace_scopes(self) -> None:
        """The lists of NamespaceScopes stay for the programs that read them."""
        for config_map in await self._list(CONFIG_MAP, selector=NAMESPACE_LIST):
            if _written_by_functions(config_map):
                await self._hand_over(config_map)
        for kind in _INJECTED:
            for live in await self._list(kind):
                if INJECTION_ORIGINAL in annotations_of(live):
                    self.done.kept.append(
                        f"{key_of(live)}: is injected into; the annotation {INJECTION_ORIGINAL} has what was there"
                    )

    async def _hand_over(self, seen: Object) -> None:
        """A list in a ConfigMap that others write, too, must not go with its NamespaceScopes."""
        live = await self._api.get(CONFIG_MAP, seen["metadata"]["name"], seen["metadata"]["namespace"])
        if live is None or not _written_by_others(live):
            return
        before = live["metadata"].get("ownerReferences") or []
        owners = [
            each for each in before if (each["apiVersion"], each["kind"]) != (NAMESPACE_SCOPE.api_version, NAMESPACE_SCOPE.kind)
        ]
        if owners == before:
            return
        self.done.kept.append(f"{key_of(live)}: others write it, too")
        if self._dry_run:
            return
        path = "/metadata/ownerReferences"
        steps = [{"op": "test", "path": path, "value": before}, {"op": "replace", "path": path, "value": owners}]
        await self._api.json_patch(CONFIG_MAP, live["metadata"]["name"], live["metadata"]["namespace"], steps)
        self._say(f"took the NamespaceScopes off the owners of {key_of(live)}")

    # -- the installation --------------------------------------------------------------------------------

    async def _remove_configuration(self) -> None:
        """The ConfigMaps of the configuration, whose names end in a hash."""
        for live in await self._list(CONFIG_MAP, SYSTEM_NAMESPACE, _selector(PART_OF)):
            await self._delete(CONFIG_MAP, live)

    async def _remove_policies(self) -> None:
        """Those that are in no file of today: generated ones, an earlier version's, or what an interrupted installation left."""
        for kind in (*GENERATED, *_ROLES):
            for live in await self._list(kind, selector=_selector(LABELS if kind in _ROLES else PART_OF)):
                await self._delete(kind, live)
        if self._crds and not self._dry_run:
            await until_in_force(self._api)  # one of them keeps a CRD

    async def _remove_products(self, *kinds: Kind) -> None:
        """Delete what functions made of these kinds, or everything that they made."""
        products = (product for function in descriptors().values() for product in function.makes)
        for made in (product for product in products if product.kind in kinds or not kinds):
            for live in await self._list(made.kind, selector=made.selector):
                if _written_by_functions(live):
                    await self._delete(made.kind, live)

    async def _leave_namespaces(self) -> None:
        """Namespaces of projects stay, without what functions remember on them."""
        for namespace in await self._list(NAMESPACE, selector=PROJECT_ID):
            if OPERATED in labels_of(namespace):
                self.done.kept.append(f"{key_of(namespace)}: may hold what people need; delete it when it does not")
            elif owns(namespace, REGISTRATION_MANAGER, "metadata", "labels", PROJECT_ID):
                await self._take_off(NAMESPACE, namespace, "labels", PROJECT_ID)

    async def _remove_crds(self) -> None:
        """Our CRDs, and the one that stands in for Knative's unless Knative has come since."""
        crds = documents(deployment_folder("knative") / "crds")
        stand_in = await self._api.get(CUSTOM_RESOURCE_DEFINITION, STAND_IN["metadata"]["name"])
        if stand_in is not None and _written_by_others(stand_in):
            self.done.kept.append(f"{key_of(stand_in)}: not Tenantry's alone")
        elif stand_in is not None:
            crds.append(STAND_IN)
        for crd in crds:
            await self._remove_file(crd)
        if not self._dry_run:
            await self._wait_for_crds([crd["metadata"]["name"] for crd in crds])

    async def _wait_for_crds(self, names: Iterable[str]) -> None:
        """A CRD goes when its last object is gone, which somebody's finalizer may hold for ever."""
        give_up_at = time.monotonic() + self._timeout_s
        for name in names:
            while is_terminating(await self._api.get(CUSTOM_RESOURCE_DEFINITION, name)):
                if time.monotonic() > give_up_at:
                    self.done.kept.append(f"{CUSTOM_RESOURCE_DEFINITION.kind} {name}: goes when its last object is gone")
                    break
                await asyncio.sleep(POLL_S)

    async def _remove_namespace(self, name: str) -> None:
        """A namespace that the installer made, if nothing of anybody is in it."""
        live = await self._api.get(NAMESPACE, name)
        if live is None or is_terminating(live):
            return
        mine = is_part_of(live)
        inside = [] if self._dry_run else await self._inside(name)
        if mine and not inside:
            await self._delete(NAMESPACE, live)
        else:
            why = f"it has {', '.join(inside[:5])}" if mine else "not made by Tenantry"
            self.done.kept.append(f"{key_of(live)}: {why}")

    async def _inside(self, namespace: str) -> list[str]:
        """What a namespace has that Kubernetes did not put there itself."""
        found: list[str] = []
        for api_version, names in _LOOKED_AT:
            for name in names:
                kind, _ = kind_of(api_version, name)
                found += [str(key_of(each)) for each in await self._list(kind, namespace) if _is_somebodys(each)]
        return found


_LOOKED_AT = (
    ("v1", ("ConfigMap", "Secret", "Service", "ServiceAccount", "Pod", "PersistentVolumeClaim")),
    ("apps/v1", ("Deployment", "StatefulSet", "DaemonSet")),
    ("batch/v1", ("Job", "CronJob")),
    ("rbac.authorization.k8s.io/v1", ("Role", "RoleBinding")),
    ("helm.cattle.io/v1", ("HelmChart", "HelmChartConfig")),
    ("helm.cattle.io/v1alpha1", ("HelmRelease", "ProjectHelmChart")),
)


def _is_somebodys(obj: Object) -> bool:
    key = key_of(obj)
    usual = (Key("v1", "ConfigMap", key.namespace, "kube-root-ca.crt"), Key("v1", "ServiceAccount", key.namespace, "default"))
    return key not in usual and not is_terminating(obj)


_RUNNING = (kind_of("serving.knative.dev/v1", "Service")[0], DEPLOYMENT, POD)


def _selector(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in labels.items())


def _holder(lease: Object) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or lease["metadata"]["name"])


def _written_by_functions(live: Object) -> bool:
    entries: Iterable[Object] = live["metadata"].get("managedFields") or ()
    return any(str(entry.get("manager", "")).startswith(MANAGERS) for entry in entries)


def _written_by_others(live: Object) -> bool:
    """Whether somebody else has fields of a live object that is not from a list, its status apart."""
    entries: Iterable[Object] = live["metadata"].get("managedFields") or ()
    return any(not str(entry.get("manager", "")).startswith(MANAGERS) for entry in entries if not entry.get("subresource"))
