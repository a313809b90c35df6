"""Names and shapes of a Paas: what the API server refuses whatever is configured, with the field and the value."""

from __future__ import annotations

from typing import Any

import pytest
from admitting import V1, V2, VERSIONS, Admitting, paas, says
from people import token

SHAPE = "tenantry-guard-paas-shape"
NAME = f"p{token()}"
"""A name of 9 characters: no Paas of it is ever kept."""
ROOM = 63 - len(NAME) - 1
"""How long the rest of a namespace's name may be."""
HIDDEN = {"line feed": "\n", "carriage return": "\r", "tab": "\t", "NUL": "\0", "U+2028": "\u2028", "U+202E": "\u202e"}


@pytest.mark.check("p-91", without=SHAPE)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "name", ["a.b", "paas", "true", "kube", "kube-x", "openshift", "openshift-x", "cattle-y", "tenantry", "tenantry-z", "a" * 64]
)
async def test_a_paas_does_not_have_any_name(admitting: Admitting, name: str, version: str) -> None:
    """It begins the names of namespaces: it is a part of such a name, and not one that systems begin theirs with."""
    await admitting.refused(paas(name, version), f"metadata.name: {name} is no name for a Paas")


@pytest.mark.parametrize("name", ["kubernetes", "open", "cattles", "my-kube", "a" * 63, "1a"])
async def test_what_only_looks_like_such_a_name_is_one(admitting: Admitting, name: str) -> None:
    """Only the names themselves, and what has a dash after them, are taken."""
    await admitting.admitted(paas(name, managedByPaas="b"))


@pytest.mark.check("p-57", without=SHAPE)
async def test_a_requestor_is_asked_for_and_is_the_value_of_a_label(admitting: Admitting) -> None:
    """Without one a Paas is not made through v1alpha1; one that cannot be the value of a label is refused in either version."""
    without = paas(version=V1)
    del without["spec"]["requestor"]
    await admitting.refused(without, "spec.requestor")
    await admitting.admitted(paas(version=V2))
    for version in VERSIONS:
        await admitting.refused(paas(version=version, requestor="a b"), "spec.requestor: a b ")
        await admitting.refused(paas(version=version, requestor=""), "spec.requestor")


@pytest.mark.check("p-79", without=SHAPE)
@pytest.mark.check("p-92", without=SHAPE)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("shape", ["list", "map"])
@pytest.mark.parametrize("entry", ["Test", "a_b", "-a", "a-", "a.b", "", "ä", "a" * (ROOM + 1)])
async def test_names_of_namespaces_are_judged_without_any_configuration(
    admitting: Admitting, entry: str, shape: str, version: str
) -> None:
    """An entry that would make no name of a namespace, or one of 64 characters, is refused with its path and the whole name."""
    namespaces: Any = [entry] if shape == "list" else {entry: {}}
    words = f"spec.namespaces[{entry}]: {NAME}-{entry} ({len(NAME) + 1 + len(entry)} characters)"
    await admitting.refused(paas(NAME, version, namespaces=namespaces), words)
    await admitting.admitted(paas(NAME, version, namespaces=["a" * ROOM, "1", "a-b"]))


@pytest.mark.check("p-79", without=SHAPE)
async def test_a_requestor_of_64_characters_is_refused(admitting: Admitting) -> None:
    """The value of a label has 63 at most."""
    await admitting.admitted(paas(requestor="r" * 63))
    await admitting.refused(paas(requestor="r" * 64), "spec.requestor: rrr")


@pytest.mark.check("p-92", without=SHAPE)
async def test_names_of_capabilities_are_judged_in_the_same_way(admitting: Admitting) -> None:
    """A capability has a namespace, too."""
    for capability in ("Argo", "a.b", "a" * (ROOM + 1)):
        await admitting.refused(
            paas(NAME, capabilities={capability: {}}), f"spec.capabilities[{capability}]: {NAME}-{capability}"
        )
    await admitting.admitted(paas(NAME, capabilities={"a" * ROOM: {}}))


async def test_another_paas_manages_it_by_a_name_that_fits_a_label(admitting: Admitting) -> None:
    """What is no value of a label is no name of a Paas."""
    await admitting.refused(paas(managedByPaas="a b"), "spec.managedByPaas: a b ")
    await admitting.refused(paas(managedByPaas="a" * 64), "spec.managedByPaas")
    await admitting.admitted(paas(managedByPaas="other"))


