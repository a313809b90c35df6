"""What is one beyond a limit, and got in: it is told by its name, and the rest is there; and what is as large as may be (1.5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from paasing import CONFIG, CONFIG_NAME, Paasing, make_roles, make_world, paas_name, together
from times import FULL, LEFT_TO_MAKE_WHOLE, VOLUME_S

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import CLUSTER_ROLE_BINDING, NAMESPACE, ROLE_BINDING, Object, labels_of
from tenantry.model.paas.names import CLUSTER_RESOURCE_QUOTA, GROUP, PAAS, PAAS_CONFIG
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

FUNCTIONS = ("namespace-registration", "rbac-aggregation", "scope-binding", "release-provisioning")
PLACE = "argo-system"
MAPPINGS = CONFIG["rolemappings"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(knative: Callable[..., Awaitable[Knative]], admin: Api, paasing: Paasing) -> Knative:
    """All functions, where everything is served, without the policies that refuse what they have to bear when it got in."""
    await make_world(admin, "argo")
    await make_roles(admin)
    await admin.create(NAMESPACE, obj(NAMESPACE, PLACE))
    running = await knative({}, functions=FUNCTIONS, without=["all"])
    await paasing.config()
    return running


def capability(**spec: Any) -> dict[str, Any]:
    """A PaasConfig with the capability ``c``."""
    return {"capabilities": {**CONFIG["capabilities"], "c": spec}}


def mapped(*roles: str) -> dict[str, Any]:
    """A PaasConfig that maps the role ``odd``."""
    return {"rolemappings": {**CONFIG["rolemappings"], "odd": list(roles)}}


def handed_over(to: str, place: str = PLACE) -> dict[str, Any]:
    """A PaasConfig that hands the capability ``c`` over."""
    return {**capability(applicationset=to), "clusterwide_argocd_namespace": place}


LONG = "x" * 64
C = {"capabilities": {"c": {"enabled": True}}}
ARGO_CD = {"capabilities": {"argocd": {"enabled": True}}}
BEYOND: dict[str, tuple[Object, Object, str]] = {
    "entry": ({}, {"namespaces": {"good": {}, "{rest}": {}}}, "{paas}-{rest}"),
    "entry that is no label": ({}, {"namespaces": {"good": {}, "a/b": {}}}, "{paas}-a/b"),
    "capability": ({}, {"capabilities": {"{rest}": {"enabled": True}}}, "{paas}-{rest}"),
    "capability that is no label": (capability(), {"capabilities": {"A_b": {"enabled": True}}}, "{paas}-A_b"),
    "requestor": ({}, {"requestor": LONG}, LONG),
    "managed by": ({}, {"managedByPaas": "x" * 57}, "x" * 57 + "-argocd"),
    "key": ({}, {"groups": {"k" * 191: {}}}, "k" * 191),
    "key that is no name": ({}, {"groups": {"a/b": {}}}, "a/b"),
    "name in a query": ({}, {"groups": {"q": {"query": "CN=" + "n" * 254}}}, "'q'"),
    "account": (capability(default_permissions={"a" * 254: ["view"]}), C, "a" * 254),
    "one of two accounts": (capability(default_permissions={"A!": ["view"], "sa": ["cluster-reader"]}), C, "A!"),
    "mapped role": (mapped("a/b"), {"groups": {"o": {"roles": ["odd"]}}}, "a/b"),
    "one of two mapped roles": (mapped("a%b", "edit"), {"groups": {"o": {"roles": ["odd"]}}}, "a%b"),
    "permitted role": (capability(default_permissions={"sa": ["a/b"]}), C, "a/b"),
    "one of two permitted roles": (capability(default_permissions={"sa": ["a/b", "cluster-reader"]}), C, "a/b"),
    "suffix": ({"managed_by_suffix": "a b"}, {}, "a b"),
    "value of a label": ({"templating": {"roleBindingLabels": {"v": "a b"}}}, {}, "a b"),
    "ApplicationSet": (handed_over("A b"), C, "A b"),
    "ApplicationSet elsewhere": (handed_over("a/b"), C, "a/b"),
    "place of ApplicationSets": (handed_over("a", "a/b"), C, "a/b"),
    "Argo CD": ({"argopermissions": {"resource_name": "A b", "role": "r", "header": "h"}}, ARGO_CD, "A b"),
}
"""By what is one beyond its limit, or a name that cannot be: the PaasConfig, the Paas, and what the Paas has to name."""


@pytest.mark.check("p-96")
@pytest.mark.parametrize(
    "what", [pytest.param(each, marks=[pytest.mark.check("p-92")] if "account" in each else []) for each in BEYOND]
)
async def test_what_is_beyond_a_limit_is_told(system: Knative, paasing: Paasing, what: str) -> None:
    """Wherever the API server, or we, cannot take a name: the Paas says which, and the rest of it is there."""
    config, spec, words = BEYOND[what]
    name = paas_name()
    rest = "x" * (63 - len(name))

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {filled(key): filled(each) for key, each in value.items()}
        return value.replace("{rest}", rest).replace("{paas}", name) if isinstance(value, str) else value

    found: Object = {"namespaces": {"good": {}}, "quota": {"pods": "9"}, **filled(spec)}
    found["groups"] = {"us": {"users": ["me"], "roles": ["admin"]}, **found.get("groups", {})}
    await paasing.config(**config)
    try:
        await paasing.admin.apply(PAAS, obj(PAAS, name, spec=found))
        await paasing.until(PAAS, name, "", lambda live: _tells(live, filled(words)), what=f"{what} is told")
        await _rest_is_there(paasing, name)
        if what.startswith(("one of two accounts", "one of two permitted")):
            await paasing.until(CLUSTER_ROLE_BINDING, "paas-cluster-reader", "", lambda live: _names(live) == ["sa"])
        if what == "one of two mapped roles":
            await paasing.until(ROLE_BINDING, "paas-edit", f"{name}-good", lambda live: _names(live) == [f"{name}-o"])
        await paasing.leave(name)
    finally:
        await paasing.config()


async def _rest_is_there(paasing: Paasing, name: str) -> None:
    """The namespace that is as it should be, its group, and the quota."""
    await paasing.until(ROLE_BINDING, "paas-admin", f"{name}-good", lambda live: _names(live) == [f"{name}-us"])
    assert await paasing.users(f"{name}-us") == ["me"]
    assert await paasing.admin.get(CLUSTER_RESOURCE_QUOTA, name) is not None


def _names(binding: Object) -> list[str]:
    return [each["name"] for each in binding.get("subjects") or ()]


def _tells(live: Object, words: str) -> bool:
    """Whether an error says this, about the current generation, and the Paas is not Ready."""
    told = {each["type"]: each for each in (live.get("status") or {}).get("conditions") or ()}
    ready, errors = (told.get(type_, {}) for type_ in ("Ready", "HasErrors"))
    current = errors.get("observedGeneration") == live["metadata"]["generation"]
    return bool(current and ready["status"] == "False" and errors["status"] == "True" and words in errors["message"])


@pytest.mark.check("p-96")
@pytest.mark.parametrize("key", ["a b", LONG])
async def test_keys_that_no_label_has_are_left_out(system: Knative, paasing: Paasing, key: str) -> None:
    """All else is there, and it stands on the PaasConfig, whose mistake it is."""
    name = paas_name()
    fields = ("namespaceLabels", "groupLabels", "clusterQuotaLabels", "roleBindingLabels")
    try:
        templating = {field: {key: "1", "good": "1"} for field in fields}
        await paasing.config(templating=templating, requestor_label=key, managed_by_label=key)
        groups = {"us": {"users": ["me"], "roles": ["admin"]}}
        await paasing.paas(name, requestor="x", groups=groups, namespaces={"good": {}}, quota={"pods": "9"})
        await paasing.ready(name)
        await _rest_is_there(paasing, name)
        for found in (
            await paasing.get(NAMESPACE, f"{name}-good"),
            await paasing.get(GROUP, f"{name}-us"),
            await paasing.get(CLUSTER_RESOURCE_QUOTA, name),
            await paasing.get(ROLE_BINDING, "paas-admin", f"{name}-good"),
        ):
            assert labels_of(found)["good"] == "1"
        told = await paasing.says(CONFIG_NAME, "HasErrors", "InvalidConfiguration", status="True", kind=PAAS_CONFIG)
        paths = ["spec.requestor_label", "spec.managed_by_label", *(f"spec.templating.{field}[{key}]" for field in fields)]
        assert [path for path in paths if path not in told["message"]] == []
        await paasing.config(quota_label=key)  # which nothing can do without
        await paasing.until(PAAS, name, "", lambda live: _tells(live, key), what="the label of quotas is told")
        await paasing.says(CONFIG_NAME, "HasErrors", "InvalidConfiguration", "spec.quota_label", kind=PAAS_CONFIG)
    finally:
        await paasing.config()
    await paasing.ready(name)


GROUPS, USERS, NAMESPACES, CAPABILITIES = (500, 10_000, 500, 100) if FULL else (60, 1_000, 20, 4)


@pytest.mark.check("p-93")
@pytest.mark.timeout(900 if FULL else 120)
async def test_the_largest_paas_delays_no_other(system: Knative, paasing: Paasing) -> None:
    """As many groups, users, roles, namespaces and capabilities as may be: others are there in time while it is worked on, and in
    the end it is as it should be."""
    name = paas_name()
    roles = ["admin", "edit", "view", *(f"r{number}" for number in range(61))]
    users = [f"user-{number}" for number in range(USERS)]
    groups: Object = {f"g{number:03}": {"users": [f"u{number}"]} for number in range(GROUPS)}
    groups["g000"] = {"users": users, "roles": roles}
    capabilities = {f"c{number}": {"enabled": True} for number in range(CAPABILITIES)}
    namespaces: Object = {f"n{number}": {} for number in range(NAMESPACES)}
    await paasing.paas(name, groups=groups, namespaces=namespaces, capabilities=capabilities, quota={"pods": "9"})
    others = [paas_name() for _ in range(4)]
    for other in others:
        began = await paasing.get(PAAS, name)
        await paasing.paas(other, groups={"us": {"roles": ["admin"]}}, namespaces={"good": {}}, quota={"pods": "9"})
        await paasing.until(
            ROLE_BINDING, "paas-admin", f"{other}-good", lambda live, group=f"{other}-us": _names(live) == [group]
        )  # type: ignore[misc]
        await paasing.ready(other)
        if other == others[0]:
            assert (find_condition(began, "Ready") or {}).get("status") != "True"

    def is_ready(live: Object) -> bool:
        return (find_condition(live, "Ready") or {}).get("status") == "True"

    await paasing.until(PAAS, name, "", is_ready, within=600 if FULL else VOLUME_S, what="the largest is Ready")
    every = sorted(f"{name}-{key}" for key in groups)
    wanted = {"paas-view": every, **{f"paas-{role}": every[:1] for role in {*MAPPINGS["admin"], *MAPPINGS["edit"]}}}
    places = [f"{name}-{each}" for each in (*namespaces, *capabilities)]
    assert set(await paasing.namespaces(name)) == set(places)
    for place in (places[0], places[-1]):
        assert await paasing.bindings(place) == wanted
    assert await paasing.users(f"{name}-g000") == users
    await together(*(paasing.leave(other) for other in others))
    await paasing.admin.delete(PAAS, name)
    await paasing.away(PAAS, name, within=600 if FULL else VOLUME_S)
