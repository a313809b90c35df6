"""Rights as they are written: no more than what is needed, and enough for what is configured and watched."""

from __future__ import annotations

from typing import Any

import manifests
import pytest
import yaml
from manifests import Document, guessed_plural, sources

from tenantry.local.install import for_charts
from tenantry.local.kinds import kind_of
from tenantry.model.config import Config
from tenantry.model.flux.names import ACCESS_INDEX
from tenantry.model.paas.names import PAAS, PAAS_CONFIG, PAAS_NS

CONFIG = manifests.ROOT / "knative" / "config" / "tenantry.yaml"
OLM = manifests.ROOT / "knative" / "olm"
OPENSHIFT, ARGO = manifests.ROOT / "knative" / "openshift", manifests.ROOT / "knative" / "argo"
FLUX = tuple(
    manifests.ROOT / "knative" / name for name in ("flux", "flux-images", "flux-watcher", "flux-operator", "flux-tenants")
)
READ = {"get", "list", "watch"}
# Whoever has one of these can give himself more.
WORKLOADS = {"pods", "deployments", "jobs"}
RBAC = {"roles", "clusterroles", "rolebindings", "clusterrolebindings"}
ESCALATING = {"secrets", "pods", "deployments", "jobs"} | RBAC
VERBS = READ | {"create", "update", "patch", "delete"}
# Helm keeps its records in Secrets, and rights cannot select them by type: reading them means reading Secrets.
MAY_READ = {"tenantry-lock-enforcement": {"secrets"}, "tenantry-lock-source": {"secrets"}}

# A function whose promise is to give rights, and the unusual rights that it needs for it; nobody else has any.
GIVES_RIGHTS = {
    ("tenantry-rbac-aggregation", "rolebindings"): {"create", "patch", "delete"},
    ("tenantry-rbac-aggregation", "roles"): {"bind"},
    # The ClusterRoles of the PaasConfig, which a policy asks: administrators name them, so no list of names can stand here.
    ("tenantry-rbac-aggregation-paas", "clusterroles"): {"bind"},
    ("tenantry-rbac-aggregation-paas", "rolebindings"): {"create", "patch", "delete"},
    # The ClusterRole that a Tenant names, for the account of a namespace of its own.
    ("tenantry-rbac-aggregation-tenants", "clusterroles"): {"bind"},
    ("tenantry-rbac-aggregation-tenants", "rolebindings"): {"create", "patch", "delete"},
    ("tenantry-scope-binding-paas", "clusterroles"): {"bind"},
    ("tenantry-scope-binding-paas", "rolebindings"): {"create", "patch", "delete"},
    ("tenantry-scope-binding-paas", "clusterrolebindings"): {"create", "patch", "delete"},
    ("tenantry-release-provisioning-helm-jobs", "clusterroles"): {
        "bind"
    },  # the account of a Job that runs Helm gets the configured role
    ("tenantry-release-provisioning-helm-jobs", "clusterrolebindings"): {"create", "patch", "delete"},
    ("tenantry-release-provisioning-helm-jobs", "rolebindings"): {"create", "patch", "delete"},  # in the namespace of the release
    ("tenantry-scope-binding", "clusterroles"): {"create", "patch", "delete", "bind", "escalate"},
    ("tenantry-scope-binding", "rolebindings"): {"create", "patch", "delete"},
    ("tenantry-scope-binding-namespace-scopes", "rolebindings"): {"create", "patch", "delete"},
    ("tenantry-scope-binding", "clusterrolebindings"): {"create", "patch", "delete"},
    ("tenantry-scope-binding-namespace-scopes", "roles"): {"create", "patch", "delete", "bind", "escalate"},
    ("tenantry-scope-binding-namespace-scopes", "pods"): {"delete"},
    ("tenantry-scope-binding-namespace-scopes", "deployments"): {"patch"},
    ("tenantry-scope-binding", "scopetemplates/finalizers"): {"update"},  # owner references that block: admission asks for it
    ("tenantry-scope-binding", "scopeinstances/finalizers"): {"update"},
}
"""What is more than reading on kinds that give rights, each for a reason that stands in the function's rights.yaml."""
FOR_PEOPLE = "tenantry.dev/for"


def roles(found: list[Document]) -> dict[str, list[dict[str, Any]]]:
    """The rules of the roles of our identities, without those that are for people: bound to nobody, or aggregated."""
    return {
        d.name: d.body["rules"]
        for d in found
        if d.kind == "ClusterRole"
        and not aggregated_to(d)
        and "aggregationRule" not in d.body
        and FOR_PEOPLE not in (d.body["metadata"].get("labels") or {})
    }


def aggregated_to(document: Document) -> list[str]:
    """The roles of the cluster that a role adds to."""
    labels = document.body["metadata"].get("labels") or {}
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    return [label.removeprefix(prefix) for label in labels if label.startswith(prefix)]