@pytest.mark.check("p-87", without=SHAPE)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "namespaces",
    [
        "text",
        5,
        True,
        [1, 2],
        [{"name": "a"}],
        ["a", None],
        {"a": {"group": ["us"]}},
        {"a": {"groups": "us"}},
        {"a": {"groups": [1]}},
        {"a": {"groups": {"us": {}}}},
        {"a": {"secrets": ["x"]}},
        {"a": {"secrets": {"x": 1}}},
        {"a": ["us"]},
        {"a": "us"},
    ],
)
async def test_namespaces_of_another_shape_are_refused(admitting: Admitting, namespaces: Any, version: str) -> None:
    """Neither a list of names nor a map of names with groups and secrets, in either version."""
    await admitting.refused(paas(version=version, groups={"us": {}}, namespaces=namespaces), "spec.namespaces")


@pytest.mark.check("p-87", without=SHAPE)
@pytest.mark.parametrize("version", VERSIONS)
async def test_either_shape_of_namespaces_is_taken_in_either_version(admitting: Admitting, version: str) -> None:
    """Nothing, an empty list, an empty map, an entry with nothing, and both shapes."""
    shapes: list[Any] = [None, [], {}, {"a": None}, ["a"], {"a": {}}, {"a": {"groups": ["us"]}}, {"a": {"groups": None}}]
    shapes += [{"a": {"groups": [], "secrets": {"url": "x"}}}]
    for namespaces in shapes:
        await admitting.admitted(paas(version=version, groups={"us": {}}, namespaces=namespaces))
    await admitting.refused(paas(version=version, namespaces="none"), "spec.namespaces: none is neither")


async def test_groups_of_a_namespace_are_groups_of_the_paas(admitting: Admitting) -> None:
    """A key that the Paas does not have is refused with its path (p-86); when the group leaves later, that is not refused."""
    groups: dict[str, Any] = {"us": {}, "them": {}}
    namespaces = {"cicd": {"groups": ["us", "nobody", "none"]}, "test": {"groups": ["us"]}}
    await admitting.refused(
        paas(groups=groups, namespaces=namespaces), "spec.namespaces[cicd].groups: nobody, none: no such group in spec.groups"
    )
    async with admitting.kept(paas(groups=groups, namespaces={"cicd": {"groups": ["us"]}})) as body:
        answer = await admitting.merge(body, {"spec": {"groups": {"us": None}}}, dry=False)
        assert answer.status == 200, answer
        change = {"spec": {"namespaces": {"cicd": {"groups": ["us"], "secrets": {}}}}}
        says(await admitting.merge(body, change), "spec.namespaces[cicd].groups: us")


@pytest.mark.parametrize("character", HIDDEN.values(), ids=HIDDEN)
async def test_what_does_not_show_is_in_no_name_of_a_group(admitting: Admitting, character: str) -> None:
    """Control, format and separator characters, in a key, a query, escaped or not, and the name of a user (p-98)."""
    await admitting.refused(paas(groups={f"a{character}b": {}}), "spec.groups[")
    await admitting.refused(paas(groups={"us": {"query": f"CN=a{character}b,OU=x"}}), "spec.groups[us].query")
    await admitting.refused(paas(groups={"us": {"users": ["me", f"a{character}b"]}}), "spec.groups[us].users")


@pytest.mark.parametrize("escaped", [r"\0A", r"\0d", r"\09", r"\00", r"\7F"])
async def test_nor_is_it_by_an_escape(admitting: Admitting, escaped: str) -> None:
    """What an escape hides does not show either (p-98)."""
    await admitting.refused(paas(groups={"us": {"query": f"CN=a{escaped}b,OU=x"}}), "spec.groups[us].query")


async def test_a_key_has_its_length(admitting: Admitting) -> None:
    """1 to 190 characters, and 253 with the name of the Paas (1.5)."""
    await admitting.refused(paas(groups={"": {}}), 'spec.groups[""]')
    await admitting.refused(paas(groups={"k" * 191: {}}), "spec.groups[", "at most 253 together")
    await admitting.refused(paas("a" * 63, managedByPaas="b", groups={"k" * 190: {}}), "spec.groups[")
    await admitting.admitted(paas("a" * 62, managedByPaas="b", groups={"k" * 190: {}, "my_group": {}, "Größe 1": {}}))


@pytest.mark.check("p-49", without=SHAPE)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "query",
    [
        "CN=system:authenticated",
        r"CN=\73ystem:authenticated",
        r"CN=s\79\73tem\3aauthenticated,OU=x",
        "system:masters",
        "CN=  system:serviceaccounts,OU=x",
    ],
)
async def test_no_query_names_a_group_of_kubernetes(admitting: Admitting, query: str, version: str) -> None:
    """A name that begins with system: is refused, escaped or not; so nothing can bind it."""
    await admitting.refused(paas(version=version, groups={"all": {"query": query}}), "spec.groups[all].query", "system:")


