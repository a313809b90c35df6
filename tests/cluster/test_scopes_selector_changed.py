"""A selector that was changed by mistake takes nothing away at once (decision 30, docs/scope-binding.md)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import yaml
from commanding import commanding
from flawless import Calm
from people import token
from scoping import OP, SCOPES, Scoping, role

from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.kinds import ROLE_BINDING, SCOPE_INSTANCE, Object
from tenantry.model.names import WITHDRAWAL_ACCEPTED
from tenantry.testing.objects import obj

MANY = 24
"""More than the 20 bindings that a changed selector takes without being asked."""


async def test_much_waits_for_an_administrator(
    scopes: Knative, scoping: Scoping, calm: Calm, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """A mistyped selector takes nothing; put right, it was nothing.  What is taken by name goes meanwhile; accepted, all goes."""
    test = f"test-{token()}"
    key, st, si = f"env-{test}", f"st-{test}", f"si-{test}"
    names = [f"n{number:02}-{test}" for number in range(MANY)]
    await asyncio.gather(*(scoping.namespace(name, labels={key: "prod"}) for name in names))
    await scoping.template(st, role(test))
    await scoping.instance(si, st, namespaceSelector={key: "prod"})
    before = await scoping.bound_in(test, *names)
    await scoping.scoped(si)
    await calm(scopes)

    manifest = tmp_path / "instance.yaml"
    manifest.write_text(
        yaml.safe_dump(obj(SCOPE_INSTANCE, si, spec={"scopeTemplateName": st, "namespaceSelector": {key: "prd"}}))
    )
    code, foreseen, _ = await commanding(control_plane)("plan", "-f", str(manifest))
    assert code == 2
    assert "0 created, 1 changed, 0 deleted" in foreseen
    await scoping.instance(si, st, namespaceSelector={key: "prd"})
    told = await scoping.scoped(si, "WithdrawalWaits")
    assert f"{MANY} of {MANY} bindings, in {MANY} namespaces: {names[0]}, {names[1]}" in told["message"]
    assert f"says WithdrawalWaits of ScopeInstance {si}: {told['message']}" in foreseen
    await asyncio.gather(*(scoping.label(name, {"touched": "1"}, "annotations") for name in names[:3]))
    await scopes.sweep(SCOPES)
    await calm(scopes)
    assert await scoping.bound(test) == before
    await scoping.instance(si, st, namespaceSelector={key: "prod"})
    await scoping.scoped(si)
    await calm(scopes)
    assert await scoping.bound(test) == before

    await scoping.instance(si, st, namespaceSelector={key: "prd"})
    await scoping.scoped(si, "WithdrawalWaits")
    await scoping.label(names[0], {key: None})
    await scoping.bound_in(test, *names[1:])
    eve = {"kind": "ServiceAccount", "name": "eve", "namespace": "ops"}
    await scoping.template(st, role(test, subjects=[eve]))

    def without_op(found: Object) -> bool:
        return OP not in found["subjects"]

    for name, binding in (await scoping.bound(test)).items():
        await scoping.until(ROLE_BINDING, binding["metadata"]["name"], name, without_op)
    told = await scoping.says(SCOPE_INSTANCE, si, "Scoped", "WithdrawalWaits", f"{MANY - 1} of {MANY - 1} bindings")
    mark, _, digest = told["message"].rpartition(" ")[2].partition("=")
    assert mark == WITHDRAWAL_ACCEPTED
    waiting = (await scoping.bound(test))[names[1]]["metadata"]["name"]
    code, output, _ = await commanding(control_plane)("explain", f"rolebinding/{waiting}", "-n", names[1])
    assert code == 0
    assert "status.namespaceSelector" in output
    assert f"kubectl annotate scopeinstances.operators.coreos.com {si} {mark}={digest}" in output
    await scoping.edit(SCOPE_INSTANCE, si, "", ("add", "/metadata/annotations", {mark: "another"}))
    await calm(scopes)
    assert set(await scoping.bound(test)) == set(names[1:])
    await scoping.edit(SCOPE_INSTANCE, si, "", ("add", "/metadata/annotations", {mark: digest}))
    await scoping.bound_in(test)
    await scoping.scoped(si)
    await calm(scopes)
    live = await scoping.get(SCOPE_INSTANCE, si)
    assert live["status"]["namespaceSelector"] == {key: "prd"}
