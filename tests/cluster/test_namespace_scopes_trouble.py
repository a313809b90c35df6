"""NamespaceScopes and mistakes: told where their author looks, harming nobody else, gone when healed."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from flawless import Calm
from one_function import ready, serving
from operators import LIST, PENDING, Operators, chosen, name_of, template, workload
from people import People, look, post
from refusing import refusing
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.api.errors import Invalid
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import CONFIG_MAP, DEPLOYMENT, NAMESPACE_SCOPE, POD, ROLE, ROLE_BINDING, annotations_of
from tenantry.testing.fault import on
from tenantry.testing.faults import Error500, Forbidden403
from tenantry.testing.objects import obj
from tenantry.testing.proxy import FaultProxy

pytestmark = LEFT_TO_MAKE_WHOLE

COMMAND = (sys.executable, "-m", "tenantry.cli", "serve", "scope-binding")


@pytest.mark.check("sb-61")
async def test_restart_that_failed_is_made_good(
    admin: Api, people: People, identity: Callable[..., Awaitable[Path]], tmp_path: Path
) -> None:
    """When the API server fails while a workload is restarted, the next try restarts it: the ConfigMap remembers."""
    function = await identity("scope-binding-namespace-scopes")
    own = Operators(admin)
    await own.begin(1)
    await own.scope(1)
    async with FaultProxy(function, tmp_path) as proxy:
        fails = Error500(where=on("deployments", verb="apply"))
        proxy.faults.append(fails)
        path = proxy.kubeconfig_for(function)
        async with serving(path, {}, tmp_path, command=COMMAND) as (process, url):
            await ready(process, url)
            event = look(NAMESPACE_SCOPE, "common-service", own.home)
            status, _ = await post(url, *event)
            assert (status, fails.acted) == (503, 1)
            assert PENDING in annotations_of(await people.get(CONFIG_MAP, LIST, own.home))
            assert await own.restarted_for() is None
            status, _ = await post(url, *event)
            assert status == 204
            await own.listed(1)
            assert await own.restarted_for() is not None

            # A member that refuses holds neither the list nor the other member up (N-3).
            proxy.faults[:] = [Forbidden403(where=on("roles", namespace=own.member(1)), times=0)]
            await people.namespace(own.member(2))
            await own.consent(own.member(2))
            await own.consent(own.member(1), [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}])
            await own.scope(1, 2)
            status, text = await post(url, *event)
            assert (status, "roles" in text) == (503, True)
            await post(url, *event)  # as the broker does; the restart that the first try began is carried out
            await own.listed(1, 2)
            await own.given(2, name_of(own, "managed"))
            told = await own.ready("False", "ProjectionIncomplete")
            refused = f"{own.member(1)}/{name_of(own, 'managed')}: failed to update from namespace {own.home}"
            assert refused in told["status"]["unprojectedRoles"]
            proxy.faults.clear()
            assert (await post(url, *event))[0] == 204
            await own.ready()
            await admin.delete(NAMESPACE_SCOPE, "common-service", own.home)
            assert (await post(url, *event))[0] == 204
            await own.people.away(NAMESPACE_SCOPE, "common-service", own.home)


@pytest.mark.parametrize(
    "spec",
    [
        {"namespaceMembers": [""]},
        {"namespaceMembers": ["Not_A_Name"]},
        {"configmapName": "Not A Name"},
        {"restartLabels": {"intent": "not a value!"}},
    ],
)
async def test_what_could_never_be_served_is_refused(own: Operators, spec: dict[str, object]) -> None:
    """The API server refuses names and labels that nothing can have, and says which field is wrong."""
    await own.begin(0, operator=False)
    with pytest.raises(Invalid, match=f"spec.{next(iter(spec))}"):
        await own.scope(**spec)


async def test_odd_specs_are_served_as_far_as_they_go(own: Operators) -> None:
    """Unknown fields, impossible label keys and projections are told; the list and the rights follow what can be read."""
    await own.begin(1)
    await own.scope(1, namespaceMember=["typo"])
    await own.ready(text="spec.namespaceMember is not a known field")
    await own.scope(1, restartLabels={"not a key": "x"})
    await own.ready("False", "InvalidSpec", text="not a key=x")
    await own.listed(1)
    await own.scope(1, annotations=chosen("everything"))
    await own.ready("False", "InvalidSpec", text="neither managed nor own-roles")
    await own.given(1, name_of(own, "managed"))
    await own.scope()
    await own.ready()
    await own.listed()
    await own.emptied(1)


async def test_foreign_role_of_the_name_is_left_alone(own: Operators, admin: Api, people: People, projection: str) -> None:
    """A Role that has the name by chance is neither changed nor bound; deleting it makes room."""
    await own.begin(1)
    name = name_of(own, projection)
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    body = obj(ROLE, name, own.member(1), rules=rules)
    made = await admin.create(ROLE, body)
    await own.scope(1, annotations=chosen(projection))
    await own.ready("False", "ProjectionIncomplete", text=name)
    await own.listed(1)
    assert await people.get(ROLE, name, own.member(1)) == made
    assert await admin.get(ROLE_BINDING, name, own.member(1)) is None
    await admin.delete(ROLE, name, own.member(1))
    await own.given(1, name)
    await own.ready()


async def test_labels_alone_make_nothing_ours(own: Operators, admin: Api, people: People, scopes: Knative) -> None:
    """A Role that somebody gave our labels is not cleaned up with ours."""
    await own.begin(1)
    labels = {"scope-binding/from-namespace": own.home, "namespace-scope-configmap": f"namespace-scope-{own.home}"}
    made = await admin.create(ROLE, obj(ROLE, "theirs", own.member(1), labels=labels, rules=[]))
    await own.scope(1)
    await own.given(1, name_of(own, "managed"))
    await admin.delete(NAMESPACE_SCOPE, "common-service", own.home)
    await own.people.away(NAMESPACE_SCOPE, "common-service", own.home)
    await scopes.sweep("scope-binding")
    assert await people.get(ROLE, "theirs", own.member(1)) == made


async def test_immutable_list_is_told_and_healed(own: Operators, admin: Api, people: People) -> None:
    """A ConfigMap that somebody made immutable is told, rights follow all the same, and deleting it heals."""
    await own.begin(2)
    await own.scope(1)
    await own.listed(1)
    await people.edit(CONFIG_MAP, LIST, own.home, ("add", "/immutable", True))
    await own.scope(1, 2)
    await own.ready("False", "ConfigMapFailed", text="immutable")
    await own.given(2, name_of(own, "managed"))
    await admin.delete(CONFIG_MAP, LIST, own.home)
    await own.listed(1, 2)
    await own.ready()


async def test_refusal_in_other_words_each_time_is_told_once(own: Operators, admin: Api, scopes: Knative, calm: Calm) -> None:
    """Words that differ with every try are no news: the system comes to rest, and heals when it may."""
    await own.begin(1)
    async with refusing(admin, CONFIG_MAP, LIST, own.home):
        await own.scope(1)
        told = await own.ready("False", "ConfigMapFailed", text="denied request: request ")
        await calm(scopes)
        again = await own.ready("False", "ConfigMapFailed")
        assert find_condition(again, "Ready") == find_condition(told, "Ready")
        assert len(await own.events("ConfigMapFailed")) == 1
    await scopes.sweep("scope-binding")
    await own.listed(1)
    await own.ready()


async def test_rights_outlive_a_missing_pod(own: Operators, admin: Api) -> None:
    """An account keeps its rights while its only pod is replaced; they go with the workload."""
    await own.begin(1)
    await own.pod("my-op-1", template())
    await own.scope(1)
    await own.given(1, name_of(own, "managed"))
    await admin.create(
        DEPLOYMENT, workload(DEPLOYMENT, own.home, "second", template({"intent": "projected", "app": "x"}, "default"))
    )
    await admin.delete(POD, "my-op-1", own.home)
    await own.scope(1, license={"accept": True})
    await own.ready()
    await own.given(1, name_of(own, "managed"))
    await admin.delete(DEPLOYMENT, "my-op", own.home)
    await admin.delete(DEPLOYMENT, "second", own.home)
    await own.scope(1, license={"accept": False})
    await own.emptied(1)
