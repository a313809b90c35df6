"""The lint of sources and Triggers: what Knative accepts without a word and then does wrong.

The facts are those of Knative eventing 1.22: a filter with an empty value is skipped and then everything
matches, and inside ``not`` it ends the filter process; a Trigger's delivery replaces the broker's as a whole; a
missing timeout means none; an adapter with a namespace selector restarts when a namespace comes or goes.
"""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import manifests
import pytest
from croniter import croniter
from manifests import Document, guessed_plural, seconds, sources

from tenantry.local.specs import Watched
from tenantry.model.flux.consumers import APPLIED, GENERATED, IMAGES, OPERATED
from tenantry.model.flux.names import ACCESS_INDEX, IMAGE_REPOSITORIES, SOURCE_KINDS
from tenantry.model.paas.names import PAAS, PAAS_CONFIG, PAAS_NS
from tenantry.serving.installed import descriptor_of, service_named

DIALECTS = {"exact", "prefix", "suffix", "all", "any", "not"}
CLUSTER_SCOPED = manifests.CLUSTER_SCOPED
MODES = {"Resource": "resource", "Reference": "ref"}


def plural_of(watched: Watched) -> str:
    """The resource name of a kind: of ours as its CRD says, of others as Knative guesses."""
    known = {kind.kind: kind.plural for kind in (PAAS, PAAS_NS, PAAS_CONFIG, ACCESS_INDEX)}
    return known.get(watched.kind) or guessed_plural(watched.kind)


def complaints(filters: list[dict[str, Any]]) -> list[str]:
    """What is wrong with the filters of a Trigger, at any depth."""
    found = []
    for one in filters:
        if len(one) != 1 or not one.keys() <= DIALECTS:
            found.append(f"one dialect per filter, not {sorted(one)}")
            continue
        ((dialect, content),) = one.items()
        if not content:
            found.append(f"{dialect} is empty")
        elif dialect in {"all", "any"}:
            found += complaints(content)
        elif dialect == "not":
            found += complaints([content])
        else:
            found += [f"{dialect} {key} has an empty value" for key, value in content.items() if value == ""]
            found += [f"{dialect} {key} is no attribute" for key in content if not re.fullmatch("[a-z][a-z0-9]*", key)]
            found += [f"{dialect} {key} is no string" for key, value in content.items() if not isinstance(value, str)]
    return found


def passes(filters: list[dict[str, Any]], event: dict[str, str]) -> bool:
    """Whether an event passes the filters; of the dialects those that our Triggers use."""
    return all(passes_one(one, event) for one in filters)


def passes_one(one: dict[str, Any], event: dict[str, str]) -> bool:
    ((dialect, content),) = one.items()
    if dialect == "any":
        return any(passes_one(below, event) for below in content)
    if dialect == "exact":
        return all(event.get(key) == value for key, value in content.items())
    if dialect == "prefix":
        return all(event.get(key, "").startswith(value) for key, value in content.items())
    raise AssertionError(f"teach this test the dialect {dialect}")


def of_kind(found: list[Document], *kinds: str) -> list[Document]:
    return [d for d in found if d.kind in kinds and d.group.endswith("knative.dev")]


def receivers(found: list[Document], event: dict[str, str]) -> list[str]:
    """The subscribers that an event reaches, one entry per Trigger that passes it."""
    triggers = of_kind(found, "Trigger")
    return [t.spec["subscriber"]["ref"]["name"] for t in triggers if passes(t.spec["filters"], event)]


@pytest.mark.parametrize("function", manifests.functions())
def test_each_function_has_its_files(function: str) -> None:
    """What deploys a function and what wakes it are found under its own name."""
    assert (manifests.ROOT / "triggers" / f"{function}.yaml").is_file()
    assert (manifests.ROOT / "knative" / function / "kustomization.yaml").is_file()


def test_no_filter_fails_open(documents: list[Document]) -> None:
    """No filter has an empty value or mixes dialects, at any depth."""
    for trigger in of_kind(documents, "Trigger"):
        assert trigger.spec["filters"], f"{trigger} would match everything"
        assert "filter" not in trigger.spec, f"{trigger}: filters win over filter, so filter misleads"
        assert not complaints(trigger.spec["filters"]), str(trigger)


