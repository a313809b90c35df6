"""Bad inputs of the acceptance checks of Paas, each with the path that is refused, or warned of, under a configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from admitting import V1, V2, paas, paas_config, paas_ns
from paasing import CONFIG
from people import token

from tenantry.model.kinds import Object

CPU = "limits.cpu"
NAME = f"p{token()}"
"""A Paas of 9 characters that is kept while a test runs: PaasNS are in its namespace."""
HOME = f"{NAME}-cicd"
ROOM = 63 - len(NAME) - 1
"""How long the rest of a namespace's name may be."""
HIDDEN = ("\n", "\r", "\t", "\u2028", "\u202e")
ARGOCD = "spec.capabilities[argocd]"
LABELS = ("namespaceLabels", "groupLabels", "clusterQuotaLabels", "roleBindingLabels")
EXPRESSIONS = ("name", "groupName", "namespaceName", "requestor", "allowedQuotas")

CONFIGS: Mapping[str, dict[str, Any] | None] = {
    "none": None,
    "checks": {
        **CONFIG,
        "capabilities": {
            **CONFIG["capabilities"],
            "tekton": {"quotas": {"clusterwide": True, "defaults": {CPU: "1"}}},
            "app": {"quotas": {"defaults": {CPU: "1"}}, "custom_fields": {"key": {"required": True}, "other": {"default": "x"}}},
        },
        "maxAllowedSubmittedQuota": {"maxQuota": {CPU: "8"}},
        "protectedLabels": ["mine", "*.example.com/*"],
    },
    "reject": {**CONFIG, "unknownRolePolicy": "Reject", "unknownCapabilityPolicy": "Reject"},
    "ignore": {**CONFIG, "unknownRolePolicy": "Ignore"},
    "warn": {**CONFIG, "feature_flags": {"group_user_management": "warn"}},
    "block": {**CONFIG, "feature_flags": {"group_user_management": "block"}},
}
"""PaasConfigs by what is special about them."""


class Bad(NamedTuple):
    """A manifest, and the paths of what is said of it; ``expressions``: only the API server runs those that it needs."""

    body: Object
    paths: tuple[str, ...]
    refused: bool = True
    config: str = "none"
    expressions: bool = False

    def __str__(self) -> str:
        return f"{self.body['kind']} under {self.config}: {', '.join(self.paths)[:80]}"


def _capability(name: str = "argocd", **spec: Any) -> Object:
    return paas_config(capabilities={name: spec})


def _field(**field: Any) -> Object:
    return _capability(custom_fields={"key": field})


