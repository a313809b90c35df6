"""Two versions of Paas without a conversion webhook: one schema, either shape through either version, columns and names."""

from __future__ import annotations

import copy
import secrets
from typing import Any

import pytest
from admitting import V1, V2, VERSIONS, Admitting, Answer, example_documents, in_version, of_example, paas, paas_config
from paasing import paas_name
from times import SERVED_S

from tenantry.api import Api
from tenantry.local.deployment import deployment_folder, documents
from tenantry.model.kinds import CUSTOM_RESOURCE_DEFINITION, NAMESPACE, Kind, Object
from tenantry.model.paas.names import GROUP_OF_KINDS, MANAGED_BY_PAAS, PAAS, PAAS_CONFIG, PAAS_NS
from tenantry.testing import eventually
from tenantry.testing.objects import obj

FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def other(version: str) -> str:
    return V2 if version == V1 else V1


async def read(admitting: Admitting, kind: Kind, version: str, name: str, namespace: str = "") -> Object:
    answer = await admitting.ask("GET", in_version(kind, version).path(namespace, name))
    assert answer.status == 200, answer
    return answer.body


# -- the source's example --------------------------------------------------------------------------------------------


async def test_the_example_of_the_source_applies_as_it_is(admitting: Admitting) -> None:
    """Its three documents are taken, without a warning of the schema; the PaasNS where the namespace is the Paas' (p-61)."""
    config, declared, inside = example_documents()
    for body in (config, declared):
        answer = await admitting.apply(body, dry=True)
        assert answer.status == 201, answer
        assert answer.warnings == ()
    async with admitting.kept(declared):
        await admitting.namespace(home := inside["metadata"]["namespace"], declared["metadata"]["name"])
        answer = await admitting.apply(inside, dry=True)
        assert (answer.status, answer.warnings) == (201, ())
        await admitting.admin.delete(NAMESPACE, home)


# -- either shape, through either version ----------------------------------------------------------------------------