@pytest.mark.parametrize(
    "bad",
    [
        {"exact": {"namespace": ""}},
        {"exact": {}},
        {"any": [{"exact": {"kind": "Namespace"}}, {"prefix": {"namespace": ""}}]},
        {"not": {"exact": {"namespace": ""}}},
        {"all": [{"not": {"any": [{"suffix": {"name": ""}}]}}]},
        {"all": []},
        {"exact": {"kind": "Namespace"}, "prefix": {"name": "a"}},
        {"exact": {"apiVersion": "v1"}},
        {"equals": {"kind": "Namespace"}},
    ],
)
def test_the_lint_finds_bad_filters(bad: dict[str, Any]) -> None:
    """The lint finds each form of filter that Knative would skip, at any depth."""
    assert len(complaints([bad])) == 1


def test_each_trigger_writes_its_delivery_out(installation: list[Document]) -> None:
    """Every Trigger says how often, how long and how patiently to try, and where a hopeless event ends; all say the same.

    With the place goes who gave up.
    """
    triggers, (broker,) = of_kind(installation, "Trigger"), of_kind(installation, "Broker")
    delivery = broker.spec["delivery"]

    assert triggers
    assert set(delivery) == {"retry", "backoffPolicy", "backoffDelay", "timeout", "deadLetterSink"}
    assert delivery["backoffPolicy"] == "exponential"
    for trigger in triggers:
        function = service_named(trigger.spec["subscriber"]["ref"]["name"]).function
        sink = {**delivery["deadLetterSink"], "uri": f"/{function}"}  # Knative's own attributes do not always say who gave up
        assert trigger.spec["delivery"] == {**delivery, "deadLetterSink": sink}, str(trigger)
        assert delivery["deadLetterSink"]["ref"] != trigger.spec["subscriber"]["ref"], f"{trigger} is its own dead end"


COLD_START_S = 35
"""A function whose image a node has yet to pull from a slow registry; the figures are in docs/event-path.md."""


def test_tries_outlast_a_cold_start(installation: list[Document]) -> None:
    """The tries go on for longer than a function takes to start on a cold node, and end before two sweeps have passed."""
    (broker,) = of_kind(installation, "Broker")
    delivery = broker.spec["delivery"]
    begins = [seconds(delivery["backoffDelay"]) * (2**n - 1) for n in range(delivery["retry"] + 1)]

    assert broker.body["metadata"]["annotations"].get("messaging.knative.dev/async-handler", "true") == "true"  # or sources wait
    assert COLD_START_S < begins[-1] < 10 * 60
    assert all(later - sooner <= COLD_START_S for sooner, later in itertools.pairwise(begins))


def test_timeouts_are_nested(installation: list[Document]) -> None:
    """A run is ended before the broker gives up on it, so no event is repeated while its first run goes on."""
    limits = {d.name: d.spec["template"]["spec"]["timeoutSeconds"] for d in of_kind(installation, "Service")}
    limits |= {
        d.name: d.spec["template"]["spec"]["terminationGracePeriodSeconds"] for d in installation if d.kind == "Deployment"
    }
    triggers = of_kind(installation, "Trigger")

    assert triggers
    for trigger in triggers:
        assert limits[trigger.spec["subscriber"]["ref"]["name"]] < seconds(trigger.spec["delivery"]["timeout"]), str(trigger)


def test_sources_of_cluster_scoped_kinds_have_no_selector(documents: list[Document]) -> None:
    """An ApiServerSource of cluster-scoped kinds has no namespace selector and no other kinds: no new namespace restarts it.

    Of kinds whose plural Knative would guess wrongly the adapter itself is the source, with whatever other kinds.
    """
    for source, spec in sources(documents):
        kinds = {watched.kind for watched in spec.resources}
        if {watched.kind for watched in spec.resources if plural_of(watched) != guessed_plural(watched.kind)}:
            assert source.kind == "ContainerSource", f"{source}: Knative would watch something else"
            continue

        assert kinds <= CLUSTER_SCOPED or not kinds & CLUSTER_SCOPED, f"{source} mixes both"
        if kinds & CLUSTER_SCOPED:
            assert source.kind == "ApiServerSource", str(source)
        assert spec.mode in MODES


