"""A PaasConfig: what makes no sense is refused with its path, and there is one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from admitting import V1, VERSIONS, Admitting, example_documents, paas_config, says
from paasing import CONFIG, CONFIG_NAME

from tenantry.model.kinds import Object

POLICY = "tenantry-guard-paas-config"
CPU = "limits.cpu"
ARGOCD = "spec.capabilities[argocd]"
LABELS = ("namespaceLabels", "groupLabels", "clusterQuotaLabels", "roleBindingLabels")
TEXTS = (*LABELS, "genericCapabilityFields")


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def nothing_is_left(admitting: Admitting) -> AsyncIterator[None]:
    """Each test begins without a PaasConfig."""
    yield
    await admitting.forget()


def capability(name: str = "argocd", **spec: Any) -> Object:
    return {"capabilities": {name: spec}}


def custom(**field: Any) -> Object:
    """A PaasConfig with one custom field."""
    return capability(custom_fields={"key": field})


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_makes_sense_is_admitted(admitting: Admitting, version: str) -> None:
    """The example of the source, the configuration of the checks, everything at once, and nothing at all."""
    (example, *_) = example_documents()
    everything = {
        **CONFIG,
        "capabilities": {
            "argocd": {
                "applicationset": "argoas",
                "default_permissions": {"argo-sa": ["a"], "a.b": ["c"]},
                "extra_permissions": {"argo-sa": ["a"]},
                "quotas": {"ratio": 0.25, "defaults": {CPU: "2", "pods": 5}, "min": {CPU: "2000m"}, "max": {CPU: 2, "pods": 7}},
                "custom_fields": {
                    "a": {"required": True, "validation": "^a+$"},
                    "b": {"required": False, "default": "bb", "validation": "^b+$"},
                    "c": {"template": "x-{{ .Paas.Name }}"},
                    "d": {},
                },
            },
            "tekton": {
                "quotas": {"clusterwide": True, "defaults": {CPU: 1}, "min": {CPU: 3}, "max": {CPU: 10}},
                "external": True,
            },
            "empty": None,
        },
        "argopermissions": {"header": "g, a, b"},
        "quota_label": "example.com/quota",
        "managed_by_label": "",
        "requestor_label": "",
        "protectedLabels": ["a", "example.com/a", "*.example.com/*"],
        "validations": {
            "paas": {"name": "^a", "allowedQuotas": "^(limits.cpu|pods)$"},
            "paasConfig": {"capabilityName": "^[a-z]*$"},
        },
        "maxAllowedSubmittedQuota": {"maxQuota": {"pods": 100}},
        "templating": {"namespaceLabels": {"example.com/a": "b", "requestor": "c"}},
        "decryptKeySecret": {"name": "a", "namespace": "b"},
        "groupsynclist": {"name": "a", "namespace": "b"},
        "groupsynclist_key": "a",
        "ldap": {"host": "a", "port": 1},
        "argoenabled": True,
        "debug": False,
        "components_debug": {"a": True},
    }
    for spec in (example["spec"], CONFIG, everything, {}, {"capabilities": None, "templating": {"namespaceLabels": None}}):
        await admitting.admitted(paas_config(version=version, **spec))


# -- one -------------------------------------------------------------------------------------------------------------


@pytest.mark.check("p-184", without="tenantry-guard-paas-config-one")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_second_one_is_refused(admitting: Admitting, version: str) -> None:
    """With the name of the first (p-53); the first can be changed and applied again, and when it is gone another one is taken."""
    await admitting.configure(**CONFIG)
    await admitting.refused(paas_config("second", version), "metadata.name: second would be a second PaasConfig", CONFIG_NAME)
    await admitting.configure(rolemappings={})
    await admitting.forget()
    await admitting.admitted(paas_config("second", version))


# -- regular expressions ---------------------------------------------------------------------------------------------


@pytest.mark.check("p-54", without=POLICY)
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_minimum_above_the_maximum_and_a_bad_expression_are_refused(admitting: Admitting, version: str) -> None:
    """Each with the field."""
    quotas = {"defaults": {CPU: 2}, "min": {CPU: 4}, "max": {CPU: 2}}
    await admitting.refused(
        paas_config(version=version, **capability(quotas=quotas)), f"{ARGOCD}.quotas.min[{CPU}]: 4 is above max"
    )
    for field in ("name", "groupName", "namespaceName", "requestor", "allowedQuotas"):
        bad = paas_config(version=version, validations={"paas": {field: "("}})
        await admitting.refused(bad, f"spec.validations.paas.{field}", "missing closing )")


@pytest.mark.parametrize("expression", ["(", "[a", "a**", "(?=a)", "\\", "x{2000}"])
async def test_an_expression_that_does_not_compile_is_refused(admitting: Admitting, expression: str) -> None:
    """Where there is one, with its path (2.10)."""
    await admitting.refused(paas_config(validations={"paasNs": {"name": expression}}), "spec.validations.paasNs.name")
    bad = paas_config(validations={"paasConfig": {"capabilityName": expression}})
    await admitting.refused(bad, "spec.validations.paasConfig.capabilityName")
    await admitting.refused(
        paas_config(**custom(validation=expression)), "spec.capabilities[argocd].custom_fields[key].validation"
    )


# -- quotas ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("quotas", "path"),
    [
        ({"defaults": {CPU: "3"}, "min": {CPU: "2001m"}, "max": {CPU: "2"}}, f"min[{CPU}]: 2001m is above max"),
        ({"defaults": {CPU: "3"}, "max": {CPU: "2"}}, f"defaults[{CPU}]: 3 is above max"),
        ({"clusterwide": True, "defaults": {CPU: "3"}, "max": {CPU: "2"}}, f"defaults[{CPU}]: 3 is above max"),
        ({"defaults": {CPU: "1"}, "min": {CPU: "2"}}, f"defaults[{CPU}]: 1 is below min"),
        ({"defaults": {}, "min": {CPU: "2"}}, f"min[{CPU}]: defaults lacks it"),
        ({"max": {"pods": 2}}, "max[pods]: defaults lacks it"),
        ({"defaults": {CPU: "x"}}, "defaults"),
        ({"ratio": 1.5}, "ratio"),
        ({"ratio": -0.1}, "ratio"),
    ],
)
async def test_quotas_that_contradict_each_other_are_refused(admitting: Admitting, quotas: Object, path: str) -> None:
    """Compared as numbers; a clusterwide default may be below the minimum, which is of the sum (2.10)."""
    said = await admitting.refused(paas_config(**capability(quotas=quotas)), path)
    assert "spec.capabilities" in said
    clusterwide = {"clusterwide": True, "defaults": {CPU: "1"}, "min": {CPU: "2"}, "max": {CPU: "2"}}
    await admitting.admitted(paas_config(**capability(quotas=clusterwide)))


# -- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.check("p-92", without=POLICY)
@pytest.mark.parametrize("name", ["Argo", "a.b", "a_b", "-a", "a" * 64, ""])
async def test_names_that_nothing_can_have_are_refused(admitting: Admitting, name: str) -> None:
    """Of capabilities, which are parts of namespaces' names, and of ServiceAccounts (2.10)."""
    await admitting.refused(paas_config(**capability(name)), f"spec.capabilities[{name}]: a name has")
    for field in ("default_permissions", "extra_permissions"):
        if name not in ("a.b", "a" * 64):
            bad = capability(**{field: {name: ["view"], "argo-sa": ["view"]}})
            await admitting.refused(paas_config(**bad), f"{ARGOCD}.{field}[{name}]: no name of a ServiceAccount")