def _mistakes() -> Iterator[Bad]:
    """Each refusal of 2.10."""
    for field in EXPRESSIONS:
        yield Bad(paas_config(validations={"paas": {field: "("}}), (f"spec.validations.paas.{field}",), expressions=True)
    for part, field in (("paasNs", "name"), ("paasConfig", "capabilityName")):
        yield Bad(paas_config(validations={part: {field: "[a"}}), (f"spec.validations.{part}.{field}",), expressions=True)
    yield Bad(_field(validation="a**"), (f"{ARGOCD}.custom_fields[key].validation",), expressions=True)
    yield Bad(_field(validation="^a", default="b"), (f"{ARGOCD}.custom_fields[key].default",), expressions=True)
    quotas = f"{ARGOCD}.quotas"
    contradictions: list[tuple[Object, str]] = [
        ({"clusterwide": True, "defaults": {CPU: 2}, "min": {CPU: "2001m"}, "max": {CPU: 2}}, f"min[{CPU}]"),
        ({"defaults": {CPU: "3"}, "max": {CPU: "2"}}, f"defaults[{CPU}]"),
        ({"clusterwide": True, "defaults": {CPU: "3"}, "max": {CPU: "2"}}, f"defaults[{CPU}]"),
        ({"defaults": {CPU: "1"}, "min": {CPU: "2"}}, f"defaults[{CPU}]"),
        ({"defaults": {}, "min": {CPU: "2"}}, f"min[{CPU}]"),
        ({"max": {"pods": 2}}, "max[pods]"),
    ]
    yield from (Bad(_capability(quotas=each), (f"{quotas}.{path}",)) for each, path in contradictions)
    for key in ("a b", "/a", "A_b.example.com/a", "a" * 64):
        for field in ("quota_label", "managed_by_label", "requestor_label"):
            yield Bad(paas_config(**{field: key}), (f"spec.{field}",))
        for field in LABELS:
            yield Bad(paas_config(templating={field: {key: "a"}}), (f"spec.templating.{field}[{key}]",))
        yield Bad(paas_config(protectedLabels=["a", key]), ("spec.protectedLabels",))
    yield Bad(paas_config(protectedLabels=["*.a b/*"]), ("spec.protectedLabels",))
    yield Bad(paas_config(managed_by_suffix="a b"), ("spec.managed_by_suffix",))
    for text in ("{{ .Config.Spec.Debug }}", "{{ range .Paas.Spec.Groups }}", "{{ .Paas.Spec.Groups }}", "a {{"):
        for field in (*LABELS, "genericCapabilityFields"):
            yield Bad(paas_config(templating={field: {"key": text, "a": "b"}}), (f"spec.templating.{field}[key]",))
        yield Bad(_field(template=text), (f"{ARGOCD}.custom_fields[key].template",))
    for ways in (("required", "default"), ("required", "template"), ("default", "template")):
        written = {way: True if way == "required" else "a" for way in ways}
        yield Bad(_field(**written), (f"{ARGOCD}.custom_fields[key]",))
    yield from (Bad(_capability(name), (f"spec.capabilities[{name}]",)) for name in ("Argo", "a.b", "-a", "a" * 64, ""))
    for field in ("default_permissions", "extra_permissions"):
        for name in ("A", "a_b", "-a", "a" * 254, ""):
            yield Bad(_capability(**{field: {name: ["view"], "sa": ["view"]}}), (f"{ARGOCD}.{field}[{name}]",))
    for field in LABELS:
        for key in ("cpet.belastingdienst.nl/managed-by-paas", "tenantry.dev/x", "sub.tenantry.dev/x", "clusterquotagroup"):
            yield Bad(paas_config(templating={field: {key: "a", "b": "c"}}), (f"spec.templating.{field}[{key}]",))
        yield Bad(paas_config(quota_label="q", templating={field: {"q": "a"}}), (f"spec.templating.{field}[q]",))


def _schema_of_configs() -> Iterator[Bad]:
    """What the schema of a PaasConfig does not take."""
    rows: list[tuple[Object, str]] = [
        ({"argopermissions": {"role": "admin"}}, "spec.argopermissions.header"),
        ({"argopermissions": {"header": ""}}, "spec.argopermissions.header"),
        ({"rolemappings": {"default": "view"}}, "spec.rolemappings[default]"),
        ({"rolemappings": {"default": ["a"] * 65}}, "spec.rolemappings[default]"),
        ({"rolemappings": {"default": ["a", ""]}}, "spec.rolemappings[default][1]"),
        ({"rolemappings": {f"r{number}": [] for number in range(201)}}, "spec.rolemappings"),
        ({"capabilities": {f"c{number}": {} for number in range(201)}}, "spec.capabilities"),
        ({"capabilities": {"a": {"quotas": {"ratio": 1.5}}}}, "spec.capabilities[a].quotas.ratio"),
        ({"capabilities": {"a": {"quotas": {"defaults": {CPU: "-1"}}}}}, f"spec.capabilities[a].quotas.defaults[{CPU}]"),
        ({"capabilities": {"a": {"external": "yes"}}}, "spec.capabilities[a].external"),
        ({"maxAllowedSubmittedQuota": {"maxQuota": {CPU: "x"}}}, f"spec.maxAllowedSubmittedQuota.maxQuota[{CPU}]"),
        ({"feature_flags": {"group_user_management": "deny"}}, "spec.feature_flags.group_user_management"),
    ]
    fields = ("unknownRolePolicy", "unknownCapabilityPolicy", "quotaFallback", "groupFallback", "permissionScope")
    rows += [({field: "Other"}, f"spec.{field}") for field in fields]
    yield from (Bad(paas_config(**spec), (path,)) for spec, path in rows)