def test_no_namespace_replaces_an_adapter(documents: list[Document]) -> None:
    """No source has a namespace selector, for then every new namespace replaces its adapter."""
    assert of_kind(documents, "ContainerSource")
    for source in of_kind(documents, "ApiServerSource"):
        assert "namespaceSelector" not in source.spec, str(source)


def test_container_sources_run_the_adapter(documents: list[Document]) -> None:
    """Each runs the same release of Knative's adapter, under its own name, everywhere, and bounds its sends."""
    images = set()
    for source in of_kind(documents, "ContainerSource"):
        (container,) = source.spec["template"]["spec"]["containers"]
        env = {each["name"]: each["value"] for each in container["env"]}
        configuration = json.loads(env["K_SOURCE_CONFIG"])
        ((_, spec),) = sources([source])
        images.add(container["image"])

        assert (env["NAME"], env["NAMESPACE"]) == (source.name, source.namespace)
        assert (configuration["allNamespaces"], configuration["namespaces"]) == (True, [""])
        assert configuration["mode"] == spec.mode
        for resource, watched in zip(configuration["resources"], spec.resources, strict=True):
            gvr = resource["gvr"]
            assert gvr["Resource"] == plural_of(watched)
            assert f"{gvr['Group']}/{gvr['Version']}".lstrip("/") == watched.api_version
            assert resource.get("selector", "") == str(watched.selector)
        assert 0 < int(env["K_SINK_TIMEOUT"]) < seconds("PT60S")
    assert len(images) == 1


BUILT_IN = {"", "admissionregistration.k8s.io", "apiextensions.k8s.io", "batch", "networking.k8s.io", "rbac.authorization.k8s.io"}
"""Groups that every API server serves; a test of the API server asks for the kinds in them."""
KNATIVES_OWN = ("sources.knative.dev/v1", "ApiServerSource")
"""Whoever serves a source of this kind serves the kind that it watches."""
OLM = {("operators.coreos.com/v1alpha1", "ClusterServiceVersion"), ("operators.coreos.com/v1", "OperatorGroup")}
OPENSHIFT = {("user.openshift.io/v1", "Group"), ("quota.openshift.io/v1", "ClusterResourceQuota")}
ARGO = {("argoproj.io/v1alpha1", "ApplicationSet"), ("argoproj.io/v1beta1", "ArgoCD")}
PARTS = {"": (*SOURCE_KINDS, *APPLIED), "-images": (IMAGE_REPOSITORIES, *IMAGES), "-watcher": GENERATED, "-operator": OPERATED}
FLUX = {f"knative/flux{part}": {kind.gvk for kind in kinds} for part, kinds in PARTS.items()}
FLUX["knative/flux-tenants"] = {SOURCE_KINDS[0].gvk, ("kustomize.toolkit.fluxcd.io/v1", "Kustomization")}
SWITCHED_ON = {"knative/olm": OLM, "knative/openshift": OPENSHIFT, "knative/argo": ARGO, **FLUX}
"""Folders that are applied where another system is, and the kinds of that system."""


@pytest.mark.parametrize("folder", [*manifests.WAYS, *SWITCHED_ON])
def test_sources_name_what_is_served(folder: str) -> None:
    """Each kind of a source is built in, or ours by exactly that version, or of the system that the source is switched on with.

    Knative's adapter ends at once, and for ever, where one group and version of its source is not served.
    """
    crds = [d.spec for d in manifests.resolve(manifests.ROOT / "knative" / "crds")]
    ours = {
        (f"{crd['group']}/{each['name']}", crd["names"]["kind"]) for crd in crds for each in crd["versions"] if each["served"]
    }
    found = sources(manifests.resolve(manifests.ROOT / folder))

    assert found
    for source, spec in found:
        for watched in spec.resources:
            kind = watched.api_version, watched.kind
            group = watched.api_version.rpartition("/")[0]
            switched_on = SWITCHED_ON.get(folder, set())
            assert group in BUILT_IN or kind in ours | switched_on or kind == (source.api_version, source.kind) == KNATIVES_OWN, (
                f"{source}: {kind}"
            )


