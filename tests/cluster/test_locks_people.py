"""What people write into a HelmRelease holds, and what cannot hold they read there: pauses, other namespaces, conflicts."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json

import pytest
import yaml
from click.testing import CliRunner, Result
from locking import SYSTEM, Helm, Locks, condition, config_map, token, watched
from people import pointer
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.cli import main
from tenantry.local.control_plane import ControlPlane
from tenantry.model.kinds import CONFIG_MAP, HELM_RELEASE, SECRET
from tenantry.model.names import RELEASE_MANAGED_BY
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE


@pytest.mark.check("hpo-74")
@pytest.mark.check("hpo-75")
async def test_what_cannot_be_locked_is_told_or_ignored(helm: Helm, locks: Locks, admin: Api) -> None:
    """Without a release SecretNotFound; names missing are told; another namespace or another's mark is ignored."""
    name = f"none-{token()}"
    await locks.namespace(name)
    await locks.lock(name, "nothing", name)
    await locks.lock(f"{name}-empty", "", "")
    await locks.lock(f"{name}-bad", "no such, name", name)
    await locks.lock(name, name, name, system=name)
    theirs = await locks.lock(f"{name}-theirs", name, name)
    await admin.delete(HELM_RELEASE, f"{name}-theirs", SYSTEM)
    await locks.away(HELM_RELEASE, f"{name}-theirs", SYSTEM)
    marked = obj(HELM_RELEASE, f"{name}-theirs", SYSTEM, annotations={RELEASE_MANAGED_BY: "somebody-else"}, spec=theirs["spec"])
    await admin.create(HELM_RELEASE, marked)
    await helm.install(name, name, config_map("c1", {"a": "1"}))

    status = await locks.status(name, lambda status: status.get("state") == "SecretNotFound")
    assert (status["version"], condition(status, "Locked")["reason"]) == (0, "ReleaseNotFound")
    for unnamed in (f"{name}-empty", f"{name}-bad"):
        status = await locks.status(unnamed, lambda status: bool(status.get("conditions")))
        assert condition(status, "Locked")["reason"] == "NamesNoRelease"
    await locks.edit(CONFIG_MAP, "c1", name, ("replace", "/data/a", "2"))
    await locks.swept()
    for place, namespace in ((name, name), (f"{name}-theirs", SYSTEM)):
        found = await admin.get(HELM_RELEASE, place, namespace)
        assert found is not None
        assert "status" not in found
        assert not found["metadata"].get("finalizers")
    assert (await admin.get(CONFIG_MAP, "c1", name) or {})["data"] == {"a": "2"}


@pytest.mark.check("hpo-76")
async def test_records_are_read_in_every_form(helm: Helm, locks: Locks, admin: Api) -> None:
    """Plain JSON is read, and ConfigMap storage where the HelmRelease says so; a corrupt revision among good ones is skipped;
    corrupt alone it is told."""
    name = f"form-{token()}"
    await locks.namespace(name)
    await helm.install(name, name, config_map("c1", {"a": "1"}))
    record = await locks.until(SECRET, f"sh.helm.release.v1.{name}.v1", name, bool)
    packed = base64.b64decode(base64.b64decode(record["data"]["release"]))
    plain = base64.b64encode(base64.b64encode(gzip.decompress(packed))).decode()
    await locks.edit(SECRET, record["metadata"]["name"], name, ("replace", "/data/release", plain))
    data = {"release": base64.b64encode(b"not a release").decode()}
    second = f"sh.helm.release.v1.{name}.v2"
    await admin.create(SECRET, obj(SECRET, second, name, record["metadata"]["labels"], type=record["type"], data=data))
    await helm.install(f"{name}-cm", name, config_map("c2", {"b": "1"}), driver="configmap")
    await locks.lock(name, name, name)
    await locks.lock(f"{name}-cm", f"{name}-cm", name)
    await locks.locked(name)
    status = await locks.status(f"{name}-cm", lambda status: condition(status, "Locked").get("reason") == "ReleaseNotFound")
    assert "write ConfigMap into spec.storage" in condition(status, "Locked")["message"]
    await locks.edit(HELM_RELEASE, f"{name}-cm", SYSTEM, ("add", "/spec/storage", "ConfigMap"))
    await locks.locked(f"{name}-cm")
    await locks.edit(CONFIG_MAP, "c1", name, ("replace", "/data/a", "x"))
    await locks.edit(CONFIG_MAP, "c2", name, ("replace", "/data/b", "x"))
    await locks.data("c1", name, {"a": "1"})
    await locks.data("c2", name, {"b": "1"})

    await admin.delete(SECRET, record["metadata"]["name"], name)
    status = await locks.status(name, lambda status: condition(status, "Locked").get("reason") == "RecordsUnreadable")
    assert status["state"] == "Deployed"  # unchanged: nothing says otherwise
    assert "revision 2" in condition(status, "Locked")["message"]


