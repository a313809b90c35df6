"""PaasConfigs and shared quotas as pure functions: what is wrong with one, its conditions, and what all Paas share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import owning
import pytest
from served import Served

from namespace_registration.paas_config.mistakes import mistakes_in
from namespace_registration.paas_config.plan import plan_config, plan_quota
from namespace_registration.paas_config.report import IGNORED, QUOTA_CONDITION, report_config, report_quota
from namespace_registration.paas_config.seen import MANAGER, UPSTREAM_FINALIZER, ConfigSeen, QuotaSeen
from namespace_registration.paas_config.unit import PaasConfigs
from tenantry.model.conditions import condition
from tenantry.model.kinds import Key, Kind, Object, key_of, object_of
from tenantry.model.paas.config import config_of
from tenantry.model.paas.declared import Paas, paas_of
from tenantry.model.paas.names import CLUSTER_RESOURCE_QUOTA, PAAS, PAAS_CONFIG, PAAS_UID, SHARED
from tenantry.model.plan import Apply, Delete, Plan, Refusal, RemoveFinalizers

CPU = "limits.cpu"
TEKTON: Object = {
    "clusterwide": True,
    "ratio": 0.1,
    "defaults": {CPU: 1},
    "min": {CPU: 3},
    "max": {CPU: 10},
}


def a_config(name: str = "c", created: str = "1", capabilities: Object | None = None, **spec: Any) -> Object:
    """A PaasConfig as it is stored."""
    metadata = {"name": name, "uid": f"uid-of-{name}", "resourceVersion": "5", "generation": 2, "creationTimestamp": created}
    return object_of(PAAS_CONFIG, metadata, spec={"capabilities": capabilities or {}, **spec})


def a_paas(name: str, cpu: str = "", *, on: bool = True, **metadata: Any) -> Object:
    """A Paas with tekton as it is stored."""
    spec = {"capabilities": {"tekton": {"enabled": on, "quota": {CPU: cpu} if cpu else {}}}}
    return object_of(PAAS, {"name": name, "uid": f"uid-of-{name}", "resourceVersion": "5", **metadata}, spec=spec)


def a_quota(**annotations: str) -> Object:
    """The ClusterResourceQuota paas-tekton."""
    metadata = {"name": "paas-tekton", "uid": "q", "resourceVersion": "7", "annotations": annotations}
    return object_of(CLUSTER_RESOURCE_QUOTA, metadata)


OURS = a_quota(**{SHARED: "quota"})
CONFIG = a_config(capabilities={"tekton": {"quotas": TEKTON}})


def quota_seen(*paas: Object, config: Object | None = CONFIG, live: Object | None = None) -> QuotaSeen:
    """The shared quota of tekton as it is."""
    found: list[Paas] = [paas_of(each) for each in paas]
    sharing = tuple(each for each in found if not each.deleted and "tekton" in each.enabled)
    known = config_of(config) if config is not None else None
    return QuotaSeen("tekton", True, known, config, live, sharing, frozenset(each.uid for each in found))


# -- mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capability", "path"),
    [
        ({"quotas": {"clusterwide": True, "defaults": {CPU: 1}, "min": {CPU: 4}, "max": {CPU: "2"}}}, "quotas.min[limits.cpu]"),
        ({"quotas": {"defaults": {CPU: "2001m"}, "max": {CPU: 2}}}, "quotas.defaults[limits.cpu]"),
        ({"quotas": {"defaults": {CPU: 1}, "min": {CPU: 2}}}, "quotas.defaults[limits.cpu]"),
        ({"quotas": {"min": {CPU: 2}}}, "quotas.min[limits.cpu]"),
        ({"quotas": {"max": {"pods": 2}}}, "quotas.max[pods]"),
        ({"default_permissions": {"A!": ["view"]}}, "default_permissions[A!]"),
        ({"extra_permissions": {"-a": ["view"]}}, "extra_permissions[-a]"),
        ({"custom_fields": {"f": {"required": True, "default": "x"}}}, "custom_fields[f]"),
        ({"custom_fields": {"f": {"template": "{{ .Paas.Spec.Groups }}"}}}, "custom_fields[f].template"),
    ],
)
def test_each_mistake_in_a_capability_is_found_with_its_path(capability: Object, path: str) -> None:
    """p-184: one by one, what a policy refuses and a function can see."""
    (found,) = mistakes_in(config_of(a_config(capabilities={"a": capability})))
    assert found.reason == "InvalidConfiguration"
    assert found.text.startswith((f"spec.capabilities[a].{path}:", f"spec.capabilities[a].{path} "))


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"capabilities": {"A_b": {}}}, "capabilities[A_b]"),
        ({"quota_label": "a b"}, "quota_label"),
        ({"requestor_label": "-"}, "requestor_label"),
        ({"managed_by_label": "a/b/c"}, "managed_by_label"),
        ({"templating": {"namespaceLabels": {"x y": "1"}}}, "templating.namespaceLabels[x y]"),
        ({"templating": {"groupLabels": {"tenantry.dev/x": "1"}}}, "templating.groupLabels[tenantry.dev/x]"),
        ({"templating": {"roleBindingLabels": {"x.tenantry.dev/y": "1"}}}, "templating.roleBindingLabels[x.tenantry.dev/y]"),
        ({"templating": {"namespaceLabels": {"clusterquotagroup": "1"}}}, "templating.namespaceLabels[clusterquotagroup]"),
        ({"templating": {"clusterQuotaLabels": {"x": "{{ range .Paas.Labels }}"}}}, "templating.clusterQuotaLabels[x]"),
        ({"templating": {"genericCapabilityFields": {"x": "{{"}}}, "templating.genericCapabilityFields[x]"),
    ],
)
def test_each_mistake_is_found_with_its_path(spec: Object, path: str) -> None:
    """p-184: one by one, what a policy refuses and a function can see."""
    (found,) = mistakes_in(config_of(a_config(**spec)))
    assert found.text.startswith(f"spec.{path}:")


def test_a_configuration_that_makes_sense_has_no_mistakes() -> None:
    """A default below min is no mistake where the quota is clusterwide, nor is a key with a domain, or a placeholder."""
    spec: Object = {
        "capabilities": {"tekton": {"quotas": TEKTON, "custom_fields": {"f": {"template": "{{ .Paas.Name }}"}}}, "empty": {}},
        "templating": {"namespaceLabels": {"requestor": "{{ .Paas.Spec.Requestor }}", "example.org/x": "1"}},
        "requestor_label": "",
        "managed_by_label": "",
    }
    assert mistakes_in(config_of(a_config(**spec))) == []


# -- conditions ------------------------------------------------------------------------------------------------------


def conditions(plan: Plan) -> dict[str, tuple[str, str, str]]:
    """Status, reason and message, by type."""
    (write,) = plan.writes()
    assert isinstance(write, Apply)
    assert (write.subresource, write.manager) == ("status", MANAGER)
    found = write.wanted["status"]["conditions"]
    assert all(each["observedGeneration"] == 2 for each in found)
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in found}


def told(live: Object, **seen: Any) -> dict[str, tuple[str, str, str]]:
    """The conditions of a PaasConfig that counts."""
    seen.setdefault("quotas_served", True)
    return conditions(report_config(ConfigSeen("c", live, "c", **seen), ()))


def test_the_one_in_use_without_anything_to_tell() -> None:
    """1.4: Active, no errors, no warnings."""
    found = told(a_config(capabilities={"argocd": {"quotas": {"defaults": {CPU: 8}}}}))
    assert {type_: each[:2] for type_, each in found.items()} == {
        "Active": ("True", "Reconciling"),
        "HasErrors": ("False", "Reconciling"),
        "Warnings": ("False", "Reconciling"),
    }


def test_another_one_is_not_active_whatever_is_in_it() -> None:
    """p-53: it names the one that is in use; what else it has without effect is not told."""
    found = conditions(report_config(ConfigSeen("c", a_config(quota_label="a b", debug=True), "older"), ()))
    assert found["Active"][:2] == ("False", "NotInUse")
    assert found["HasErrors"][:2] == ("True", "NotInUse")
    assert "PaasConfig older" in found["Active"][2]
    assert found["Warnings"][0] == "False"


def test_every_field_without_use_is_named() -> None:
    """p-162: whatever its value is."""
    unused: Object = dict.fromkeys(IGNORED, False)
    found = told(a_config(**unused))
    assert found["Warnings"][:2] == ("True", "IgnoredField")
    assert all(f"spec.{name}" in found["Warnings"][2] for name in IGNORED)


def test_each_warning() -> None:
    """p-112, p-149, p-153: missing ClusterRoles, quotas that are none, and what a cluster without ClusterResourceQuota means."""
    live = a_config(capabilities={"tekton": {"quotas": TEKTON}, "empty": {}, "out": {"external": True}})
    assert told(live)["Warnings"][1] == "NoQuota"
    assert told(live)["Warnings"][2].startswith("spec.capabilities[empty].quotas: without defaults")
    found = told(live, quotas_served=False, missing_roles=("a", "b"))["Warnings"]
    assert found[1] == "NoQuota"
    assert "spec.capabilities[tekton]: this cluster has no ClusterResourceQuota" in found[2]
    assert "ClusterRole a, b: bound, but not there" in found[2]
    assert "[out]" not in found[2]


def test_mistakes_that_got_in_are_errors_of_the_one_in_use() -> None:
    """2.10: it stays the one in use."""
    found = told(a_config(quota_label="a b"))
    assert found["Active"][0] == "True"
    assert found["HasErrors"][:2] == ("True", "InvalidConfiguration")
    assert "spec.quota_label" in found["HasErrors"][2]


def test_what_others_tell_on_it_is_joined() -> None:
    """A quota that cannot be made is an error, an element without a Paas a warning."""
    live = a_config()
    parts = [
        condition(f"{QUOTA_CONDITION}tekton", "False", "QuotaConflict", "quota x", 2),
        condition("tenantry.dev/HandOverWarnings", "True", "UnknownElement", "element y", 2),
        condition("example.org/Other", "False", "Bad", "not ours", 2),
    ]
    found = told({**live, "status": {"conditions": parts}})
    assert found["HasErrors"] == ("True", "QuotaConflict", "quota x")
    assert found["Warnings"] == ("True", "UnknownElement", "element y")


def test_upstream_s_finalizer_goes_with_a_deletion_only() -> None:
    """2.10, p-188: and a PaasConfig that only waited for it is not written any more."""
    live = a_config()
    live["metadata"]["finalizers"] = [UPSTREAM_FINALIZER]
    assert plan_config(ConfigSeen("c", live, "c")).changes(MANAGER) == []
    live["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    (write,) = plan_config(ConfigSeen("c", live)).writes()
    assert isinstance(write, RemoveFinalizers)
    assert report_config(ConfigSeen("c", live), ()).stages == ()
    live["metadata"]["finalizers"].append("example.org/other")
    assert conditions(report_config(ConfigSeen("c", live), ()))["Active"][:2] == ("False", "NotInUse")


# -- shared quotas ---------------------------------------------------------------------------------------------------


def hard(seen: QuotaSeen) -> Any:
    """What the quota is to have; "deleted" when it goes, None when nothing is written."""
    for write in plan_quota(seen).writes():
        if isinstance(write, Delete):
            return "deleted"
        assert isinstance(write, Apply)
        assert write.wanted["spec"]["selector"] == {"labels": {"matchLabels": {"clusterquotagroup": "paas-tekton"}}}
        assert write.wanted["metadata"]["annotations"] == {SHARED: "quota"}
        return write.wanted["spec"]["quota"]["hard"]
    return None


def test_the_quota_follows_from_all_paas_that_have_it_and_stay() -> None:
    """p-30, p-33, p-67: not those that are being deleted, or have it off."""
    going = a_paas("c", "9", deletionTimestamp="2026-01-01T00:00:00Z")
    assert hard(quota_seen(a_paas("a"), a_paas("b"), a_paas("d"))) == {CPU: "3"}
    assert hard(quota_seen(a_paas("a", "6"), a_paas("b"), going, a_paas("d", "9", on=False))) == {CPU: "7"}
    assert hard(quota_seen(going, live=OURS)) == "deleted"
    assert hard(quota_seen(going)) is None


def test_a_foreign_quota_is_left_alone_and_told() -> None:
    """2.6: also that of a single Paas; one that opr-paas made for a Paas that exists is taken over."""
    reference = {"apiVersion": "cpet.belastingdienst.nl/v1alpha1", "kind": "Paas", "name": "a", "uid": "uid-of-a"}
    upstream = a_quota()
    upstream["metadata"]["ownerReferences"] = [reference]
    assert hard(quota_seen(a_paas("a"), live=upstream)) == {CPU: "3"}
    for foreign in (a_quota(), a_quota(**{PAAS_UID: "uid-of-a"}), a_quota(**{SHARED: "permissions"})):
        seen = quota_seen(a_paas("a"), live=foreign)
        assert hard(seen) is None
        (write,) = report_quota(seen, ()).writes()
        assert isinstance(write, Apply)
        (found,) = write.wanted["status"]["conditions"]
        assert (found["type"], found["reason"]) == (f"{QUOTA_CONDITION}tekton", "QuotaConflict")
        assert write.manager != MANAGER
        assert write.event is not None


def test_a_refused_quota_is_told_with_the_fix() -> None:
    """Under the manager of that quota alone, so that quotas do not take each other's condition away."""
    refusal = Refusal(key_of(OURS), "admission", "no quotas today")
    (write,) = report_quota(quota_seen(a_paas("a")), [refusal]).writes()
    assert isinstance(write, Apply)
    (found,) = write.wanted["status"]["conditions"]
    assert found["reason"] == "AdmissionDenied"
    assert "change the admission policy" in found["message"]
    assert "no quotas today" in found["message"]
    assert report_quota(quota_seen(a_paas("a")), ()).stages == ()