async def test_names_of_capabilities_match_their_expression(admitting: Admitting) -> None:
    """validations.paasConfig.capabilityName (1.3)."""
    only = {"validations": {"paasConfig": {"capabilityName": "^cap-"}}}
    await admitting.refused(paas_config(**capability(), **only), f"{ARGOCD}: ", "and matches ^cap-")
    await admitting.admitted(paas_config(**capability("cap-a"), **only))


# -- labels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["a b", "/a", "a/", "a/b/c", "A_b.example.com/a", "a" * 64, "-a"])
async def test_no_label_has_an_illegal_key(admitting: Admitting, key: str) -> None:
    """Wherever one is configured (2.10)."""
    for field in ("quota_label", "managed_by_label", "requestor_label"):
        await admitting.refused(paas_config(**{field: key}), f"spec.{field}: {key}: no key of a label")
    for field in LABELS:
        await admitting.refused(paas_config(templating={field: {key: "a"}}), f"spec.templating.{field}[{key}]: no key of a label")
    await admitting.refused(paas_config(protectedLabels=["a", key]), f"spec.protectedLabels: {key}: no key of a label")
    await admitting.admitted(paas_config(templating={"genericCapabilityFields": {key: "a"}}))


async def test_patterns_of_protected_labels_are_judged(admitting: Admitting) -> None:
    """A pattern is a domain with what is below it, and the suffix is a part of a label's value."""
    await admitting.refused(paas_config(protectedLabels=["*.a b/*"]), "spec.protectedLabels: *.a b/*")
    await admitting.refused(paas_config(protectedLabels=["*/a"]), "spec.protectedLabels: */a")
    await admitting.refused(paas_config(managed_by_suffix="a b"), "spec.managed_by_suffix: a b")