def _shapes() -> Iterator[Bad]:
    """What is refused of a Paas whatever is configured."""
    for name in ("a.b", "paas", "true", "kube", "kube-x", "openshift-x", "cattle-y", "tenantry", "a" * 64):
        yield Bad(paas(name, managedByPaas="b"), ("metadata.name",))
    without = paas(version=V1)
    del without["spec"]["requestor"]
    yield Bad(without, ("spec.requestor",))
    yield from (Bad(paas(version=version, requestor=""), ("spec.requestor",)) for version in (V1, V2))
    yield from (Bad(paas(requestor=each), ("spec.requestor",)) for each in ("a b", "r" * 64))
    yield from (Bad(paas(managedByPaas=each), ("spec.managedByPaas",)) for each in ("a b", "a" * 64))
    for entry in ("Test", "a_b", "-a", "a.b", "", "a" * (ROOM + 1)):
        yield Bad(paas(NAME, namespaces=[entry, "good"]), (f"spec.namespaces[{entry}]",))
        yield Bad(paas(NAME, namespaces={entry: {}, "good": {}}), (f"spec.namespaces[{entry}]",))
    for capability in ("Argo", "a.b", "a" * (ROOM + 1)):
        yield Bad(paas(NAME, capabilities={capability: {}}), (f"spec.capabilities[{capability}]",))
    yield from (Bad(paas(namespaces=each), ("spec.namespaces",)) for each in ("text", 5, [1, 2], [{"name": "a"}], ["a", None]))
    entries: list[Any] = [
        {"group": []},
        {"groups": "us"},
        {"groups": [1]},
        {"secrets": ["x"]},
        {"secrets": {"x": 1}},
        ["us"],
        "us",
    ]
    yield from (Bad(paas(namespaces={"a": each, "b": None}), ("spec.namespaces[a]",)) for each in entries)
    yield Bad(paas(groups={"us": {}}, namespaces={"a": {"groups": ["us", "nobody"]}}), ("spec.namespaces[a].groups",))
    for character in HIDDEN:
        shown = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}.get(character, character)
        yield Bad(paas(groups={f"a{character}b": {}}), (f'spec.groups["a{shown}b"]',))
        yield Bad(paas(groups={"us": {"query": f"CN=a{character}b,OU=x"}}), ("spec.groups[us].query",))
        yield Bad(paas(groups={"us": {"users": ["me", f"a{character}b"]}}), ("spec.groups[us].users",))
    yield Bad(paas(groups={"": {}}), ('spec.groups[""]',))
    yield Bad(paas(groups={"k" * 191: {}}), (f'spec.groups["{"k" * 191}"]',))
    yield Bad(paas("a" * 63, groups={"k" * 190: {}}), (f'spec.groups["{"k" * 190}"]',))
    queries = ["CN=system:authenticated", r"CN=\73ystem:masters", "system:masters", "CN=", ",OU=x", "CN=  ,OU=x", "CN=a+OU=b"]
    queries += ['CN=a"b', "CN=a;b", "CN=a<b", "CN=#41", r"CN=a\q", "CN=a\\", r"CN=\4", "+", r"CN=a\0Ab", "CN=" + "n" * 254]
    yield from (Bad(paas(groups={"us": {"query": each}}), ("spec.groups[us].query",)) for each in queries)
    yield Bad(paas(groups={"us": {"query": "CN=" + "n" * 1024}}), ("spec.groups[us].query",))