def test_without_a_configuration_the_quota_stays_until_nobody_has_it() -> None:
    """2.10: what exists stays, and what a declaration takes away by itself still goes (p-37)."""
    assert hard(quota_seen(a_paas("a"), config=None, live=OURS)) is None
    assert hard(quota_seen(config=None, live=OURS)) == "deleted"


def test_a_capability_that_is_not_clusterwide_any_more_has_no_shared_quota() -> None:
    """p-186: and none while neither defaults nor a Paas say what is in it."""
    other = a_config(capabilities={"tekton": {"quotas": {**TEKTON, "clusterwide": False}}})
    assert hard(quota_seen(a_paas("a"), config=other, live=OURS)) == "deleted"
    empty = a_config(capabilities={"tekton": {"quotas": {"clusterwide": True}}})
    assert hard(quota_seen(a_paas("a"), config=empty, live=OURS)) == "deleted"
    assert hard(quota_seen(a_paas("a", "2"), config=empty, live=OURS)) == {CPU: "2"}


def test_nothing_is_done_where_the_kind_is_not_served_or_on_its_way_out() -> None:
    """p-149: plain Kubernetes."""
    assert hard(replace(quota_seen(a_paas("a")), served=False)) is None
    going = a_quota(**{SHARED: "quota"})
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert hard(quota_seen(a_paas("a"), live=going)) is None


