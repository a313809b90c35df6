"""A PaasNS: refused where it is not the Paas' own, names no namespace, or lists groups that the Paas does not have."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
import pytest_asyncio
from admitting import V1, V2, VERSIONS, Admitting, paas, paas_ns, says
from paasing import CONFIG, paas_name
from times import POLICY_S

from tenantry.model.kinds import NAMESPACE, Object
from tenantry.testing import eventually

NS, GROUPS = "tenantry-guard-paas-ns", "tenantry-guard-paas-ns-groups"


class Tenancy(NamedTuple):
    """Two Paas, each with a namespace that has its mark; others, with another group, is there to be left out."""

    name: str
    home: str
    other: str


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def tenancy(admitting: Admitting) -> AsyncIterator[Tenancy]:
    name, other = paas_name(), paas_name()
    await admitting.made(paas(name, groups={"us": {}, "them": {}}))
    await admitting.made(paas(other, groups={"nobody": {}, "others": {}}))
    for each in (name, other):
        await admitting.namespace(f"{each}-argocd", each)

    async def judged() -> bool:  # params come by a watch
        return "ghost" in (await admitting.create(paas_ns(f"{name}-argocd", groups=["ghost"]))).message

    if await admitting.guarded_by(GROUPS):
        await eventually(judged, within=POLICY_S, what="the policy knows the Paas")
    yield Tenancy(name, f"{name}-argocd", other)
    for each in (name, other):
        await admitting.admin.delete(NAMESPACE, f"{each}-argocd")


def asked(tenancy: Tenancy, version: str = V2, name: str = "", **spec: object) -> Object:
    """A PaasNS in the namespace of the first Paas, which it names."""
    return paas_ns(tenancy.home, name, version, **{"paas": tenancy.name, **spec})


@pytest.mark.parametrize("version", VERSIONS)
async def test_groups_are_groups_of_the_paas(admitting: Admitting, tenancy: Tenancy, version: str) -> None:
    """A key that the Paas does not have is refused with it, whether spec.paas is written or not (p-40); another Paas' keys
    do not count."""
    await admitting.admitted(asked(tenancy, version, groups=["us", "them"]))
    await admitting.admitted(asked(tenancy, version, groups=[]))
    await admitting.admitted(asked(tenancy, version))
    await admitting.refused(
        asked(tenancy, version, groups=["us", "nobody"]), f"spec.groups: nobody: no such group in the Paas {tenancy.name}"
    )
    await admitting.refused(paas_ns(tenancy.home, groups=["nobody", "us", "no"]), "spec.groups: nobody, no: no such group")


async def test_groups_are_judged_when_they_are_new(admitting: Admitting, tenancy: Tenancy) -> None:
    """A group that leaves the Paas later is in nobody's way; one that comes is judged."""
    name, home = paas_name(), f"{paas_name()}-x"
    await admitting.namespace(home, name)
    async with admitting.kept(paas(name, groups={"us": {}})) as owner, admitting.kept(paas_ns(home, groups=["us"])) as body:
        assert (await admitting.merge(owner, {"spec": {"groups": {"us": None}}}, dry=False)).status == 200

        async def judged() -> bool:
            return (await admitting.create(paas_ns(home, groups=["us"]))).status == 422

        await eventually(judged, within=POLICY_S, what="the group is gone from the param")
        for change in ({"metadata": {"labels": {"a": "b"}}}, {"metadata": {"finalizers": ["example.com/x"]}}):
            answer = await admitting.merge(body, change)
            assert answer.status == 200, answer
        says(await admitting.merge(body, {"spec": {"groups": ["us", "them"]}}), "spec.groups: us, them")
        assert (await admitting.merge(body, {"spec": {"groups": None}})).status == 200
    await admitting.admin.delete(NAMESPACE, home)


@pytest.mark.check("p-42", without=NS)
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_paasns_is_part_of_a_paas(admitting: Admitting, version: str) -> None:
    """In a namespace of nobody's it is refused."""
    await admitting.refused(paas_ns("default", version=version, paas="x"), "metadata.namespace: default is not part of a Paas")
    if version == V2:
        await admitting.refused(paas_ns("default"), "metadata.namespace: default is not part of a Paas")