def test_every_source_is_installed_or_switched_on(documents: list[Document]) -> None:
    """There is no source that neither the default installation has nor a folder that a test here knows."""
    known = {d.path for folder in ("knative", *SWITCHED_ON) for d in manifests.resolve(manifests.ROOT / folder)}

    assert {source.path for source, _ in sources(documents)} <= known


def test_every_change_reaches_its_function(documents: list[Document]) -> None:
    """Every event of a source passes one Trigger of each Service of its function that it concerns, and there is such a one.

    In either mode and whatever happened.
    """
    for source, spec in sources(documents):
        service = source.body["metadata"]["labels"]["app.kubernetes.io/name"]
        for watched in spec.resources:
            for event in events_about(watched.api_version, watched.kind, dict(spec.ce_overrides.extensions)):
                heard = [
                    each
                    for each in receivers(documents, event)
                    if service_named(each).function == service_named(service).function
                ]
                assert heard, f"{source}: {event}"
                assert len(heard) == len(set(heard)), f"{source}: {event}"


def events_about(api_version: str, kind: str, extensions: dict[str, str]) -> list[dict[str, str]]:
    """The events of a source about an object, in either mode and whatever happened."""
    about = {"kind": kind, "apiversion": api_version, "name": "a", "namespace": "", **extensions}
    types = [f"dev.knative.apiserver.{mode}.{change}" for mode in MODES.values() for change in ("add", "update", "delete")]
    return [{"type": type_, **about} for type_ in types]


RBAC = "rbac.authorization.k8s.io/v1"
EARLIER = {
    "namespace-registration-owned": [("v1", "ConfigMap"), ("v1", "ServiceAccount"), ("networking.k8s.io/v1", "NetworkPolicy")],
    "rbac-aggregation-owned": [("helm.cattle.io/v1alpha1", "ProjectHelmChart"), (RBAC, "RoleBinding"), (RBAC, "Role")],
    "release-provisioning-owned": [
        ("helm.cattle.io/v1alpha1", "ProjectHelmChart"),
        ("helm.cattle.io/v1", "HelmChart"),
        ("helm.cattle.io/v1", "HelmChartConfig"),
        ("helm.cattle.io/v1alpha1", "HelmRelease"),
        ("batch/v1", "Job"),
        ("v1", "ConfigMap"),
    ],
    "scope-binding-owned": [(RBAC, "RoleBinding"), *OLM],
    "scope-binding-namespace-scopes": [
        ("operator.ibm.com/v1", "NamespaceScope"),
        ("v1", "ConfigMap"),
        ("v1", "ServiceAccount"),
        ("v1", "Pod"),
        (RBAC, "Role"),
        (RBAC, "RoleBinding"),
    ],
    "lock-enforcement-records": [("v1", "Secret"), ("v1", "ConfigMap")],
}
"""The ApiServerSources of earlier installations: an upgrade leaves them until somebody deletes them."""


@pytest.mark.parametrize("name", EARLIER)
def test_sources_of_an_earlier_installation_are_still_heard(documents: list[Document], name: str) -> None:
    """Whatever a source that an upgrade left behind tells still reaches its function, and each Service of it once."""
    function = next(each for each in manifests.functions() if name.startswith(each))
    extensions = {"locked": "records"} if name == "lock-enforcement-records" else {"watch": function}

    assert name in {source.name for source in of_kind(documents, "ContainerSource")}
    for api_version, kind in EARLIER[name]:
        for event in events_about(api_version, kind, extensions):
            heard = receivers(documents, event)
            assert heard, event
            assert len(heard) == len(set(heard)), event
            assert function in {service_named(service).function for service in heard}, event


