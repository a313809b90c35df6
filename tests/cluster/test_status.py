"""``tenantry status``, ``tree`` and ``map`` over a cluster with something of everything, and completion from it."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import signal
import struct
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from fcntl import ioctl
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from commanding import Command, account_kubeconfig
from people import registration, token
from standing import World
from times import LEFT_TO_MAKE_WHOLE, LOCAL_S, SERVED_S, START_S

from tenantry.api import Api
from tenantry.cli.standing.look import look
from tenantry.cli.standing.read import PERSON
from tenantry.cli.standing.watch import Followed
from tenantry.local.control_plane import ControlPlane
from tenantry.model.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, CUSTOM_RESOURCE_DEFINITION, ROLE_BINDING, SERVICE_ACCOUNT
from tenantry.serving.dead_letters.letter import Letter
from tenantry.serving.dead_letters.store import Store
from tenantry.serving.installed import descriptors, services_of
from tenantry.testing import eventually
from tenantry.testing.objects import obj


async def test_a_cluster_without_tenantry_is_told_apart(as_admin: Command) -> None:
    """Where nothing of Tenantry is served each command says so, with the way out, and exit code 1."""

    async def asked() -> tuple[int, str, str]:
        return await as_admin("status")

    await eventually(asked, lambda found: found[0] == 1, within=SERVED_S, what="the CRDs of an earlier module are gone")
    for arguments in (("status",), ("tree",), ("map", "-o", "json")):
        code, output, errors = await as_admin(*arguments)
        assert (code, output) == (1, "")
        assert errors.startswith(
            "tenantry: this cluster has no Tenantry: it serves none of its kinds. Install it with `kubectl apply"
        )


async def shown(command: Command, *arguments: str) -> Any:
    _, output, errors = await command(*arguments, "-o", "json")
    assert errors == ""
    return json.loads(output)


async def test_status_has_everything_on_one_screen(world: World, as_admin: Command) -> None:
    """Each Service is there with the age of its sweep, then backlog and dead letters, then problems by how many they concern."""
    code, text, errors = await as_admin("status")
    assert (code, errors) == (3, "")

    rows = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    for service in services_of(descriptors()):
        assert "running" in rows[service.name]
        assert "s ago" in rows[service.name]
    assert "backlog: 0 waiting" in text
    assert "dead letters: none" in text
    order = [text.index(each) for each in (f"Namespace {world.blocked}", f"Namespace {world.misnamed}", f"Paas {world.paas}")]
    assert order == sorted(order), "three people, one person, and a warning at the end"
    assert f"✗ NamespaceConflict: Namespace {world.blocked} of project/{world.bad}" in text
    assert "concerns 3 people, 1 namespace" in text
    assert "fix: delete it, choose another project id, or let Tenantry take it over" in text
    assert "\x1b" not in text, "colours are for terminals"


async def test_status_for_programs_has_the_same(world: World, as_admin: Command) -> None:
    """As JSON and YAML: times of sweeps, and each problem with its condition, reason, fix and numbers."""
    found = await shown(as_admin, "status")
    code, text, _ = await as_admin("status", "-o", "yaml")
    assert code == 3
    assert {each["name"] for each in yaml.safe_load(text)["services"]} == {each["name"] for each in found["services"]}

    assert found["well"] is False
    assert all(each["up"] and each["lastSweep"].endswith("Z") and each["ageSeconds"] < 300 for each in found["services"])
    assert found["backlog"]["waiting"] == 0
    problems = {(each["kind"], each["name"]): each for each in found["problems"]}
    blocked = problems["Namespace", world.blocked]
    assert (blocked["severity"], blocked["condition"], blocked["people"], blocked["namespaces"]) == (
        "error",
        "tenantry.dev/Registered",
        3,
        1,
    )
    assert blocked["fix"].startswith("delete it, choose another project id")
    assert problems["Tenant", world.tenant]["reason"] == "NamespaceReserved"
    assert problems["ScopeInstance", world.scope]["fix"].startswith("kubectl describe scopeinstances.operators.coreos.com")
    assert problems["Paas", world.paas]["severity"] == "warning"
    assert [each["severity"] for each in found["problems"]] == sorted(each["severity"] for each in found["problems"])


async def test_tree_shows_what_belongs_to_what(world: World, as_admin: Command) -> None:
    """A project with its namespaces, release, bindings and whom they are made for; marks where something is wrong."""
    code, text, _ = await as_admin("tree", f"project/{world.good}")
    lines = text.splitlines()
    assert lines[0].startswith(f"project/{world.good} (4 namespaces, ")
    assert f"├── {registration(world.good)} (registration)" in lines
    assert any(line.startswith("│   ├── ProjectHelmChart demo (dummy.cattle.io/v1alpha1") for line in lines)
    assert "│   │   └── demo-dummy (release)" in lines
    assert any("RoleBinding alice: ClusterRole/view to User alice" in line for line in lines)
    assert any(f"to ServiceAccount ops/op, made for scope/{world.scope}" in line for line in lines)
    assert any(line.endswith("✗ ReleaseNotFound") for line in lines)
    assert code == 3

    code, text, _ = await as_admin("tree", f"project/{world.bad}")
    assert code == 3
    assert f"{world.blocked}  ✗ NamespaceConflict" in text
    for target, has in (
        (f"paas/{world.paas}", f"made for paas/{world.paas}"),
        (f"tenant/{world.tenant}", "✗ NamespaceReserved"),
        (f"namespace/{world.free}", "SourceGrant shared (GitRepository/shared: Read for stage=dev)"),
        ("", "namespaces without owner"),
    ):
        assert has in (await as_admin("tree", *([target] if target else [])))[1], target


async def test_tree_says_when_there_is_none_of_that_name(world: World, as_admin: Command) -> None:
    """A name that is not there is an error with those that are like it; a type that nobody knows is a wrong use."""
    code, output, errors = await as_admin("tree", f"project/{world.good[:-1]}")
    assert (code, output) == (1, "")
    assert f"did you mean project/{world.good}" in errors
    code, _, errors = await as_admin("tree", "pod/x")
    assert code == 2
    assert "write project/NAME, paas/NAME, tenant/NAME, namespace/NAME" in errors


async def test_a_namespace_that_nothing_is_wrong_with_is_well(world: World, as_admin: Command) -> None:
    """Exit code 0 where no condition tells of a problem."""
    assert (await as_admin("tree", f"namespace/{world.second}"))[0] == 0


async def test_map_is_one_file(world: World, as_admin: Command, tmp_path: Path) -> None:
    """HTML, SVG and JSON, printed or written; the JSON says who reaches what."""
    found = json.loads((await as_admin("map", "-o", "json"))[1])
    assert {"namespace": world.blocked, "role": "ClusterRole/edit"} in found["reach"]["User ann"]
    code, output, errors = await as_admin("map", "-o", str(tmp_path / "map.html"))
    assert (code, output) == (0, "")
    assert errors.startswith(f"{tmp_path}/map.html: written, ")
    page = (tmp_path / "map.html").read_text()
    assert "default-src 'none'" in page
    assert page.count("</script>") == 2
    _, picture, _ = await as_admin("map", "-o", "svg")
    texts = [each.text or "" for each in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert any(world.blocked in each for each in texts)
    code, _, errors = await as_admin("map", "-o", "map.pdf")
    assert code == 2
    assert "neither html, svg, json nor a file whose name ends so" in errors


async def test_what_ended_and_what_was_given_up_are_told(world: World, as_admin: Command) -> None:
    """A function that is not running and a dead letter are problems, until they are put right."""
    name = "rbac-aggregation-tenants"
    letter = Letter("scope-binding", f"Namespace/{world.free}", 503, "the API server is away", 3, last="2026-11-22T10:15:30Z")
    await Store(world.admin).change(lambda book: book.add(letter))
    await world.running.functions[name].stop()
    try:
        _, text, _ = await as_admin("status")
        found = await shown(as_admin, "status")
        assert "has ended, see `tenantry up`" in next(line for line in text.splitlines() if line.startswith(f"{name} "))
        assert f"scope-binding: Namespace/{world.free}: 503 the API server is away (3 times, last 2026-11-22T10:15:30Z)" in text
        assert [each["up"] for each in found["services"] if each["name"] == name] == [False]
        assert found["deadLetters"][0]["count"] == 3
    finally:
        await world.running.functions[name].start()
        await Store(world.admin).change(lambda book: book.remove(letter))


# -- with few rights ---------------------------------------------------------------------------------------------------


async def somebody(world: World, control_plane: ControlPlane, folder: Path, role: str, *, everywhere: bool) -> Path:
    """The kubeconfig of an account with a role, in its namespace or everywhere."""
    admin, name = world.admin, f"who-{token()}"
    await admin.apply(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, name, world.free))
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": world.free}]
    kind = CLUSTER_ROLE_BINDING if everywhere else ROLE_BINDING
    await admin.apply(kind, obj(kind, name, "" if everywhere else world.free, roleRef=ref, subjects=subjects))
    return await account_kubeconfig(admin, control_plane, world.free, name, folder / name)


async def test_what_may_not_be_read_is_said_first(
    world: World, as_admin: Command, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """Somebody who may read everything but bindings is told so at the top, and exits with 1; nothing reads as the whole."""
    rules = [
        {"apiGroups": ["*"], "resources": [each], "verbs": ["get", "list"]}
        for each in ("namespaces", "paas", "projecthelmcharts", "tenants", "configmaps", "leases", "deployments")
    ]
    await world.admin.apply(CLUSTER_ROLE, obj(CLUSTER_ROLE, "nearly-all", rules=rules))
    kubeconfig = await somebody(world, control_plane, tmp_path, "nearly-all", everywhere=True)

    async def asked() -> tuple[int, str, str]:
        return await as_admin("status", kubeconfig=kubeconfig)

    code, text, _ = await eventually(asked, lambda found: "\n  namespaces:" not in found[1], what="the rights are in force")
    assert code == 1
    assert text.startswith("NOT ALL OF THE CLUSTER: what follows lacks what could not be read\n")
    assert "  rolebindings.rbac.authorization.k8s.io: rolebindings.rbac.authorization.k8s.io is forbidden" in text
    assert f"Namespace {world.blocked}" in text, "what is certain is told all the same"
    code, output, errors = await as_admin("map", "-o", "json", kubeconfig=kubeconfig)
    assert code == 1
    assert next(iter(json.loads(output))) == "unread"
    assert "tenantry: not in it: rolebindings.rbac.authorization.k8s.io" in errors


async def test_who_has_one_namespace_sees_that_one(
    world: World, as_admin: Command, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """With rights in one namespace its tree is shown, and that the rest was not read is said."""
    kubeconfig = await somebody(world, control_plane, tmp_path, "admin", everywhere=False)

    async def asked() -> tuple[int, str, str]:
        return await as_admin("tree", f"namespace/{world.free}", kubeconfig=kubeconfig)

    code, text, _ = await eventually(asked, lambda found: "RoleBinding who-" in found[1], what="the rights are in force")
    assert code == 1
    assert "  all but this namespace: namespaces is forbidden" in text
    assert f"\n{world.free}" in text


# -- following -----------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def watching(
    control_plane: ControlPlane, *arguments: str, terminal: tuple[int, int] | None = None, **more: str
) -> AsyncIterator[Any]:
    """A command as a process, with a pipe or a terminal of so many lines and columns: the process and a reader of its output."""
    ours, theirs = pty.openpty() if terminal else os.pipe()
    if terminal:
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *terminal, 0, 0))
    environment = {**os.environ, "KUBECONFIG": str(control_plane.kubeconfig), "TERM": "xterm", "PYTHONUTF8": "1"}
    for size in ("COLUMNS", "LINES"):
        environment.pop(size, None)
    environment |= more
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tenantry.cli", *arguments), stdin=asyncio.subprocess.DEVNULL, stdout=theirs, env=environment
    )
    os.close(theirs)
    os.set_blocking(ours, False)
    heard = bytearray()

    async def said(text: str) -> str:
        async def check() -> str:
            with suppress(BlockingIOError, OSError):
                heard.extend(os.read(ours, 1 << 20))
            return heard.decode(errors="replace") if text.encode() in heard else ""

        return await eventually(check, within=START_S, what=text)

    try:
        yield process, said
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        os.close(ours)


async def test_watch_prints_what_changed(world: World, control_plane: ControlPlane) -> None:
    """Without a terminal the tree is printed once, and then what came and went, until it is asked to end."""
    name, target = f"new-{token()}", f"project/{world.good}"
    async with watching(control_plane, "tree", target, "--watch") as (process, said):
        await said(f"{world.second}\n")
        await world.people.namespace(name, world.good)
        text = await said(f"── {name}\n")
        assert f" + ├── {name}\n" in text or f" + └── {name}\n" in text
        assert text.count("RoleBinding alice") == 1, "what stayed is not told again"
        process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), LOCAL_S) == 3


async def test_what_goes_between_the_look_and_the_watches_is_gone(world: World, control_plane: ControlPlane) -> None:
    """The watches begin where the lists ended: nothing is read twice, and what went meanwhile is told."""
    name = f"brief-{token()}"
    await world.bind(world.free, name, "view", "zoe")
    async with await Api.connect(field_manager=PERSON, kubeconfig=control_plane.kubeconfig) as api:
        _, standing = await look(api, system=False)
        assert name in {each["metadata"]["name"] for each in standing.seen.of(ROLE_BINDING)}
        await world.admin.delete(ROLE_BINDING, name, world.free)
        async with Followed(api, standing) as followed:

            async def gone() -> bool:
                return name not in {each["metadata"]["name"] for each in (await followed.now()).seen.of(ROLE_BINDING)}

            assert await eventually(gone, within=LOCAL_S)


@pytest.mark.one_variant("arguments", "last")
@pytest.mark.parametrize(
    ("arguments", "last"),
    [
        (("status",), "fix: "),
        (("tree", "--watch"), "namespaces of the system"),
        (("explain", "can", "group:system:masters", "get", "pods"), "SubjectAccessReview agrees"),
        (("plan", "--label", "namespace/default", "a=b"), "0 created, 0 changed, 0 deleted"),
    ],
    ids=lambda each: each[0] if isinstance(each, tuple) else "",
)
async def test_a_terminal_without_colour_or_width_gets_plain_lines(
    world: World, control_plane: ControlPlane, arguments: tuple[str, ...], last: str
) -> None:
    """TERM=dumb, NO_COLOR and forty columns: no escape sequence, what we write is ASCII, and the map's lines fit."""
    plain = {"TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "40"}
    async with watching(control_plane, *arguments, terminal=(24, 40), **plain) as (_, said):
        text = await said(last)
    assert "\x1b" not in text
    assert text.isascii()
    if arguments[0] in ("status",):
        assert max(len(line.rstrip("\r")) for line in text.split("\n")) <= 40


@LEFT_TO_MAKE_WHOLE
async def test_watch_draws_anew_on_a_terminal(world: World, control_plane: ControlPlane) -> None:
    """On a terminal the screen is drawn anew at a change, no wider and no higher than it is."""
    name = f"seen-{token()}"
    async with watching(control_plane, "tree", "--watch", terminal=(12, 40)) as (process, said):
        await said("more lines")
        await world.people.namespace(name, f"a-{name}")
        text = await said(f"project/a-{name[:8]}")
        screen = text.rpartition("\x1b[2J")[2]
        rows = [row.replace("\r", "") for row in screen.split("\n")]
        assert len(rows) <= 12
        assert max(len(_plain(row)) for row in rows) <= 40
        process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), LOCAL_S) == 3