@pytest.mark.check("hpo-80")
@pytest.mark.parametrize("pause", ["field", "annotation", "annotation of the object"])
async def test_a_pause_lets_edits_stay(helm: Helm, locks: Locks, admin: Api, pause: str) -> None:
    """While a release or an object is paused an edit and a deletion stay, whatever is looked at; then both are undone."""
    name = await locks.release(helm, "pause", config_map("c1", {"a": "1"}), config_map("c2", {"a": "1"}))
    release, annotation = (HELM_RELEASE, name, SYSTEM), "/metadata/annotations/tenantry.dev~1lock"
    where, on, off = {
        "field": (release, ("add", "/spec/suspend", True), ("replace", "/spec/suspend", False)),
        "annotation": (release, ("add", annotation, "paused"), ("remove", annotation, None)),
        "annotation of the object": ((CONFIG_MAP, "c1", name), ("add", annotation, "paused"), ("remove", annotation, None)),
    }[pause]

    await locks.edit(*where, on)
    if where == release:
        await locks.status(name, lambda status: condition(status, "Locked").get("reason") == "Paused")
        await admin.delete(CONFIG_MAP, "c2", name)
    edited = await locks.edit(CONFIG_MAP, "c1", name, ("replace", "/data/a", "x"))
    await locks.swept()
    assert await admin.get(CONFIG_MAP, "c1", name) == edited
    assert (await admin.get(CONFIG_MAP, "c2", name) is None) is (where == release)

    await locks.edit(*where, off)
    await locks.until(CONFIG_MAP, "c1", name, lambda found: found["data"] == {"a": "1"}, within=10)
    await locks.until(CONFIG_MAP, "c2", name, lambda found: found["data"] == {"a": "1"}, within=10)
    await locks.locked(name)


async def test_pauses_and_ignored_fields(helm: Helm, locks: Locks) -> None:
    """One pause may follow another, of a release or one object; ignored fields stay as they are, and bad rules are told."""
    name = f"pause-{token()}"
    await locks.namespace(name)
    await helm.install(name, name, config_map("c1", {"a": "1", "free": "1"}), config_map("c2", {"a": "1", "free": "1"}))
    await locks.lock(name, name, name, suspend=True, ignore=[{"kind": "ConfigMap", "name": "c1", "paths": ["/data/free", "bad"]}])
    await locks.status(name, lambda status: condition(status, "Locked").get("reason") == "Paused")
    for each in ("c1", "c2"):
        await locks.edit(CONFIG_MAP, each, name, ("replace", "/data/a", "x"), ("replace", "/data/free", "x"))
    annotations = {"tenantry.dev/lock": "paused", "tenantry.dev/lock-ignore": "/data/free"}
    await locks.edit(CONFIG_MAP, "c2", name, *[("add", f"/metadata/annotations/{pointer(k)}", v) for k, v in annotations.items()])
    await locks.edit(HELM_RELEASE, name, SYSTEM, ("add", "/metadata/annotations/tenantry.dev~1lock", "paused"))
    await locks.edit(HELM_RELEASE, name, SYSTEM, ("remove", "/spec/suspend", None))
    await locks.status(name, lambda status: status.get("observedGeneration") == 2)
    await locks.edit(HELM_RELEASE, name, SYSTEM, ("remove", "/metadata/annotations/tenantry.dev~1lock", None))

    await locks.data("c1", name, {"a": "1", "free": "x"})
    status = await locks.status(name, lambda status: status.get("lockedVersion") == 1)
    assert condition(status, "Complete")["reason"] == "BadIgnoreRule"
    assert "'bad'" in condition(status, "Complete")["message"]
    await locks.data("c2", name, {"a": "x", "free": "x"})  # still paused
    await locks.edit(CONFIG_MAP, "c2", name, ("remove", "/metadata/annotations/tenantry.dev~1lock", None))
    await locks.data("c2", name, {"a": "1", "free": "x"})
    await locks.edit(HELM_RELEASE, name, SYSTEM, ("remove", "/spec/ignore", None))
    await locks.data("c1", name, {"a": "1", "free": "1"})
    await locks.locked(name)