# -- whom an event concerns ------------------------------------------------------------------------------------------


class Cluster(Served):
    """An API server with or without ClusterResourceQuota."""

    def __init__(self, *objects: Object, openshift: bool = True) -> None:
        super().__init__(*objects)
        self.openshift = openshift

    async def served(self, api_version: str, kind: str, *, again: bool = False) -> Kind | None:
        del again
        known = {each.gvk: each for each in (PAAS, PAAS_CONFIG, *((CLUSTER_RESOURCE_QUOTA,) if self.openshift else ()))}
        return known.get((api_version, kind))

    async def is_foreign(self, kind: Kind) -> bool:
        del kind
        return False


async def concerned(cluster: Cluster, kind: Kind, name: str) -> list[list[str]]:
    """Whom an event of a cluster-scoped object concerns, stage by stage."""
    key = Key(kind.api_version, kind.kind, "", name)
    return await owning.owners(PaasConfigs(), key, {}, cluster.reader([key]))


async def test_a_configuration_concerns_all_of_them_the_one_in_use_last() -> None:
    """At no moment do two say that they are in use; and every shared quota is looked at, also one that nothing configures."""
    left = {**OURS, "metadata": {**OURS["metadata"], "name": "paas-left"}}
    cluster = Cluster(CONFIG, a_config("younger", "2"), left, a_quota())
    expected = [["config/younger"], ["config/c", "quota/tekton", "quota/left"]]
    assert await concerned(cluster, PAAS_CONFIG, "younger") == expected
    assert await concerned(cluster, PAAS_CONFIG, "gone") == [["config/younger", "config/gone"], expected[1]]


async def test_a_paas_concerns_the_configured_shared_quotas() -> None:
    """Those there are where nothing is configured; none on plain Kubernetes, without a read."""
    assert await concerned(Cluster(CONFIG, OURS), PAAS, "a") == [["quota/tekton"]]
    assert await concerned(Cluster(OURS), PAAS, "a") == [["quota/tekton"]]
    plain = Cluster(CONFIG, openshift=False)
    assert await concerned(plain, PAAS, "a") == []
    assert plain.asked == []


async def test_a_quota_concerns_its_capability_only() -> None:
    """Quotas of single Paas and of others are no concern of it; a deleted one of a configured capability is."""
    assert await concerned(Cluster(CONFIG), CLUSTER_RESOURCE_QUOTA, "paas-tekton") == [["quota/tekton"]]
    assert await concerned(Cluster(CONFIG), CLUSTER_RESOURCE_QUOTA, "my-paas") == []
    assert await concerned(Cluster(CONFIG), CLUSTER_RESOURCE_QUOTA, "paas-x") == []
    assert await concerned(Cluster(OURS), CLUSTER_RESOURCE_QUOTA, "paas-tekton") == [["quota/tekton"]]