@pytest.mark.check("p-43", without=NS)
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_paasns_is_for_the_paas_of_its_namespace(admitting: Admitting, tenancy: Tenancy, version: str) -> None:
    """Another spec.paas is refused, one that exists and one that does not; and it never changes."""
    for other in (tenancy.other, "other-paas"):
        await admitting.refused(
            asked(tenancy, version, paas=other), f"spec.paas: {other} is not the Paas of the namespace {tenancy.home}"
        )
    async with admitting.kept(asked(tenancy, version)) as body:
        for other in (tenancy.other, None):
            says(await admitting.merge(body, {"spec": {"paas": other}}), "spec.paas", f"stays {tenancy.name}")
        assert (await admitting.merge(body, {"spec": {"paas": tenancy.name, "groups": ["us"]}})).status == 200


async def test_only_v1alpha1_asks_for_spec_paas(admitting: Admitting, tenancy: Tenancy) -> None:
    """Without it a PaasNS is made through v1alpha2, and not through v1alpha1, where it can be changed afterwards (p-88)."""
    await admitting.refused(paas_ns(tenancy.home, version=V1), f"spec.paas: write {tenancy.name}")
    bare = paas_ns(tenancy.home, version=V1)
    del bare["spec"]
    await admitting.refused(bare, f"spec.paas: write {tenancy.name}")
    async with admitting.kept(paas_ns(tenancy.home)) as body:
        old = {**body, "apiVersion": V1}
        for change in ({"metadata": {"labels": {"a": "b"}}}, {"spec": {"groups": ["us"]}}, {"spec": {"paas": tenancy.name}}):
            answer = await admitting.merge(old, change)
            assert answer.status == 200, answer
        says(await admitting.merge(old, {"spec": {"paas": tenancy.other}}), f"spec.paas: {tenancy.other} is not")


@pytest.mark.check("p-44", without=NS)
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_paasns_has_the_name_of_a_namespace(admitting: Admitting, tenancy: Tenancy, version: str) -> None:
    """One part, and with the Paas' 63 characters at most; the message has the whole name."""
    room = 63 - len(tenancy.name) - 1
    await admitting.admitted(asked(tenancy, version, "a" * room))
    await admitting.refused(asked(tenancy, version, "a.b"), f"metadata.name: {tenancy.name}-a.b ")
    await admitting.refused(asked(tenancy, version, "a" * (room + 1)), f"metadata.name: {tenancy.name}-aaa", "64 characters")


async def test_names_match_the_expression_of_administrators(admitting: Admitting, tenancy: Tenancy) -> None:
    """That of PaasNS, or else that of namespaces (1.3); those that are there are not judged again."""
    async with admitting.kept(asked(tenancy, name="a1")) as body:
        for validations in ({"paasNs": {"name": "^[a-z]*$"}}, {"paas": {"namespaceName": "^[a-z]*$"}}):
            await admitting.configure(validations=validations)
            await admitting.refused(asked(tenancy, name="b1"), "metadata.name: b1 does not match ^[a-z]*$")
            await admitting.admitted(asked(tenancy, name="b"))
            assert (await admitting.merge(body, {"spec": {"groups": ["us"]}})).status == 200
    await admitting.configure(validations={"paasNs": {"name": "^b1$"}, "paas": {"namespaceName": "^[a-z]*$"}})
    await admitting.admitted(asked(tenancy, name="b1"))
    await admitting.forget()


async def test_secrets_of_a_paasns_are_told(admitting: Admitting, tenancy: Tenancy) -> None:
    """Nothing is made of them, and a warning says so (p-161), with a PaasConfig or without."""
    assert await admitting.admitted(asked(tenancy, secrets={}, sshSecrets=None)) == ""
    said = await admitting.admitted(asked(tenancy, secrets={"url": "x"}, sshSecrets={"url": "x"}))
    assert "spec.secrets, spec.sshSecrets: ignored, no Secret is made of it" in said
    async with admitting.kept(asked(tenancy)) as body:
        assert "spec.secrets: ignored" in (await admitting.merge(body, {"spec": {"secrets": {"url": "x"}}})).told


async def test_a_paasns_on_its_way_out_is_not_judged(admitting: Admitting, tenancy: Tenancy) -> None:
    """Whatever is wrong with it, what holds it can be taken off (p-39)."""
    body = await admitting.made(asked(tenancy))
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    assert (await admitting.merge(body, held, dry=False)).status == 200
    await admitting.configure(**CONFIG, validations={"paasNs": {"name": "^x$"}})
    answer = await admitting.ask("DELETE", f"/apis/{V2}/namespaces/{tenancy.home}/paasns/{body['metadata']['name']}")
    assert answer.status == 200, answer
    assert (await admitting.merge(body, {"spec": {"groups": ["ghost"]}}, dry=False)).status == 200
    assert (await admitting.merge(body, {"metadata": {"finalizers": []}}, dry=False)).status == 200
    await admitting.forget()