def _plain(row: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", row)


# -- completion ----------------------------------------------------------------------------------------------------------


async def completed(kubeconfig: Path, *words: str) -> list[str]:
    """What bash offers for the last word, by the script that the command prints."""
    script = (
        "source <(tenantry completion bash); "
        f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _tenantry_completion tenantry; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    process = await asyncio.create_subprocess_exec(
        *("bash", "--norc", "-c", script),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "KUBECONFIG": str(kubeconfig), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )
    output, errors = await asyncio.wait_for(process.communicate(), LOCAL_S)
    assert errors == b""
    return output.decode().split()


@LEFT_TO_MAKE_WHOLE
async def test_names_are_completed_from_the_cluster(world: World, control_plane: ControlPlane, tmp_path: Path) -> None:
    """Commands, types, owners and namespaces are offered; where the cluster cannot be asked none are, without a word."""
    kubeconfig = control_plane.kubeconfig
    nobody = tmp_path / "nobody"
    nobody.write_text(kubeconfig.read_text().replace("https://127.0.0.1:", "https://127.0.0.1:1"))
    offers = await asyncio.gather(
        completed(kubeconfig, "tenantry", "tr"),
        completed(kubeconfig, "tenantry", "tree", "pr"),
        completed(kubeconfig, "tenantry", "tree", f"project/{world.good[:4]}"),
        completed(kubeconfig, "tenantry", "tree", f"paas/{world.paas[:6]}"),
        completed(kubeconfig, "tenantry", "sources", "-n", world.free[:6]),
        completed(nobody, "tenantry", "tree", "project/"),
    )
    assert offers == [["tree"], ["project/"], [f"project/{world.good}"], [f"paas/{world.paas}"], [world.free], []]


# -- at the end ----------------------------------------------------------------------------------------------------------


async def test_an_older_installation_is_told_apart(world: World, as_admin: Command) -> None:
    """A kind of ours that the cluster does not serve is named at the top, with the way out; the rest is shown."""
    await world.admin.delete(CUSTOM_RESOURCE_DEFINITION, "sourcegrants.tenantry.dev")

    async def asked() -> str:
        return (await as_admin("status"))[1]

    text = await eventually(asked, lambda found: "OLDER INSTALLATION" in found, within=SERVED_S, what="the kind is not served")
    assert text.startswith(
        "OLDER INSTALLATION: the cluster does not serve sourcegrants.tenantry.dev\n  apply knative/ of this version"
    )
    assert f"Namespace {world.blocked}" in text