@pytest.mark.parametrize(
    "query",
    ["CN=", ",OU=x", "CN=  ,OU=x", "CN=a+OU=b", 'CN=a"b', "CN=a;b", "CN=a<b", "CN=#41", r"CN=a\q", "CN=a\\", r"CN=\4", "+"],
)
async def test_a_query_that_gives_no_name_is_refused(admitting: Admitting, query: str) -> None:
    """Nothing, several values, bytes, and what is escaped badly or not at all (2.3, p-97)."""
    await admitting.refused(paas(groups={"others": {"query": query}}), "spec.groups[others].query")


@pytest.mark.parametrize(
    "query",
    ["", "CN=others,OU=x", "CN=others,..", "others", "cn = others ,OU=x", "CN=a=b,OU=x", r"CN=Doe\, John,OU=x", r"CN=a\2Bb",
     r"CN=\ a\ ,OU=+", "CN=a#b", r"CN=G\C3\BCnther", "CN=x,OU=system:a", "CN=" + "n" * 253],
)  # fmt: skip
async def test_a_query_that_gives_a_name_is_taken(admitting: Admitting, query: str) -> None:
    """Of a distinguished name the first value counts, and anything may follow it (2.3, p-97)."""
    await admitting.admitted(paas(groups={"others": {"query": query}}))
    await admitting.refused(paas(groups={"others": {"query": "CN=" + "n" * 254}}), "spec.groups[others].query")


@pytest.mark.check("p-93")
@pytest.mark.parametrize("quantity", ["abc", "-1", -1, "1e999999", "+1", "1.", ".5", "1 Gi", "1" * 16, 1.5, True, ""])
async def test_no_quantity_is_refused(admitting: Admitting, quantity: Any) -> None:
    """What is no amount, or one that takes long to read."""
    await admitting.refused(paas(quota={"limits.cpu": quantity}), "spec.quota.limits.cpu")
    capabilities = {"argocd": {"quota": {"limits.cpu": quantity}}}
    await admitting.refused(paas(capabilities=capabilities), "spec.capabilities.argocd.quota.limits.cpu")


async def test_quantities_are_taken_as_kubernetes_writes_them(admitting: Admitting) -> None:
    """Whole numbers, decimals, suffixes, short exponents."""
    amounts = [0, 40, "40", "0.5", "500m", "1Gi", "2e3", "1E-2", "100n", "3E", "1" * 15 + "." + "2" * 9]
    await admitting.admitted(paas(quota={f"r{number}": each for number, each in enumerate(amounts)}))


@pytest.mark.check("p-93", without=SHAPE)
async def test_numbers_have_their_bounds(admitting: Admitting) -> None:
    """500 groups, 64 roles and 10,000 users of one, 500 namespaces, 100 capabilities: one more is refused, with a path."""
    users, roles = [f"u{number}" for number in range(10_000)], [f"r{number}" for number in range(64)]
    many: dict[str, Any] = {f"g{number}": {} for number in range(500)}
    entries = [f"n{number}" for number in range(500)]
    capabilities: dict[str, Any] = {f"c{number}": {} for number in range(100)}
    groups = {**many, "g0": {"users": users, "roles": roles}, "g1": {"query": "CN=" + r"\," * 253}}
    await admitting.admitted(paas(groups=groups, namespaces=entries, capabilities=capabilities))
    namespaces = {entry: {"groups": ["g0", "g499"]} for entry in entries}
    await admitting.admitted(paas(groups=groups, namespaces=namespaces, capabilities=capabilities))

    await admitting.refused(paas(groups={**many, "g500": {}}), "spec.groups")
    await admitting.refused(paas(groups={"us": {"users": [*users, "one-more"]}}), "spec.groups.us.users")
    await admitting.refused(paas(groups={"us": {"roles": [*roles, "one-more"]}}), "spec.groups.us.roles")
    await admitting.refused(paas(namespaces=[*entries, "n500"]), "spec.namespaces (501 entries)", "at most 500")
    await admitting.refused(paas(namespaces=dict.fromkeys([*entries, "n500"])), "spec.namespaces (501 entries)")
    await admitting.refused(paas(capabilities={**capabilities, "c100": {}}), "spec.capabilities")


async def test_quota_must_be_written_and_may_be_empty(admitting: Admitting) -> None:
    """Nothing bounds a Paas by mistake alone; and a Paas has a spec."""
    body = paas()
    del body["spec"]["quota"]
    await admitting.refused(body, "spec.quota: Required value")
    del body["spec"]
    await admitting.refused(body, "write spec")
    await admitting.admitted(paas(quota={}))