def _amounts() -> Iterator[Bad]:
    """Quantities and numbers that a Paas cannot have, and what is no Paas at all."""
    for amount in ("abc", "-1", -1, "1e999999", "+1", ".5", "1 Gi", "1" * 16, 1.5, True, ""):
        yield Bad(paas(quota={CPU: amount}), (f"spec.quota[{CPU}]",))
        yield Bad(paas(capabilities={"argocd": {"quota": {CPU: amount}}}), (f"{ARGOCD}.quota[{CPU}]",))
    users, roles = [f"u{number}" for number in range(10_001)], [f"r{number}" for number in range(65)]
    yield Bad(paas(groups={f"g{number}": {} for number in range(501)}), ("spec.groups",))
    yield Bad(paas(groups={"us": {"users": users}}), ("spec.groups[us].users",))
    yield Bad(paas(groups={"us": {"roles": roles}}), ("spec.groups[us].roles",))
    yield Bad(paas(groups={"us": {"users": ["me", ""]}}), ("spec.groups[us].users[1]",))
    yield Bad(paas(groups={"us": {"users": ["u" * 254]}}), ("spec.groups[us].users[0]",))
    yield Bad(paas(namespaces=[f"n{number}" for number in range(501)]), ("spec.namespaces",))
    yield Bad(paas(namespaces={f"n{number}": {} for number in range(501)}), ("spec.namespaces",))
    yield Bad(paas(capabilities={f"c{number}": {} for number in range(101)}), ("spec.capabilities",))
    rows: list[tuple[Object, str]] = [
        ({"groups": "us"}, "spec.groups"),
        ({"groups": {"us": ["me"]}}, "spec.groups[us]"),
        ({"groups": {"us": {"roles": "admin"}}}, "spec.groups[us].roles"),
        ({"capabilities": ["argocd"]}, "spec.capabilities"),
        ({"capabilities": {"argocd": "on"}}, ARGOCD),
        ({"capabilities": {"argocd": {"enabled": "yes"}}}, f"{ARGOCD}.enabled"),
        ({"capabilities": {"argocd": {"custom_fields": {"a": 1}}}}, f"{ARGOCD}.custom_fields[a]"),
        ({"requestor": 5}, "spec.requestor"),
        ({"quota": None}, "spec.quota"),
    ]
    yield from (Bad(paas(**spec), (path,)) for spec, path in rows)
    body = paas()
    del body["spec"]
    yield Bad(body, ("spec",))


def _configured() -> Iterator[Bad]:
    """What is refused of a Paas because administrators say so, but for expressions."""
    fields = "spec.capabilities[app].custom_fields"
    rows: list[tuple[Object, str]] = [
        (paas("paas-tekton"), "metadata.name"),
        *((paas(quota={CPU: each}), f"spec.quota[{CPU}]") for each in ("10", "8001m", 9, "1e1")),
        (paas(capabilities={"app": {}}), f"{fields}[key]"),
        (paas(capabilities={"app": {"custom_fields": {"key": ""}}}), f"{fields}[key]"),
        (paas(capabilities={"app": {"custom_fields": {"key": "a", "kay": "a"}}}), f"{fields}[kay]"),
        (paas(capabilities={"nope": {"custom_fields": {"key": "a"}}}), "spec.capabilities[nope].custom_fields[key]"),
        (paas(managedByPaas="b" * 57), "spec.managedByPaas"),
        (paas("a" * 57), "metadata.name"),
    ]
    yield from (Bad(body, (path,), config="checks") for body, path in rows)
    yield Bad(paas(groups={"us": {"roles": ["view", "viewer"]}, "them": {}}), ("spec.groups[us].roles",), config="reject")
    yield Bad(paas(capabilities={"nope": {}, "argocd": {}}), ("spec.capabilities[nope]",), config="reject")
    yield Bad(paas(groups={"us": {"users": ["me"]}, "them": {}}), ("spec.groups[us].users",), config="block")
    yield Bad(paas_config("second"), ("metadata.name",), config="checks")