@pytest.mark.parametrize("field", LABELS)
async def test_templates_write_no_label_of_ours(admitting: Admitting, field: str) -> None:
    """What functions find their own by, and what quotas select by, is refused; other built-in labels may be replaced (p-125)."""
    await admitting.refused(
        paas_config(templating={field: {"cpet.belastingdienst.nl/managed-by-paas": "a", "a": "b"}}),
        f"spec.templating.{field}[cpet.belastingdienst.nl/managed-by-paas]: written by functions",
    )
    for key in ("tenantry.dev/x", "sub.tenantry.dev/x", "clusterquotagroup"):
        await admitting.refused(
            paas_config(templating={field: {key: "a"}}), f"spec.templating.{field}[{key}]: written by functions"
        )
    await admitting.refused(paas_config(quota_label="q", templating={field: {"q": "a"}}), f"spec.templating.{field}[q]: written")
    for key in ("requestor", "argocd.argoproj.io/managed-by", "pod-security.kubernetes.io/enforce"):
        await admitting.admitted(paas_config(templating={field: {key: "a"}}))
    await admitting.admitted(paas_config(quota_label="q", templating={field: {"clusterquotagroup": "a"}}))


# -- placeholders ----------------------------------------------------------------------------------------------------


@pytest.mark.check("p-133", without=POLICY)
@pytest.mark.parametrize(
    "text",
    [
        "{{ .Config.Spec.Debug }}",
        "{{ range .Paas.Spec.Groups }}x{{ end }}",
        "{{ .Paas.Spec.Groups }}",
        "a {{",
        "{{ .Paas.Name",
        "{{ .Paas.Name }} {{ .paas.name }}",
        '{{ index .Paas.Labels "a" "b" }}',
        "{{ index .Paas.Labels a }}",
        '{{ (splitn "-" 2 .Paas.Name)._2 }}',
        '{{ (splitn "-" 3 .Paas.Name)._0 }}',
        "{{- .Paas.Name -}}",
        "{{ .Paas.Spec.Requestor | default .Paas.Name }}",
        "{{}}",
    ],
)
async def test_a_placeholder_that_is_not_known_is_refused(admitting: Admitting, text: str) -> None:
    """With the field's path, in templating and in the template of a custom field."""
    for field in TEXTS:
        await admitting.refused(
            paas_config(templating={field: {"key": text, "a": "b"}}), f"spec.templating.{field}[key]: a placeholder"
        )
    await admitting.refused(paas_config(**custom(template=text)), f"{ARGOCD}.custom_fields[key].template: a placeholder")