def allows(rules: list[dict[str, Any]], group: str, resource: str) -> set[str]:
    matching = [rule for rule in rules if group in rule["apiGroups"] and resource in rule["resources"]]
    return {verb for rule in matching for verb in rule["verbs"]}


def config() -> dict[str, Any]:
    loaded = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def test_no_right_leads_to_more_rights(installed: list[Document]) -> None:
    """No identity of ours has a wildcard, an unusual verb, or a resource through which it could get further rights.

    Kinds that give rights may be read; who may do more with them is listed.
    """
    assert roles(installed)
    for name, rules in roles(installed).items():
        for rule in rules:
            more = {verb for resource in rule["resources"] for verb in GIVES_RIGHTS.get((name, resource), set())}
            assert set(rule["verbs"]) <= VERBS | more, f"{name}: {rule}"
            assert "*" not in rule["apiGroups"] + rule["resources"], f"{name}: {rule}"
            read_only = MAY_READ.get(name, set()) if set(rule["verbs"]) <= READ else set()
            assert not (ESCALATING - RBAC - WORKLOADS) & set(rule["resources"]) - read_only, f"{name}: {rule}"
            for resource in (RBAC | WORKLOADS) & set(rule["resources"]):
                allowed = READ | GIVES_RIGHTS.get((name, resource), set())
                assert set(rule["verbs"]) <= allowed, f"{name}: {rule}"
            assert "serviceaccounts/token" not in rule["resources"], name


def test_who_may_give_rights_is_decided_by_administrators(installed: list[Document]) -> None:
    """No role for ScopeTemplates or ScopeInstances is part of admin, edit or view, and those for people are bound to nobody."""
    scoping = [d for d in installed if d.kind == "ClusterRole" and "scopetemplates" in str(d.body.get("rules"))]
    people = {d.name for d in scoping if FOR_PEOPLE in d.body["metadata"]["labels"]}
    assert people
    assert not [d.name for d in scoping if aggregated_to(d)]
    assert not people & {d.body["roleRef"]["name"] for d in installed if d.kind == "ClusterRoleBinding"}


def test_every_rule_says_why() -> None:
    """Each rule in the files that give rights follows a comment that says what it is for."""
    for path in (p for p in manifests.files() if "rights" in p.name):
        lines = path.read_text(encoding="utf-8").splitlines()
        starts = [number for number, line in enumerate(lines) if line.startswith("  - apiGroups:")]

        assert starts, path
        for number in starts:
            above = lines[number - 1].strip()
            assert above.startswith(("#", "verbs:")), f"{path.name}:{number + 1} has no reason"
        assert lines[starts[0] - 1].strip().startswith("#"), path


def test_each_function_has_its_own_identity(installed: list[Document]) -> None:
    """Each role is bound to one service account, and no two functions share one, nor do duties that run apart."""
    aggregated = {d.name for d in installed if d.kind == "ClusterRole" and "aggregationRule" in d.body}
    every = [d for d in installed if d.kind == "ClusterRoleBinding"]
    bindings = [d for d in every if d.body["roleRef"]["name"] not in aggregated]
    accounts = [subject["name"] for d in bindings for subject in d.body["subjects"]]

    sourcing = {spec.service_account_name for _, spec in sources(installed)}
    assert sorted(accounts) == sorted({*sourcing, *manifests.services()} - {"scope-binding-olm"})
    switched_on = [d for d in manifests.resolve(OLM) if d.kind == "ClusterRoleBinding"]
    accounts = [subject["name"] for d in switched_on for subject in d.body["subjects"]]
    assert sorted(accounts) == ["scope-binding-olm", "tenantry-source-scope-binding-olm"]
    assert all(len(d.body["subjects"]) == 1 for d in every)
    assert sorted(d.body["roleRef"]["name"] for d in bindings) == sorted(roles(installed))


def test_what_people_get(installed: list[Document]) -> None:
    """Roles for people add nothing but ProjectHelmCharts: all verbs for admin, reading for edit and view."""
    found = {(level, d.name): d.body["rules"] for d in installed if d.kind == "ClusterRole" for level in aggregated_to(d)}
    charts = {name: rules for name, rules in found.items() if "projecthelmcharts" in name[1]}

    assert [level for level, _ in sorted(charts)] == ["admin", "edit", "view"]
    for (level, _), rules in charts.items():
        assert [rule["resources"] for rule in rules] == [["projecthelmcharts"]]
        verbs = set(rules[0]["verbs"])
        assert (verbs == READ) == (level != "admin")