@pytest.mark.check("hpo-81")
async def test_one_object_has_one_lock(helm: Helm, locks: Locks, admin: Api) -> None:
    """Of two HelmReleases that claim an object the older keeps it and the other tells; Helm's marks say whose it is."""
    name = f"both-{token()}"
    await locks.namespace(name)
    await helm.install(f"{name}-a", name, config_map("shared", {"of": "a"}), config_map("a", {"of": "a"}))
    marks = [("remove", f"/metadata/annotations/meta.helm.sh~1release-{part}", None) for part in ("name", "namespace")]
    await locks.lock(f"{name}-1", f"{name}-a", name)
    await locks.locked(f"{name}-1")
    await locks.lock(f"{name}-2", f"{name}-a", name)
    status = await locks.status(f"{name}-2", lambda status: condition(status, "Locked").get("reason") == "Conflict")
    assert f"{name}-1 is older" in condition(status, "Locked")["message"]

    chart = helm.chart(f"{name}-b", config_map("shared", {"of": "b"}), config_map("b", {"of": "b"}))
    await locks.edit(HELM_RELEASE, f"{name}-1", SYSTEM, ("add", "/spec/suspend", True))
    await helm.run("install", f"{name}-b", chart, "-n", name, "--take-ownership")
    await locks.lock(f"{name}-3", f"{name}-b", name)
    await locks.locked(f"{name}-3")
    await locks.edit(HELM_RELEASE, f"{name}-1", SYSTEM, ("remove", "/spec/suspend", None))
    status = await locks.status(f"{name}-1", lambda status: condition(status, "Complete").get("reason") == "ForeignObject")
    assert "ConfigMap" in condition(status, "Complete")["message"]
    assert "/shared belongs to" in condition(status, "Complete")["message"]
    await locks.edit(CONFIG_MAP, "shared", name, *marks)
    for each in (f"{name}-1", f"{name}-3"):  # nobody's by its marks
        status = await locks.status(each, lambda status: "lacks Helm's marks" in condition(status, "Complete").get("message", ""))
        assert condition(status, "Complete")["reason"] == "ForeignObject"
    await admin.delete(CONFIG_MAP, "shared", name)
    await locks.data("shared", name, {"of": "a"})  # what is missing the oldest HelmRelease makes
    status = await locks.status(
        f"{name}-3", lambda status: "/shared belongs to" in condition(status, "Complete").get("message", "")
    )
    assert condition(status, "Complete")["reason"] == "ForeignObject"
    await locks.edit(CONFIG_MAP, "b", name, ("replace", "/data/of", "x"))
    await locks.data("b", name, {"of": "b"})

    await admin.delete(HELM_RELEASE, f"{name}-1", SYSTEM)
    await locks.locked(f"{name}-2")
    await admin.delete(HELM_RELEASE, f"{name}-2", SYSTEM)
    await locks.away(HELM_RELEASE, f"{name}-2", SYSTEM)
    await admin.delete(CONFIG_MAP, "shared", name)
    await locks.locked(f"{name}-3")
    await locks.data("shared", name, {"of": "b"})