@pytest.mark.check("p-83")
@pytest.mark.parametrize("through", VERSIONS)
@pytest.mark.parametrize("made_in", VERSIONS)
@pytest.mark.parametrize("shape", VERSIONS)
async def test_an_object_is_worked_on_through_either_version(
    admitting: Admitting, shape: str, made_in: str, through: str
) -> None:
    """Applied again it does not change, and differs in nothing; the apply of another manager writes once, as does that of the
    same one in another version, by which managers differ; labels, annotations, finalizers, status, spec, deletion go as ever."""
    spec = of_example("x", shape)["spec"]
    body = obj(in_version(PAAS, made_in), paas_name(), spec=spec)
    name = body["metadata"]["name"]
    first = await admitting.apply(body)
    assert first.status == 201, first
    assert first.body["spec"]["namespaces"] == spec["namespaces"]

    async def unchanged(answer: Answer) -> str:
        assert answer.status == 200, answer
        return str(answer.body["metadata"]["resourceVersion"])

    again = {**body, "apiVersion": through}
    stands = first.body["metadata"]["resourceVersion"]
    assert await unchanged(await admitting.apply(body)) == stands
    merged = await admitting.merge(again, {"spec": spec}, dry=False)  # what kubectl apply does on the client's side
    assert await unchanged(merged) == stands
    dry = await admitting.apply(again, dry=True)
    live = await read(admitting, PAAS, through, name)
    for each in (dry.body, live):
        del each["metadata"]["managedFields"]
    assert dry.body == live
    for manager in ("tests", "another"):
        written = await unchanged(await admitting.apply(again, manager))
        assert (written == stands) is (manager == "tests" and through == made_in)
        assert await unchanged(await admitting.apply(again, manager)) == written
    assert (await read(admitting, PAAS, through, name))["metadata"]["generation"] == 1

    condition = {"type": "Ready", "status": "True", "reason": "Reconciling", "message": "", "observedGeneration": 1}
    status = {"namespaces": ["a"], "conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    steps: list[tuple[Object, str]] = [
        ({"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["example.com/x"]}}, ""),
        ({"status": status}, "status"),
        ({"spec": {"groups": {"us": {"users": ["me", "you", "he"]}}, "managedByPaas": "other"}}, ""),
    ]
    for change, subresource in steps:
        assert await unchanged(await admitting.merge(again, change, dry=False, subresource=subresource)) != written
    for version in VERSIONS:
        found = await read(admitting, PAAS, version, name)
        assert found["status"] == status
        assert found["spec"]["groups"]["us"]["users"] == ["me", "you", "he"]
        assert found["spec"]["namespaces"] == spec["namespaces"]
    assert (await admitting.ask("DELETE", in_version(PAAS, through).path("", name))).status == 200
    assert (await admitting.merge(again, {"metadata": {"finalizers": []}}, dry=False)).status == 200
    assert await admitting.admin.get(PAAS, name) is None


@pytest.mark.check("p-84")
@pytest.mark.parametrize("written", [{}, None], ids=["empty", "nothing"])
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_capability_is_on_by_the_version_it_is_written_in(admitting: Admitting, version: str, written: Any) -> None:
    """Where nothing says whether it is: off in v1alpha1, on in v1alpha2, and stored so."""
    async with admitting.kept(paas(version=version, capabilities={"argocd": written})) as body:
        for each in VERSIONS:
            found = await read(admitting, PAAS, each, body["metadata"]["name"])
            assert found["spec"]["capabilities"] == {"argocd": {"enabled": version == V2}}


async def test_what_is_stored_does_not_turn_on_by_itself(admitting: Admitting) -> None:
    """The same manifest, applied in the other version, leaves a capability as it was, until enabled is written (p-85)."""
    body = paas(version=V1, capabilities={"tekton": {}})
    assert (await admitting.apply(body)).body["spec"]["capabilities"]["tekton"] == {"enabled": False}
    body["apiVersion"] = V2
    assert (await admitting.apply(body)).body["spec"]["capabilities"]["tekton"] == {"enabled": False}
    body["spec"]["capabilities"]["tekton"] = {"enabled": True}
    assert (await admitting.apply(body)).body["spec"]["capabilities"]["tekton"] == {"enabled": True}
    await admitting.admin.delete(PAAS, body["metadata"]["name"])


async def test_nothing_under_a_group_is_a_group_without_anything(admitting: Admitting) -> None:
    """`us:` with nothing is `us: {}`, also for a server-side apply after a client-side one (1.6)."""
    async with admitting.kept(paas(version=V1, groups={"us": None, "them": {}})) as body:
        assert body["spec"]["groups"] == {"us": {}, "them": {}}
        again = {part: body[part] for part in ("apiVersion", "kind")} | {
            "metadata": {"name": body["metadata"]["name"]},
            "spec": {"requestor": "team", "quota": {}, "groups": {"us": None, "them": None}},
        }
        answer = await admitting.apply(again, force=True)  # nothing is not the same as {}: who else wrote that is asked
        assert answer.status == 200, answer
        assert answer.body["spec"]["groups"] == {"us": {}, "them": {}}


@pytest.mark.parametrize("version", VERSIONS)
async def test_whatever_is_declared_can_be_declared_away(admitting: Admitting, version: str) -> None:
    """A server-side apply may leave nothing in any map, or write it empty: it is empty then, not null, which nothing is."""
    kind, name = in_version(PAAS, version), paas_name()
    capability = {"enabled": True, "quota": {"pods": 1}, "custom_fields": {"a": "b"}, "secrets": {"a": "b"}}
    full = {
        "requestor": "team",
        "quota": {"pods": 1},
        "groups": {"us": {"users": ["me"], "roles": ["admin"]}},
        "namespaces": {"a": {"groups": ["us"]}},
        "capabilities": {"argocd": capability},
        "secrets": {"a": "b"},
    }
    empty = {part: {} for part in ("quota", "custom_fields", "secrets")}
    emptied: list[Object] = [
        {**full, "groups": {"us": {}}, "namespaces": {"a": {}}, "capabilities": {"argocd": {}}},
        {**full, "capabilities": {"argocd": {"enabled": True, **empty}}},
        {"requestor": "team", **{part: {} for part in full if part != "requestor"}},
        {"requestor": "team", "quota": {}},
    ]
    for spec in emptied:
        for each in (full, spec):
            answer = await admitting.apply(obj(kind, name, spec=each))
            assert answer.status in (200, 201), (each, answer)
        assert answer.body["spec"].get("groups") == spec.get("groups", {})
        assert answer.body["spec"]["quota"] == spec["quota"]
    await admitting.admin.delete(PAAS, name)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_config_can_be_declared_away(admitting: Admitting, version: str) -> None:
    """The same of a PaasConfig; and applied again it does not change."""
    (example, *_) = example_documents()
    capability = {
        "default_permissions": {"a": ["b"]},
        "extra_permissions": {"a": ["b"]},
        "quotas": {"defaults": {"pods": 1}, "min": {"pods": 1}},
        "custom_fields": {"a": {"default": "b"}},
    }
    full = {
        **example["spec"],
        "capabilities": {"argocd": capability, "tekton": {}},
        "validations": {"paas": {"name": "a"}},
        "templating": {"namespaceLabels": {"a": "b"}},
        "maxAllowedSubmittedQuota": {"maxQuota": {"pods": 1}},
        "feature_flags": {"group_user_management": "warn"},
    }
    emptied: list[Object] = [
        {**full, "capabilities": {"argocd": {part: {} for part in capability}}},
        {**full, "capabilities": {"argocd": {}, "tekton": {}}},
        {part: {} for part in full if isinstance(full[part], dict) and part != "argopermissions"},
        {},
    ]
    for spec in emptied:
        for each in (full, spec):
            answer = await admitting.apply(paas_config("a", version, **each))
            assert answer.status in (200, 201), (each, answer)
            again = await admitting.apply(paas_config("a", version, **each))
            assert again.body["metadata"]["resourceVersion"] == answer.body["metadata"]["resourceVersion"]
    await admitting.admin.delete(PAAS_CONFIG, "a")
    await admitting.forget()


async def test_only_v1alpha1_asks_for_a_requestor(admitting: Admitting) -> None:
    """What was made without one through v1alpha2 can be labelled and changed through v1alpha1 (p-88)."""
    async with admitting.kept(paas()) as body:
        old = {**body, "apiVersion": V1}
        for change in ({"metadata": {"labels": {"a": "b"}}}, {"spec": {"namespaces": ["a"]}}):
            answer = await admitting.merge(old, change, dry=False)
            assert answer.status == 200, answer


# -- what is installed -----------------------------------------------------------------------------------------------


def ours(kind: Kind) -> Object:
    name = f"{kind.plural}.{GROUP_OF_KINDS}"
    (found,) = [each for each in documents(deployment_folder("knative") / "crds") if each["metadata"]["name"] == name]
    return copy.deepcopy(found)


@pytest.mark.check("p-89")
@pytest.mark.parametrize("kind", [PAAS, PAAS_NS, PAAS_CONFIG], ids=lambda kind: kind.kind)
async def test_nothing_has_to_run_for_either_version(admitting: Admitting, admin: Api, kind: Kind) -> None:
    """No webhook is named, and with no function at work both versions are written, read and listed."""
    crd = await admin.get(CUSTOM_RESOURCE_DEFINITION, f"{kind.plural}.{kind.group}")
    assert crd is not None
    assert crd["spec"]["conversion"] == {"strategy": "None"}
    assert {each["name"]: each["storage"] for each in crd["spec"]["versions"]} == {"v1alpha1": False, "v1alpha2": True}

    await admitting.namespace(home := f"n{secrets.token_hex(4)}", "x")
    namespace = home if kind.namespaced else ""
    spec = {PAAS: {"quota": {}, "requestor": "a"}, PAAS_NS: {"paas": "x"}, PAAS_CONFIG: {}}[kind]
    for version in VERSIONS:
        served = in_version(kind, version)
        made = await admitting.made(obj(served, f"x{secrets.token_hex(4)}", namespace, spec=spec))
        name = made["metadata"]["name"]
        changed = await admitting.merge(made, {"metadata": {"labels": {"a": version[-1]}}}, dry=False)
        assert changed.status == 200, changed
        for each in VERSIONS:
            found = await read(admitting, kind, each, name, namespace)
            assert (found["apiVersion"], found["metadata"]["labels"]) == (each, {"a": version[-1]})
            listed = await admitting.ask("GET", in_version(kind, each).path(namespace))
            assert name in {item["metadata"]["name"] for item in listed.body["items"]}
        await admin.delete(kind, name, namespace)
        if kind == PAAS_CONFIG:
            await admitting.forget()
    await admin.delete(NAMESPACE, home)


@pytest.mark.check("p-90")
async def test_what_upstream_stored_is_read_as_enabled(admitting: Admitting, admin: Api) -> None:
    """An object that another CRD stored in v1alpha2, which does not know `enabled`: after ours replaced the CRD it is the same
    object, and both versions read it so."""
    crd = ours(PAAS)
    group = f"{secrets.token_hex(4)}.example.com"
    crd["metadata"]["name"], crd["spec"]["group"] = f"paas.{group}", group
    theirs = copy.deepcopy(crd)
    for version in theirs["spec"]["versions"]:
        version["schema"] = {"openAPIV3Schema": FREE}
    await admin.create(CUSTOM_RESOURCE_DEFINITION, theirs)
    kinds = {version: Kind(f"{group}/{version.rpartition('/')[2]}", "Paas", "paas", namespaced=False) for version in VERSIONS}

    async def served() -> bool:
        return (await admitting.ask("GET", kinds[V2].path())).status == 200

    await eventually(served, within=SERVED_S, what="the other CRD is served")
    spec = {"quota": {}, "capabilities": {"argocd": {}, "tekton": {"extra_permissions": True}}}
    before = await admin.create(kinds[V2], obj(kinds[V2], "a", spec=spec))

    live = await admin.get(CUSTOM_RESOURCE_DEFINITION, f"paas.{group}")
    assert live is not None
    crd["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
    replaced = await admitting.ask("PUT", CUSTOM_RESOURCE_DEFINITION.path("", f"paas.{group}"), crd)
    assert replaced.status == 200, replaced

    async def enabled() -> bool:
        found = await admitting.ask("GET", kinds[V2].path("", "a"))
        return found.status == 200 and found.body["spec"]["capabilities"]["argocd"] == {"enabled": True}

    await eventually(enabled, within=SERVED_S, what="ours is served")
    for version in VERSIONS:
        found = await admitting.ask("GET", kinds[version].path("", "a"))
        assert found.body["spec"]["capabilities"] == {
            "argocd": {"enabled": True},
            "tekton": {"enabled": True, "extra_permissions": True},
        }
        assert found.body["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
        assert found.body["metadata"]["uid"] == before["metadata"]["uid"]
    await admin.delete(CUSTOM_RESOURCE_DEFINITION, f"paas.{group}")


async def test_the_versions_differ_in_one_default() -> None:
    """One schema for both, but for whether a capability is enabled where nothing is written (1.6)."""
    for kind in (PAAS, PAAS_NS, PAAS_CONFIG):
        one, two = ours(kind)["spec"]["versions"]
        if kind == PAAS:
            defaults = [capability_of(each)["enabled"].pop("default") for each in (one, two)]
            assert defaults == [False, True]
        assert one["schema"] == two["schema"]
        assert one["additionalPrinterColumns"] == two["additionalPrinterColumns"]


def capability_of(version: Object) -> Object:
    """The properties of a capability in a version's schema."""
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    found: Object = spec["capabilities"]["additionalProperties"]["properties"]
    return found


@pytest.mark.check("p-165")
@pytest.mark.parametrize("version", VERSIONS)
async def test_lists_show_what_people_look_for(admitting: Admitting, admin: Api, version: str) -> None:
    """The columns of Paas, PaasNS and PaasConfig, and the short name pns, as kubectl asks for them."""
    name = paas_name()
    home = f"{name}-cicd"
    await admin.create(NAMESPACE, obj(NAMESPACE, home, labels={MANAGED_BY_PAAS: name}))
    when = {"lastTransitionTime": "2026-01-01T00:00:00Z", "message": ""}
    ready = {"type": "Ready", "status": "False", "reason": "GroupConflict", **when}
    active = {"type": "Active", "status": "True", "reason": "Reconciling", **when}
    rows: list[tuple[Object, Object, list[str], list[str]]] = [
        (
            paas(name, version, requestor="me"),
            {"conditions": [ready]},
            ["Ready", "Reason", "Requestor"],
            ["False", "GroupConflict", "me"],
        ),
        (
            obj(in_version(PAAS_NS, version), "a", home, spec={"paas": name}),
            {"conditions": [ready], "namespace": f"{name}-a"},
            ["Ready", "Reason", "Namespace"],
            ["False", "GroupConflict", f"{name}-a"],
        ),
        (paas_config(name, version), {"conditions": [active]}, ["Active", "Reason"], ["True", "Reconciling"]),
    ]
    for body, status, columns, cells in rows:
        await admitting.made(body)
        change = {"status": status}
        assert (await admitting.merge(body, change, dry=False, subresource="status")).status == 200
        kind = {each.kind: each for each in (PAAS, PAAS_NS, PAAS_CONFIG)}[body["kind"]]
        table = await admitting.table(in_version(kind, version))
        assert [each["name"] for each in table["columnDefinitions"]] == ["Name", *columns, "Age"]
        found = [row["cells"][:-1] for row in table["rows"]]
        assert [body["metadata"]["name"], *cells] in found
        await admin.delete(kind, body["metadata"]["name"], body["metadata"].get("namespace", ""))
    await admin.delete(NAMESPACE, home)
    await admitting.forget()
    served = (await admitting.ask("GET", f"/apis/{version}")).body["resources"]
    names = {each["name"]: each.get("shortNames", []) for each in served if "/" not in each["name"]}
    assert names == {"paas": [], "paasns": ["pns"], "paasconfig": []}
