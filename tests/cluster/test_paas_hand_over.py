"""The hand-over of capabilities: elements of ApplicationSets, which others write too (4.14, 4.15, p-77)."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio
from admitting import Admitting, in_version
from admitting import paas as body_of
from configuring import got_in
from flawless import Calm
from handing_over import (
    FIELDS,
    OTHER,
    PART,
    PLACE,
    QUESTION,
    SET,
    TOKEN,
    HandingOver,
    Plugin,
    about,
    argo,
    ask,
    handing,
    handing_over,
    without_elements_of,
)
from paasing import example, paas_name, together
from people import token
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.api.errors import ConflictError, RefusedError
from tenantry.local.knative import Knative
from tenantry.model.kinds import EVENT, Object, annotations_of, finalizers_of
from tenantry.model.paas.names import APPLICATION_SET, ARGO_CD, ELEMENTS, HAND_OVER_FINALIZER, PAAS, PAAS_CONFIG
from tenantry.testing import eventually
from tenantry.testing.objects import obj

V1 = in_version(PAAS, "cpet.belastingdienst.nl/v1alpha1")
GIT = {"git": {"repoURL": "https://git.example.com/all", "values": {"number": 1.5}, "revision": ""}}
FOREIGN = [{"cluster": "in", "weight": 0.1}, {"paas": 7}, {"paas": ""}, "text"]


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Plugin:
    """There is no token at first."""
    return Plugin(tmp_path_factory.mktemp("plugin") / "token", [])


@pytest.fixture(scope="module")
def paasing(admin: Api) -> HandingOver:
    """Authors of Paas, and the administrator of the PaasConfig and of ApplicationSets."""
    return HandingOver(admin)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api, plugin: Plugin) -> Knative:
    """The hand-over, where Argo CD is and may ask for elements."""
    environment = {"TENANTRY_PLUGIN_TOKEN_FILE": str(plugin.file), "TENANTRY_LOG_LEVEL": "debug"}
    return await handing(flawlessly, admin, environment=environment, on_log=lambda _, line: plugin.logs.append(str(line)))


@pytest.fixture
async def empty(system: Knative, paasing: HandingOver) -> AsyncIterator[None]:
    """Both ApplicationSets with an empty list, and the configuration of these tests, also afterwards."""
    await together(paasing.application_set(), paasing.application_set(OTHER))
    yield
    await paasing.config()


@pytest.mark.check("p-134")
async def test_a_capability_is_handed_over_as_an_element(empty: None, paasing: HandingOver) -> None:
    """With its fields and nothing else; git fields too, as v1alpha1 has them."""
    name, other = paas_name(), paas_name()
    spec = example()
    spec["capabilities"]["argocd"]["custom_fields"] = {"git_url": "https://git.example.com/x"}
    await paasing.paas(name, **spec)
    await paasing.element_of(name, {"git_url": "https://git.example.com/x"})
    assert await paasing.elements() == [{"paas": name, "git_url": "https://git.example.com/x"}]
    found = await paasing.get(APPLICATION_SET, SET, PLACE)
    assert annotations_of(found)[ELEMENTS] == "argocd"
    assert HAND_OVER_FINALIZER in finalizers_of(await paasing.get(PAAS, name))
    await paasing.says(name, PART, "Reconciling", status="True")

    git = {"gitUrl": "u", "gitRevision": "r", "gitPath": "p"}
    await paasing.admin.create(V1, obj(V1, other, spec={**argo(**git), "quota": {}}))
    await paasing.element_of(other, {"git_url": "u", "git_revision": "r", "git_path": "p"})
    await together(paasing.leave(name), paasing.leave(other))
    assert await paasing.elements() == []


@pytest.mark.check("p-128")
async def test_a_field_has_the_value_of_the_paas_else_its_default(empty: None, paasing: HandingOver) -> None:
    """Or what its template gives; fields for all capabilities win."""
    name = paas_name()
    await paasing.config(capabilities=handing_over(fields=FIELDS))
    await paasing.paas(name, **argo())
    await paasing.element_of(name, {"git_revision": "main", "team": "team"})
    await paasing.paas(name, **argo(custom_fields={"git_revision": "v1", "team": "own"}))
    await paasing.element_of(name, {"git_revision": "v1", "team": "own"})
    generic = {"genericCapabilityFields": {"team": "{{ .Paas.Name }}: {{ .Paas.Spec.ManagedByPaas | default .Paas.Name }}"}}
    await paasing.config(capabilities=handing_over(fields=FIELDS), templating=generic)
    await paasing.element_of(name, {"git_revision": "v1", "team": f"{name}: {name}"})
    await paasing.leave(name)


TEXTS = {
    "name": ("{{ .Paas.Name }}", "{name}"),
    "requestor": ("{{.Paas.Spec.Requestor}}", "team"),
    "managed": ("<{{ .Paas.Spec.ManagedByPaas }}>", "<>"),
    "managed_or": ("{{ .Paas.Spec.ManagedByPaas | default .Paas.Name }}", "{name}"),
    "label": ('{{ index .Paas.Labels "example.org/team" }}', "a"),
    "no_label": ('<{{ index .Paas.Labels "none" }}>', "<>"),
    "annotation": ('{{ index .Paas.Annotations "odd" }}', "{odd}"),
    "no_annotation": ('<{{ index .Paas.Annotations "none" }}>', "<>"),
    "first": ('{{ (splitn "-" 2 .Paas.Name)._0 }}', "{first}"),
    "rest": ('{{  (splitn "-" 2 .Paas.Name)._1  }}', "{rest}"),
    "several": ("{{ .Paas.Name }}: {\n{{ .Paas.Spec.Requestor }} } }}", "{name}: {{\nteam }} }}}}"),
}
"""Placeholders in fixed text, and what they give."""
ODD = "a: b\npaas: other\n{{ .Paas.Name }} }} {x: [y]}\n---\n\tz"


@pytest.mark.check("p-132")
async def test_each_placeholder_gives_one_value(empty: None, paasing: HandingOver) -> None:
    """In templates of custom fields and in fields for all capabilities; what is not there is empty; text that looks like more
    than one value, or like a placeholder, is one value as it is."""
    first, rest = paas_name(), "b-c"
    name = f"{first}-{rest}"
    templates = {key: {"template": text} for key, (text, _) in TEXTS.items()}
    generic = {f"all_{key}": text for key, (text, _) in TEXTS.items()}
    await paasing.config(capabilities=handing_over(fields=templates), templating={"genericCapabilityFields": generic})
    body = obj(PAAS, name, labels={"example.org/team": "a"}, annotations={"odd": ODD}, spec={**argo(), "quota": {}})
    await paasing.admin.create(PAAS, body)
    wanted = {key: value.format(name=name, odd=ODD, first=first, rest=rest) for key, (_, value) in TEXTS.items()}
    await paasing.element_of(name, {**wanted, **{f"all_{key}": value for key, value in wanted.items()}})
    await paasing.edit(PAAS, name, "", ("add", "/spec/managedByPaas", "boss"))
    wanted |= {"managed": "<boss>", "managed_or": "boss"}
    await paasing.element_of(name, {**wanted, **{f"all_{key}": value for key, value in wanted.items()}})
    await paasing.leave(name)


@pytest.mark.check("p-130")
async def test_a_field_that_is_not_configured_is_left_out(empty: None, paasing: HandingOver, admitting: Admitting) -> None:
    """It is refused; where it got in it is told, and the rest of the element is there."""
    name = paas_name()
    body = body_of(name, capabilities={"argocd": {"enabled": True, "custom_fields": {"git_url": "u", "stray": "v"}}})

    async def refused() -> str:
        return (await admitting.create(body)).message

    words = "spec.capabilities[argocd].custom_fields"
    await eventually(refused, lambda said: words in said and "stray" in said, within=30, what="the policy has the PaasConfig")
    async with got_in(paasing.admin, "tenantry-guard-paas-configured"):

        async def made() -> bool:
            return (await admitting.create(body, dry=False)).status in (201, 409)

        await eventually(made, within=30, what="a field gets in that is not configured")
    await paasing.element_of(name, {"git_url": "u"})
    await paasing.says(name, PART, "UnknownCustomField", "spec.capabilities[argocd].custom_fields[stray]", status="False")
    await paasing.says(name, "HasErrors", "UnknownCustomField", "stray", status="True")
    await paasing.edit(PAAS, name, "", ("remove", "/spec/capabilities/argocd/custom_fields/stray", None))
    await paasing.ready(name)
    await paasing.leave(name)


@pytest.mark.check("p-135")
async def test_an_element_goes_before_the_paas(empty: None, paasing: HandingOver) -> None:
    """Also when the capability is switched off; what is not ours stays as it is, and the last one leaves an empty list."""
    before = await paasing.application_set(SET, GIT, {"list": {"elements": FOREIGN}}, {"list": {"elements": [{"paas": "x"}]}})
    one, two = paas_name(), paas_name()
    await together(paasing.paas(one, **argo()), paasing.paas(two, **argo()))
    await together(paasing.element_of(one, {}), paasing.element_of(two, {}))
    await paasing.edit(PAAS, one, "", ("replace", "/spec/capabilities/argocd/enabled", False))
    await paasing.element_of(one, None)
    await paasing.admin.delete(PAAS, two)

    async def order() -> bool:
        there = await paasing.admin.get(PAAS, two) is not None
        listed = any(isinstance(each, dict) and each.get("paas") == two for each in await paasing.elements())
        assert there or not listed
        return not there

    await eventually(order, within=paasing.eventually_s, what=f"{two} is gone")
    after = await paasing.get(APPLICATION_SET, SET, PLACE)
    assert after["spec"] == before["spec"]
    await paasing.application_set()
    await paasing.edit(PAAS, one, "", ("replace", "/spec/capabilities/argocd/enabled", True))
    await paasing.element_of(one, {})
    await paasing.leave(one)
    assert (await paasing.get(APPLICATION_SET, SET, PLACE))["spec"]["generators"] == [{"list": {"elements": []}}]


@pytest.mark.check("p-136")
async def test_another_application_set_takes_the_elements_over(empty: None, paasing: HandingOver) -> None:
    """They go from where they were."""
    name = paas_name()
    await paasing.paas(name, **argo())
    await paasing.element_of(name, {})
    await paasing.config(capabilities=handing_over(OTHER))
    await together(paasing.element_of(name, {}, OTHER), paasing.element_of(name, None))
    assert ELEMENTS not in annotations_of(await paasing.get(APPLICATION_SET, SET, PLACE))
    await paasing.leave(name)
    assert await paasing.elements(OTHER) == []


@pytest.mark.check("p-137")
@pytest.mark.check("p-184")
async def test_an_element_that_no_paas_has_stays(empty: None, paasing: HandingOver, system: Knative, calm: Calm) -> None:
    """It is told once on the PaasConfig."""
    stray = paas_name()
    await paasing.application_set(SET, {"list": {"elements": [{"paas": stray, "x": 1}]}})
    (config,) = (await paasing.admin.list(PAAS_CONFIG)).items
    where = {"kind": PAAS_CONFIG}
    assert f"'{stray}'" in await paasing.warned(config["metadata"]["name"], "UnknownElement", **where)
    name = paas_name()
    await paasing.paas(name, **argo())
    await paasing.element_of(name, {})
    await calm(system)
    assert {"paas": stray, "x": 1} in await paasing.elements()
    told = await paasing.warnings(config["metadata"]["name"], **where)
    assert len([each for each in told if each["reason"] == "UnknownElement" and stray in each["message"]]) == 1
    await paasing.leave(name)


@pytest.mark.check("p-139")
async def test_an_element_that_somebody_spoils_is_put_right(empty: None, paasing: HandingOver) -> None:
    """Changed, doubled, or removed with its list."""
    name = paas_name()
    await paasing.paas(name, **argo(custom_fields={"git_url": "u"}))
    await paasing.element_of(name, {"git_url": "u"})
    path = "/spec/generators/0/list/elements"
    await paasing.edit(APPLICATION_SET, SET, PLACE, ("replace", f"{path}/0/git_url", "theirs"))
    await paasing.element_of(name, {"git_url": "u"})
    await paasing.edit(APPLICATION_SET, SET, PLACE, ("add", f"{path}/-", {"paas": name, "git_url": "more"}))
    await paasing.element_of(name, {"git_url": "u"})
    await paasing.edit(APPLICATION_SET, SET, PLACE, ("replace", "/spec/generators", [GIT]))
    await paasing.element_of(name, {"git_url": "u"})
    assert (await paasing.get(APPLICATION_SET, SET, PLACE))["spec"]["generators"][0] == GIT
    await paasing.leave(name)


@pytest.mark.check("p-77")
async def test_many_at_once_are_all_there_and_others_are_unchanged(empty: None, paasing: HandingOver) -> None:
    """20 Paas in one list, behind another generator and among elements of somebody else."""
    before = await paasing.application_set(SET, GIT, {"list": {"elements": FOREIGN, "template": {}}})
    several = [paas_name() for _ in range(20)]
    await together(*(paasing.paas(name, **argo(custom_fields={"git_url": name})) for name in several))
    await together(*(paasing.element_of(name, {"git_url": name}) for name in several))
    after = await paasing.get(APPLICATION_SET, SET, PLACE)
    assert without_elements_of(after, *several) == before["spec"]
    own = [each["paas"] for each in await paasing.elements() if isinstance(each, dict) and each.get("paas") in several]
    assert own == sorted(several)
    await paasing.leave_all(*several)
    assert (await paasing.get(APPLICATION_SET, SET, PLACE))["spec"] == before["spec"]


@pytest.mark.check("p-140")
async def test_no_write_is_lost_when_another_writes_too(empty: None, paasing: HandingOver) -> None:
    """While two Paas change, somebody adds elements of his own as fast as he can."""
    one, two = paas_name(), paas_name()
    await together(paasing.paas(one, **argo()), paasing.paas(two, **argo()))
    await together(paasing.element_of(one, {}), paasing.element_of(two, {}))
    written: list[str] = []

    async def another() -> None:
        while len(written) < 60:
            live = copy.deepcopy(await paasing.get(APPLICATION_SET, SET, PLACE))
            live["spec"]["generators"][0]["list"]["elements"].append({"theirs": str(len(written))})
            path = APPLICATION_SET.path(PLACE, SET)
            try:
                await paasing.admin.request("PUT", path, None, live)
            except ConflictError:
                continue
            written.append(str(len(written)))

    writer = asyncio.create_task(another())
    for number in range(6):
        await together(*(paasing.paas(name, **argo(custom_fields={"git_url": str(number)})) for name in (one, two)))
    await writer
    await together(*(paasing.element_of(name, {"git_url": "5"}) for name in (one, two)))
    theirs = [each["theirs"] for each in await paasing.elements() if "theirs" in each]
    assert theirs == written
    await together(paasing.leave(one), paasing.leave(two))


@LEFT_TO_MAKE_WHOLE
@pytest.mark.check("p-131")
async def test_a_new_requirement_takes_nothing_away(empty: None, paasing: HandingOver, system: Knative, calm: Calm) -> None:
    """20 Paas keep their elements, and each is told; a new one without the field has none, and all else."""
    several = [paas_name() for _ in range(20)]
    await together(*(paasing.paas(name, **argo()) for name in several))
    await together(*(paasing.element_of(name, {}) for name in several))
    before = await paasing.get(APPLICATION_SET, SET, PLACE)
    await paasing.config(capabilities=handing_over(fields={"git_url": {}, "needed": {"required": True}}))
    path = "spec.capabilities[argocd].custom_fields[needed]"
    await together(*(paasing.says(name, PART, "RequiredField", path, status="False") for name in several))
    await calm(system)
    late = paas_name()
    async with got_in(paasing.admin, "tenantry-guard-paas-configured"):

        async def made() -> Object:
            try:
                return await paasing.paas(late, **{**example(), **argo()})
            except Exception:
                return {}

        await eventually(made, within=30, what="a Paas gets in without the field")
    await paasing.has_namespaces(late, "cicd", "test", "prod", "argocd")
    await paasing.says(late, "HasErrors", "RequiredField", path, status="True")
    await eventually(lambda: paasing.bindings(f"{late}-cicd"), what="rights of a Paas without its element")
    await calm(system)
    assert await paasing.get(APPLICATION_SET, SET, PLACE) == before
    await paasing.config()
    await paasing.element_of(late, {})
    await paasing.leave_all(*several, late)


@pytest.mark.check("p-14")
async def test_argo_cd_s_own_object_gets_the_policy(empty: None, paasing: HandingOver) -> None:
    """Where its operator is: the header, then a line for each group; made with nothing else, and put back when it is changed."""
    name = f"my-{token()}"  # so that its groups come before the one of the query
    permissions = {"resource_name": "argo-service", "role": "admin", "header": "g, system:cluster-admins, role:admin\n"}
    await paasing.config(argopermissions=permissions)
    await paasing.paas(name, **example())
    lines = ["g, system:cluster-admins, role:admin"]
    lines += [f"g, {each}, role:admin" for each in (f"{name}-them", f"{name}-us", "others")]
    spec = {"rbac": {"policy": "\n".join(lines), "defaultPolicy": "", "scopes": "[groups]"}}

    def has_policy(found: Object) -> bool:
        return bool(found["spec"] == spec)

    await paasing.until(ARGO_CD, "argo-service", f"{name}-argocd", has_policy)
    path = ("replace", "/spec/rbac/policy", "g, eve, role:admin")
    await paasing.edit(ARGO_CD, "argo-service", f"{name}-argocd", path)
    await paasing.until(ARGO_CD, "argo-service", f"{name}-argocd", has_policy)
    await paasing.says(name, "tenantry.dev/Rights", "Reconciling", status="True")
    await paasing.leave(name)


# -- the plugin generator --------------------------------------------------------------------------------------------


@pytest.mark.check("p-141")
async def test_argo_cd_asks_for_elements(
    empty: None, paasing: HandingOver, system: Knative, plugin: Plugin, admin: Api, calm: Calm
) -> None:
    """With the token it gets what is in the list, whatever else is asked is refused; without one nothing is there."""
    capabilities = handing_over(fields=FIELDS, other={"applicationset": OTHER, "custom_fields": {"needed": {"required": True}}})
    await paasing.config(capabilities=capabilities)
    one, two, off = sorted((paas_name() for _ in range(3)), reverse=True)
    await paasing.paas(one, **argo(custom_fields={"git_url": "u"}, gitPath="p"))
    await paasing.paas(two, **argo())
    await paasing.paas(off, **argo(enabled=False))
    await together(
        paasing.element_of(one, {"git_url": "u", "git_path": "p", "git_revision": "main", "team": "team"}),
        paasing.element_of(two, {"git_revision": "main", "team": "team"}),
    )
    await together(*(paasing.ready(name) for name in (one, two, off)))
    await calm(system)
    before = [(await admin.list(kind)).items for kind in (APPLICATION_SET, PAAS, PAAS_CONFIG, EVENT)]
    assert (await ask(system, about("argocd")))[0] == 404
    plugin.file.write_text(f"{TOKEN}\n")
    status, answer = await ask(system, about("argocd"))
    assert (status, answer) == (200, {"output": {"parameters": await paasing.elements()}})
    assert [each["paas"] for each in answer["output"]["parameters"]] == [two, one]
    assert await ask(system, about("other")) == (200, {"output": {"parameters": []}})

    for wrong in ("", "another", f"{TOKEN}x", TOKEN[:-1]):
        assert (await ask(system, about("argocd"), token=wrong))[0] == 403
    for body in ("", "{", "[" * 5000, "[]", {}, about("nope"), about(""), about(["argocd"]), about(None)):
        assert (await ask(system, body))[0] == 400, body
    for method, path in (("GET", QUESTION), ("PUT", QUESTION), ("POST", f"{QUESTION}/x"), ("POST", "/api/v1/other")):
        assert (await ask(system, about("argocd"), method=method, path=path))[0] == 404
    assert [(await admin.list(kind)).items for kind in (APPLICATION_SET, PAAS, PAAS_CONFIG, EVENT)] == before

    async with got_in(paasing.admin, "tenantry-guard-paas-configured"):
        lacking = {"capabilities": {"other": {"enabled": True}}}

        async def made() -> Object:
            try:
                return await paasing.paas(one, **lacking)
            except RefusedError:
                return {}

        await eventually(made, within=30, what="a Paas gets in without the field")
    assert await ask(system, about("other")) == (200, {"output": {"parameters": [{"paas": one}]}})
    assert plugin.logs
    assert not any(TOKEN in line for line in plugin.logs)
    plugin.file.unlink()
    assert (await ask(system, about("argocd")))[0] == 404
    await together(*(paasing.leave(name) for name in (one, two, off)))