def test_no_change_reaches_a_function_twice(documents: list[Document]) -> None:
    """Of all the sources that announce a change to an object, a function listens to one; only selections may differ."""
    heard: dict[tuple[str, str, str], list[str]] = {}
    for _, spec in sources(documents):
        for watched in spec.resources:
            event = {"type": "dev.knative.apiserver.ref.update", "kind": watched.kind, "apiversion": watched.api_version}
            for function in receivers(documents, {**event, **spec.ce_overrides.extensions}):
                heard.setdefault((function, watched.api_version, watched.kind), []).append(str(watched.selector))

    assert all("" not in selections or len(selections) == 1 for selections in heard.values()), heard
    assert all(len(set(selections)) == len(selections) for selections in heard.values()), heard


UNITS = {
    **dict.fromkeys(("release-provisioning", "rbac-aggregation"), "projects"),
    **dict.fromkeys(("release-provisioning-paas", "rbac-aggregation-paas", "scope-binding-paas"), "paas"),
    **dict.fromkeys(("release-provisioning-tenants", "rbac-aggregation-tenants"), "tenants"),
    "release-provisioning-helm-jobs": "jobs",
    "scope-binding": "scopes",
    "scope-binding-namespace-scopes": "namespace-scopes",
    "scope-binding-olm": "olm",
    "scope-binding-sources": "sources",
    "lock-enforcement": "releases",
    "lock-enforcement-access": "access",
}
"""Of each Service that runs apart from others of its function the unit."""


@pytest.mark.parametrize("function", manifests.functions())
def test_every_function_sweeps_and_takes_requests(documents: list[Document], function: str) -> None:
    """Each function gets its own schedule event, in all of its Services, and its own requests, and no other function's."""
    services = tuple(each.name for each in descriptor_of(function).services)
    assert sorted(receivers(documents, {"type": "dev.knative.sources.ping", "resync": function})) == sorted(services)
    for service in services:
        asked = {"type": "dev.tenantry.reconcile.requested", "function": function}
        assert receivers(documents, {**asked, "unit": UNITS.get(service, "any")}) == [service]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "com.example.created", "kind": "Namespace", "apiversion": "v1"},
        {"type": "dev.knative.apiserver.resource.add", "kind": "Secret", "apiversion": "v1"},
        {"type": "dev.knative.apiserver.resource.add", "kind": "Namespace", "apiversion": "example.com/v1"},
        {"type": "dev.knative.apiserver.resource.add", "kind": "Namespace", "apiversion": "v1"},
        {"type": "dev.knative.apiserver.resource.add", "kind": "Namespace", "apiversion": "v1", "watch": "somebody-else"},
        {"type": "dev.knative.sources.ping"},
        {"type": "dev.knative.sources.ping", "resync": "somebody-else"},
        {"type": "dev.tenantry.reconcile.requested"},
    ],
)
def test_foreign_events_reach_nobody(documents: list[Document], event: dict[str, str]) -> None:
    """Events of other producers on the same broker wake no function."""
    assert receivers(documents, event) == []


def test_schedules(documents: list[Document]) -> None:
    """A sweep is a JSON object, comes every 5 to 15 minutes, and no two sweeps come in one minute."""
    minutes: list[int] = []
    for source in of_kind(documents, "PingSource"):
        fields, _ = croniter.expand(source.spec["schedule"])
        own = sorted(int(minute) for minute in fields[0])
        gaps = [(b - a) % 60 or 60 for a, b in zip(own, own[1:] + own[:1], strict=True)]

        assert json.loads(source.spec["data"]) == {"resync": "all"}
        assert source.spec["contentType"] == "application/json"
        assert fields[1:] == [["*"]] * 4
        assert all(5 <= gap <= 15 for gap in gaps), f"{source}: {gaps}"
        minutes += own

    assert minutes
    assert len(minutes) == len(set(minutes))


def test_all_of_one_file_belongs_to_one_function(documents: list[Document]) -> None:
    """Names and labels in a function's trigger file are the function's own."""
    for document in documents:
        if document.path.parts[0] == "triggers":
            assert service_named(document.body["metadata"]["labels"]["app.kubernetes.io/name"]).function == document.path.stem
            assert document.name.startswith(f"{document.path.stem}-")
