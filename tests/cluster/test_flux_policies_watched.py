"""Whether the policies are there is told by lock-enforcement, and mended by whoever may write them (3.7)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
import yaml
from commanding import Command, commanding
from flawless import Calm
from flux_crds import KINDS, crd, current, flux_kind, install_flux, version_of
from flux_locking import LOCKS
from fluxing import Fluxing
from people import CORE_EVENT
from times import CONTROLLER_S, LEFT_TO_MAKE_WHOLE, SERVED_S

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.flux.names import DEFAULT, TENANCY_PROFILE
from tenantry.model.flux.policies import GENERATED
from tenantry.model.flux.policies.parts import LABELS
from tenantry.model.kinds import ADMISSION_POLICY, ADMISSION_POLICY_BINDING, CUSTOM_RESOURCE_DEFINITION, Kind, Object
from tenantry.testing import eventually

pytestmark = [LEFT_TO_MAKE_WHOLE, pytest.mark.no_policies]
MINE = ",".join(f"{key}={value}" for key, value in LABELS.items())
IMAGE_POLICY = flux_kind("ImagePolicy")
OF_IMAGES = [f"tenantry-{sort}-{IMAGE_POLICY.crd_name}" for sort in ("lock-guard", "references")]
COMMAND = "tenantry profile apply --prune"


@pytest.fixture(scope="module")
def flux(admin: Api) -> Fluxing:
    """The platform."""
    return Fluxing(admin)


@pytest.fixture(scope="module")
def command(control_plane: ControlPlane) -> Command:
    """The command of an administrator."""
    return commanding(control_plane)


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api, flux: Fluxing, command: Command) -> Knative:
    """lock-enforcement, with the policies of a profile for several tenants, where ImagePolicies are not served."""
    await install_flux(admin, current(*(each.kind for each in KINDS if each is not IMAGE_POLICY)))
    running = await flawlessly({}, functions=[LOCKS])
    await flux.profile()
    await applied(command)
    return running


async def applied(command: Command, *options: str) -> dict[str, list[str]]:
    """The names of what `tenantry profile apply` says that something became of, by what."""
    code, output, errors = await command("profile", "apply", "-o", "json", *options)
    assert (code, errors) == (0, "")
    found: dict[str, list[str]] = {}
    for row in json.loads(output):
        found.setdefault(row["result"], []).append(row["name"])
    return {result: sorted(names) for result, names in found.items()}


async def says(flux: Fluxing, words: str) -> Object:
    """Wait until Ready is False with these words, or for no words True; returns the profile."""

    def holds(found: Object) -> bool:
        said: Any = find_condition(found, "Ready") or {}
        wanted = ("False", "PoliciesNotAsWanted") if words else ("True", "AsWanted")
        return bool((said.get("status"), said.get("reason")) == wanted and words in said["message"])

    return await flux.until(TENANCY_PROFILE, DEFAULT, "", holds, what=f"Ready: {words or 'True'}")


async def told(admin: Api, message: str = "") -> list[str]:
    """The Warnings about policies, those with this message if one is given."""
    fields = "involvedObject.kind=TenancyProfile,reason=PoliciesNotAsWanted"
    found = [each["message"] for each in (await admin.list(CORE_EVENT, field_selector=fields)).items]
    return [each for each in found if message in ("", each)]


async def versions(admin: Api) -> dict[str, str]:
    """What of ours there is of policies, mutations and bindings, with the resourceVersion of each."""
    lists = await asyncio.gather(*(admin.list(kind, label_selector=MINE) for kind in GENERATED))
    objects = [each for found in lists for each in found.items]
    return {f"{each['kind']}/{each['metadata']['name']}": each["metadata"]["resourceVersion"] for each in objects}


async def all_checked(admin: Api) -> bool:
    """Whether Kubernetes has written all that it says of the types in policies."""
    found = (await admin.list(ADMISSION_POLICY, label_selector=MINE)).items
    return all((each.get("status") or {}).get("observedGeneration") == each["metadata"]["generation"] for each in found)


@pytest.mark.check("f-82")
async def test_policies_follow_what_is_served(
    flux: Fluxing, admin: Api, command: Command, control_plane: ControlPlane, system: Knative, calm: Calm
) -> None:
    """Of a kind that is not served there is none, and nothing is said; one that comes, comes in another version, or goes, is told
    with the policies and the command, once, until it is run."""
    export = ("profile", "export", "--security-profile=multi-tenant", "--part=cluster")
    code, output, errors = await command(*export, "--kubeconfig", control_plane.kubeconfig)
    assert (code, errors) == (0, "")
    exported = [each["metadata"]["name"] for each in yaml.safe_load_all(output)]
    assert not [each for each in exported if IMAGE_POLICY.crd_name in each]
    assert f"tenantry-references-{flux_kind('Kustomization').crd_name}" in exported
    await says(flux, "")
    await calm(system)
    before = await told(admin)
    assert not [each for each in before if IMAGE_POLICY.crd_name in each]

    await install_flux(admin, [crd(IMAGE_POLICY)])
    await reported(flux, admin, system, calm, f"missing: {', '.join(OF_IMAGES)}")
    found = await applied(command)
    assert (found["created"], set(found)) == (sorted(OF_IMAGES * 2), {"created", "unchanged"})
    await says(flux, "")

    spec = IMAGE_POLICY.spec
    await install_flux(admin, [crd(IMAGE_POLICY, version_of("v1", spec), version_of("v1beta2", spec, storage=False))])
    await reported(flux, admin, system, calm, f"edited, or of another release, profile or served version: {', '.join(OF_IMAGES)}")
    found = await applied(command)
    assert (found["updated"], set(found)) == (sorted(OF_IMAGES), {"updated", "unchanged"})
    await says(flux, "")
    await eventually(lambda: all_checked(admin), within=CONTROLLER_S, what="the types in all policies are checked")
    there = await versions(admin)
    assert set(await applied(command)) == {"unchanged"}
    assert await versions(admin) == there

    await admin.delete(CUSTOM_RESOURCE_DEFINITION, IMAGE_POLICY.crd_name)
    kind = Kind(f"{IMAGE_POLICY.group}/v1", IMAGE_POLICY.kind, IMAGE_POLICY.plural)
    await eventually(lambda: is_gone(admin, kind), within=SERVED_S, what="ImagePolicies are not served any more")
    await reported(flux, admin, system, calm, f"superfluous: {', '.join(OF_IMAGES)}")
    found = await applied(command)
    assert found["superfluous: take it away with --prune"] == sorted(OF_IMAGES * 2)
    assert (await applied(command, "--prune"))["deleted"] == sorted(OF_IMAGES * 2)
    assert not [each for each in await versions(admin) if IMAGE_POLICY.crd_name in each]
    await says(flux, "")


async def is_gone(admin: Api, kind: Kind) -> bool:
    """Whether a kind is not served."""
    return await admin.served(kind.api_version, kind.kind, again=True) is None


async def reported(flux: Fluxing, admin: Api, system: Knative, calm: Calm, what: str) -> Object:
    """Wait until the profile says this, with the command, and nothing else; a Warning says the same, once."""
    message = f"{what}: run `{COMMAND}`"
    found = await says(flux, message)
    said: Any = find_condition(found, "Ready")
    assert said["message"] == message
    await calm(system)
    assert await told(admin, message) == [message]
    return found


TOUCHED = {
    "binding deleted": "tenantry-namespace-delete",
    "policy deleted": "tenantry-source-status",
    "binding edited": "tenantry-protected-labels",
    "policy edited": "tenantry-helmchart-owner",
}
"""Each another: what was told once is not told again."""


@pytest.mark.check("f-95")
@pytest.mark.parametrize("how", list(TOUCHED))
async def test_what_an_administrator_does_to_policies_is_told(
    flux: Fluxing, admin: Api, command: Command, system: Knative, calm: Calm, how: str
) -> None:
    """In the status and by one Warning, with the command; applied again nothing is told any more."""
    name, what = TOUCHED[how], "edited, or of another release, profile or served version"
    await applied(command, "--prune")
    await says(flux, "")
    match how:
        case "binding deleted":
            await admin.delete(ADMISSION_POLICY_BINDING, name)
            what = "not bound"
        case "policy deleted":
            await admin.delete(ADMISSION_POLICY, name)
            what = "missing"
        case "binding edited":
            edit: Object = {"op": "add", "path": "/spec/validationActions", "value": ["Audit"]}
            await admin.json_patch(ADMISSION_POLICY_BINDING, name, "", [edit])
        case "policy edited":
            edit = {"op": "add", "path": "/spec/validations/0/expression", "value": "true"}
            await admin.json_patch(ADMISSION_POLICY, name, "", [edit])
    found = await says(flux, f"{what}: {name}: run `{COMMAND}`")
    (state,) = (each for each in found["status"]["policies"] if each["name"] == name)
    assert not state["current"]
    assert (state["present"], state["bound"]) == (how != "policy deleted", how != "binding deleted")
    assert (find_condition(found, "Enforced") or {})["status"] == "False"
    await reported(flux, admin, system, calm, f"{what}: {name}")
    assert (await applied(command)).keys() <= {"created", "updated", "unchanged"}
    found = await says(flux, "")
    assert (find_condition(found, "Enforced") or {})["status"] == "True"
    assert all(each["current"] for each in found["status"]["policies"])