def test_sources_can_watch_what_they_name(installation: list[Document]) -> None:
    """The identity of a source may read exactly the kinds that its function's sources watch, and may do nothing else.

    lock-enforcement's sees more: what selects the namespaces of locked objects.
    """
    apart = [document for folder in (OLM, OPENSHIFT, ARGO, *FLUX) for document in manifests.resolve(folder)]
    everything = [*installation, *apart]
    watched: dict[str, set[tuple[str, str]]] = {}
    for _, spec in sources(everything):
        kinds = {(each.api_version.rpartition("/")[0], kind_of(each.api_version, each.kind)[0].plural) for each in spec.resources}
        watched.setdefault(spec.service_account_name, set()).update(kinds)
    for account, kinds in watched.items():
        rules = roles(everything)[account]
        for kind in kinds:
            assert allows(rules, *kind) == READ, f"{account}: {kind}"
        assert {verb for rule in rules for verb in rule["verbs"]} == READ
        named = {(group, plural) for rule in rules for group in rule["apiGroups"] for plural in rule["resources"]}
        assert named - kinds == ({("", "namespaces")} if account == "tenantry-lock-source" else set()), account


def test_chart_config_maps_are_named_in_the_rights(installed: list[Document]) -> None:
    """The function may touch the ConfigMap of each configured chart, and no other."""
    rules = roles(installed)["tenantry-namespace-registration"]
    charts = Config.model_validate(config()).helm_project_operator.charts
    named = {name for rule in rules if "configmaps" in rule["resources"] for name in rule.get("resourceNames", [])}

    assert named == {chart.config_map_name for chart in charts}


def test_cluster_roles_of_levels_are_named_in_the_rights(installed: list[Document]) -> None:
    """The function may look at the ClusterRole of each configured level, and at no other."""
    rules = roles(installed)["tenantry-rbac-aggregation"]
    levels = Config.model_validate(config()).helm_project_operator.release_role_bindings.cluster_role_refs
    found = [rule for rule in rules if "clusterroles" in rule["resources"]]

    assert [set(rule["resourceNames"]) for rule in found] == [{levels.admin, levels.edit, levels.view}]


def test_roles_of_helms_jobs_are_named_in_the_rights(installed: list[Document]) -> None:
    """The function may bind the ClusterRoles that the configuration names for Helm's Jobs, and no others."""
    rules = roles(installed)["tenantry-release-provisioning-helm-jobs"]
    found = [set(rule["resourceNames"]) for rule in rules if "bind" in rule["verbs"]]

    assert found == [set(Config.model_validate(config()).job_cluster_roles)]


def test_without_cluster_admin_nobody_binds_in_all_namespaces(installed: list[Document]) -> None:
    """Where the configuration says it nowhere, an installation has neither the rule that binds it nor the one that names it."""
    (role,) = (d.body for d in installed if (d.kind, d.name) == ("ClusterRole", "tenantry-release-provisioning-helm-jobs"))
    narrow = Config.model_validate({"helmProjectOperator": {"helmController": {"administratorsClusterRole": ""}}})
    rules = for_charts(role, narrow)["rules"]

    assert allows(rules, "rbac.authorization.k8s.io", "clusterrolebindings") == {"get", "list", "delete"}
    assert [rule["resourceNames"] for rule in rules if "bind" in rule["verbs"]] == [["tenantry-helm-job"]]
    assert for_charts(role, Config())["rules"] == role["rules"]


def test_the_shipped_configuration_is_the_default() -> None:
    """The shipped configuration is valid, and says what an empty one would mean."""
    assert Config.model_validate(config()) == Config()


def missing(model: dict[str, Any], written: dict[str, Any], path: str = "") -> list[str]:
    found = []
    for key, value in model.items():
        below = f"{path}.{key}" if path else key
        if key not in written:
            found.append(below)
        elif isinstance(value, dict) and isinstance(written[key], dict):
            found += missing(value, written[key], below)
    return found


def test_the_shipped_configuration_shows_every_key() -> None:
    """Whoever reads the shipped configuration sees every key that there is."""
    assert missing(Config().model_dump(by_alias=True, mode="json"), config()) == []


def test_plurals_are_what_knative_guesses(installed: list[Document]) -> None:
    """The plural of each kind of ours is the one that Knative's API source guesses; another one is never watched, but by a source
    that names it, as those of Paas and of the AccessIndex do."""
    definitions = [d for d in installed if d.kind == "CustomResourceDefinition"]
    named = {each.kind for each in (PAAS, PAAS_NS, PAAS_CONFIG, ACCESS_INDEX)}

    assert definitions
    for definition in definitions:
        names, group = definition.spec["names"], definition.spec["group"]
        assert definition.name == f"{names['plural']}.{group}"
        for version in definition.spec["versions"]:
            if version["storage"]:
                assert kind_of(f"{group}/{version['name']}", names["kind"])[0].plural == names["plural"]
        assert names["plural"] == guessed_plural(names["kind"]) or names["kind"] in named


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("ProjectHelmChart", "projecthelmcharts"),
        ("NetworkPolicy", "networkpolicies"),
        ("Ingress", "ingresses"),
        ("Endpoints", "endpoints"),
        ("Gateway", "gatewaies"),
    ],
)
def test_the_guess_is_as_naive_as_knatives(kind: str, plural: str) -> None:
    """The guess of these tests is the one that Knative makes, its mistakes included."""
    assert guessed_plural(kind) == plural