@pytest.mark.parametrize(
    "text",
    [
        "", "text", "a { b } } c", "{", "a{", "{a{{ .Paas.Name }}",
        "{{ .Paas.Name }}", "{{.Paas.Name}}", "x-{{  .Paas.Spec.Requestor  }}-y", "{{ .Paas.Spec.ManagedByPaas }}",
        "{{ .Paas.Spec.ManagedByPaas | default .Paas.Name }}", "{{.Paas.Spec.ManagedByPaas|default .Paas.Name}}",
        '{{ index .Paas.Labels "a.b/c" }}{{ index .Paas.Annotations "" }}', '{{index .Paas.Labels "a"}}',
        '{{ (splitn "-" 2 .Paas.Name)._0 }}: {{ (splitn "-" 2 .Paas.Name)._1 }}', "line\nfeed {{ .Paas.Name }}\n",
    ],
)  # fmt: skip
async def test_placeholders_that_are_known_are_admitted(admitting: Admitting, text: str) -> None:
    """Those of 2.15, with blanks inside the braces or without, in any text."""
    templating = {field: {"key": text} for field in TEXTS}
    await admitting.admitted(paas_config(templating=templating, **custom(template=text)))


# -- custom fields ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "field",
    [{"required": True, "default": "a"}, {"required": True, "template": "a"}, {"default": "a", "template": "a"}],
)
async def test_a_custom_field_has_one_source(admitting: Admitting, field: Object) -> None:
    """Required, default and template exclude each other (2.10)."""
    await admitting.refused(paas_config(**custom(**field)), f"{ARGOCD}.custom_fields[key]: a custom field has one of")
    await admitting.refused(paas_config(**custom(default="b", validation="^a")), f"{ARGOCD}.custom_fields[key].default: b")


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"argopermissions": {"role": "admin"}}, "spec.argopermissions.header"),
        ({"argopermissions": {"header": ""}}, "spec.argopermissions.header"),
        ({"unknownRolePolicy": "Deny"}, "spec.unknownRolePolicy"),
        ({"unknownCapabilityPolicy": "Ignore"}, "spec.unknownCapabilityPolicy"),
        ({"quotaFallback": "Half"}, "spec.quotaFallback"),
        ({"groupFallback": "Groups"}, "spec.groupFallback"),
        ({"permissionScope": "Paas"}, "spec.permissionScope"),
        ({"feature_flags": {"group_user_management": "deny"}}, "spec.feature_flags.group_user_management"),
        ({"rolemappings": {"default": "view"}}, "spec.rolemappings.default"),
        ({"rolemappings": {"default": ["a"] * 65}}, "spec.rolemappings.default"),
        ({"rolemappings": {f"r{number}": [] for number in range(201)}}, "spec.rolemappings"),
        ({"capabilities": {f"c{number}": {} for number in range(201)}}, "spec.capabilities"),
    ],
)
async def test_what_the_schema_does_not_know_is_refused(admitting: Admitting, spec: Object, path: str) -> None:
    """Values of enumerations, what is required inside, types and numbers (1.3, 1.5)."""
    await admitting.refused(paas_config(**spec), path)


async def test_only_a_spec_that_is_new_is_judged(admitting: Admitting) -> None:
    """What a policy would refuse today, and is there, can be labelled, held and told about, in either version."""
    body = await admitting.made(paas_config(CONFIG_NAME, V1, **CONFIG))
    for change in ({"metadata": {"labels": {"a": "b"}}}, {"metadata": {"finalizers": ["example.com/x"]}}):
        assert (await admitting.merge(body, change)).status == 200
    says(await admitting.merge(body, {"spec": {"quota_label": "a b"}}), "spec.quota_label: a b")