@pytest.mark.check("a-7")
async def test_what_the_helm_release_allows_is_kept_elsewhere(helm: Helm, locks: Locks, admin: Api) -> None:
    """A chart's object in another namespace is told and left alone until the HelmRelease names the namespace, and again when it
    does not any more; meanwhile it is watched and kept."""
    name = f"wide-{token()}"
    other = f"{name}-rules"
    await locks.namespace(name)
    await locks.namespace(other)
    await helm.install(name, name, config_map("c1", {"a": "1"}), config_map("c2", {"a": "1"}, namespace=other))
    await locks.lock(name, name, name)

    async def left_alone() -> None:
        status = await locks.status(name, lambda status: condition(status, "Complete").get("reason") == "OutsideRelease")
        for part in (f"ConfigMap {other}/c2", "spec.allow.namespaces", name):
            assert part in condition(status, "Complete")["message"]
        await watched(admin, f'"{other}"', False)
        edited = await locks.edit(CONFIG_MAP, "c2", other, ("replace", "/data/a", "drift"))
        await locks.swept()
        assert await admin.get(CONFIG_MAP, "c2", other) == edited

    await left_alone()
    await locks.edit(HELM_RELEASE, name, SYSTEM, ("add", "/spec/allow", {"namespaces": [other]}))
    await locks.data("c2", other, {"a": "1"})
    await locks.locked(name)
    await watched(admin, other, True)
    await locks.edit(CONFIG_MAP, "c2", other, ("replace", "/data/a", "drift"))
    await locks.data("c2", other, {"a": "1"})
    await locks.edit(HELM_RELEASE, name, SYSTEM, ("remove", "/spec/allow", None))
    await left_alone()


async def command(control_plane: ControlPlane, *arguments: str) -> tuple[int, str]:
    """Run ``tenantry lock`` as an administrator."""

    def run() -> Result:
        return CliRunner().invoke(main, ["lock", *arguments, "--kubeconfig", str(control_plane.kubeconfig)])

    result = await asyncio.to_thread(run)
    return result.exit_code, result.output


async def test_the_command_shows_and_pauses(helm: Helm, locks: Locks, control_plane: ControlPlane) -> None:
    """List and show tell the state; pause lets edits stay, diff shows them with exit code 1, resume puts them back."""
    name = await locks.release(helm, "cli", config_map("c1", {"a": "1", "b": "1"}), config_map("c2", {"a": "1"}))

    code, listed = await command(control_plane, "list")
    assert code == 0
    assert [name, f"{name}/{name}", "Deployed", "1", "True", "Enforced"] in [line.split() for line in listed.splitlines()]
    code, shown = await command(control_plane, "show", name, "-o", "json")
    assert (code, json.loads(shown)["lockedVersion"]) == (0, 1)
    assert (await command(control_plane, "diff", name))[0] == 0

    assert (await command(control_plane, "pause", name)) == (0, f"{name} is paused\n")
    await locks.status(name, lambda status: condition(status, "Locked").get("reason") == "Paused")
    await locks.edit(CONFIG_MAP, "c1", name, ("replace", "/data/a", "x"))
    await locks.admin.delete(CONFIG_MAP, "c2", name)
    code, told = await command(control_plane, "diff", name)
    assert code == 1
    assert f'ConfigMap {name}/c1: drifted\n  data[a]: live "x", locked "1"\nConfigMap {name}/c2: missing\n' == told
    code, told = await command(control_plane, "diff", name, "-o", "yaml")
    assert (code, [row["state"] for row in yaml.safe_load(told)["drift"]]) == (1, ["drifted", "missing"])

    assert (await command(control_plane, "resume", name)) == (0, f"{name} is locked again\n")
    await locks.data("c1", name, {"a": "1", "b": "1"})
    await locks.data("c2", name, {"a": "1"})
    await locks.lock(f"{name}-none", "nothing", name)
    code, told = await command(control_plane, "diff", f"{name}-none")
    assert (code, told.partition(" in Secrets; ")[0]) == (3, f"nothing was compared: there is no Helm release {name}/nothing")
    code, told = await command(control_plane, "show", "nobody")
    assert (code, "there is no HelmRelease nobody" in told) == (1, True)