def _warned() -> Iterator[Bad]:
    """What is admitted with a warning."""
    some, bounded = {"url": "x"}, {"pods": 1}
    rows: list[tuple[Object, str]] = [
        ({"groups": {"others": {"query": "CN=o", "users": ["me"]}, "us": {"users": ["me"]}}}, "spec.groups[others].users"),
        ({"groups": {"us": {"roles": ["view", "viewer"]}}}, "spec.groups[us].roles"),
        ({"capabilities": {"nope": {}, "off": {"enabled": False}}}, "spec.capabilities[nope]"),
        ({"capabilities": {"tekton": {"extra_permissions": True}}}, "spec.capabilities[tekton].extra_permissions"),
        ({"secrets": some}, "spec.secrets"),
        ({"sshSecrets": some}, "spec.sshSecrets"),
        ({"capabilities": {"argocd": {"sshSecrets": some}}}, f"{ARGOCD}.sshSecrets"),
        ({"capabilities": {"argocd": {"secrets": some}}}, f"{ARGOCD}.secrets"),
        ({"namespaces": {"a": {"secrets": some}, "b": None}}, "spec.namespaces[a].secrets"),
        ({"namespaces": ["a"], "quota": {}}, "spec.quota"),
        ({"quota": {"requests.cpu": "1500m", CPU: 1}}, "spec.quota[requests.cpu]"),
        ({"capabilities": {"argocd": {"quota": {"requests.cpu": 2, CPU: 1}}}}, f"{ARGOCD}.quota"),
    ]
    yield from (Bad(paas(**{"quota": bounded, **spec}), (path,), refused=False, config="checks") for spec, path in rows)
    keys = ("pod-security.kubernetes.io/enforce", "field.cattle.io/projectId", "tenantry.dev/x", "clusterquotagroup")
    for key in (*keys, "requestor", "argocd.argoproj.io/managed-by", "mine", "a.example.com/x"):
        body = paas(labels={key: "a", "team": "a", "helm.sh/chart": "b"}, quota=bounded)
        yield Bad(body, (f"metadata.labels[{key}]",), refused=False, config="checks")
    groups: Object = {"us": {"users": ["me"]}, "them": {"users": ["you"]}, "others": {"query": "CN=others"}, "nobody": {}}
    told = ("spec.groups[them].users", "spec.groups[us].users")
    yield Bad(paas(quota=bounded, groups=groups), told, refused=False, config="warn")
    yield Bad(
        paas(quota=bounded, groups={"us": {"roles": ["viewer"]}}), ("spec.groups[us].roles",), refused=False, config="ignore"
    )
    yield Bad(paas(quota=bounded, groups={"us": {"roles": ["view"]}, "them": {}}), (), refused=False, config="checks")


def _paas_ns() -> Iterator[Bad]:
    """PaasNS in a namespace of the Paas `NAME`, which has the group ``us``, and elsewhere."""
    yield Bad(paas_ns(HOME, groups=["us", "nobody"]), ("spec.groups",))
    yield Bad(paas_ns(HOME, paas=NAME, groups=["nobody"]), ("spec.groups",))
    for version in (V1, V2):
        yield Bad(paas_ns("default", version=version, paas=NAME), ("metadata.namespace",))
        yield Bad(paas_ns(HOME, version=version, paas="other-paas"), ("spec.paas",))
        for name in ("a.b", "a" * (ROOM + 1)):
            yield Bad(paas_ns(HOME, name, version, paas=NAME), ("metadata.name",))
    yield Bad(paas_ns(HOME, version=V1), ("spec.paas",))
    yield Bad(paas_ns(HOME, groups="us"), ("spec.groups",))
    for field in ("secrets", "sshSecrets"):
        yield Bad(paas_ns(HOME, **{field: {"url": "x"}}), (f"spec.{field}",), refused=False)
    yield Bad(paas_ns(HOME, groups=["us"]), (), refused=False)


MISTAKES = tuple(_mistakes())
EVERY = (*MISTAKES, *_schema_of_configs(), *_shapes(), *_amounts(), *_configured(), *_warned(), *_paas_ns())
