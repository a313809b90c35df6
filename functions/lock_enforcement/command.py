"""``tenantry lock``: what is locked, what drifted, and how to let go for a while."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import click

from lock_enforcement.index import Index
from lock_enforcement.locks import release_named
from lock_enforcement.releases.observe import Observer
from lock_enforcement.releases.report import why_not_kept
from lock_enforcement.releases.seen import LOCK_MANAGER, LockedObject
from lock_enforcement.releases.trial import Memory
from tenantry.api import Api
from tenantry.api.errors import NotFound
from tenantry.cli.completing import namespaces
from tenantry.cli.options import kubeconfig_option
from tenantry.cli.output import output_option, structured, table
from tenantry.engine.reader import Reader
from tenantry.model.comparison import MISSING, shown, value_at
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import HELM_RELEASE, Object, annotations_of
from tenantry.model.names import LOCK
from tenantry.model.pointer import pointer
from tenantry.serving.config import load_config

NOTHING_LOCKED = 3

namespace_option = click.option(
    "-n", "--namespace", default="", shell_complete=namespaces, help="Where HelmReleases live; default: from the configuration."
)


def _of_one(command: Callable[..., None]) -> Callable[..., None]:
    """Arguments and options of what is done with one HelmRelease."""
    return click.argument("name")(namespace_option(kubeconfig_option(command)))


@click.group()
def lock() -> None:
    """Locks on Helm releases.

    \b
    Examples:
      tenantry lock list
      tenantry lock diff monitoring            exit code 1 when something drifted
      tenantry lock pause monitoring           changes stay until `tenantry lock resume monitoring`
    """


@lock.command("list")
@namespace_option
@kubeconfig_option
@output_option
def list_(namespace: str, kubeconfig: Path | None, output: str) -> None:
    """List HelmReleases with what they lock."""

    async def read(api: Api, system: str) -> list[dict[str, Any]]:
        return [_summary(found) for found in (await api.list(HELM_RELEASE, system)).items]

    rows = _run(read, namespace, kubeconfig)
    if output != "text":
        click.echo(structured(rows, output))
        return
    if not rows:
        click.echo("no HelmReleases")
        return
    names = ("name", "release", "state", "version", "locked", "why")
    table(names, [[str(row[name]) for name in names] for row in rows])


@lock.command()
@_of_one
@output_option
def show(name: str, namespace: str, kubeconfig: Path | None, output: str) -> None:
    """Show one HelmRelease: its release, conditions, and what was put right last."""

    async def read(api: Api, system: str) -> dict[str, Any]:
        found = await _get(api, name, system)
        status = found.get("status") or {}
        parts = ("lockedVersion", "lastDrift", "conditions")
        return {**_summary(found), **{part: status[part] for part in parts if status.get(part) is not None}}

    row = _run(read, namespace, kubeconfig)
    click.echo(structured(row, "yaml" if output == "text" else output))


@lock.command()
@_of_one
def pause(name: str, namespace: str, kubeconfig: Path | None) -> None:
    """Let everybody change the objects of a release until it is resumed."""
    _suspend(name, namespace, kubeconfig, True)
    click.echo(f"{name} is paused")


@lock.command()
@_of_one
def resume(name: str, namespace: str, kubeconfig: Path | None) -> None:
    """Keep the objects of a release again; what drifted meanwhile is put back."""
    _suspend(name, namespace, kubeconfig, False)
    click.echo(f"{name} is locked again")


@lock.command()
@_of_one
@output_option
def diff(name: str, namespace: str, kubeconfig: Path | None, output: str) -> None:
    """Show where live objects differ from the locked revision, also while the release is paused.

    Asks the API server by dry run, so it needs the right to patch these objects; nothing is written.  Values of Secrets are
    not shown.  Exit code 1 when something drifted or cannot be kept, 3 when nothing is locked and so nothing was compared.
    """

    async def read(api: Api, system: str) -> dict[str, Any]:
        config = load_config()
        observer = Observer(config, Index(config), Memory())
        seen = await observer.lock(name, Reader(api), paused_too=True)
        if seen is None:
            raise _missing(name, system)
        drift = [row for each in seen.objects if (row := _drift(each)) is not None]
        why = why_not_kept(seen, config)
        return {
            "release": str(seen.release),
            "revision": seen.deployed.revision if seen.deployed else 0,
            "drift": drift,
            "problems": list(seen.bad_documents),
            **({"notLocked": why} if why else {}),
        }

    found = _run(read, namespace, kubeconfig, LOCK_MANAGER)
    if output != "text":
        click.echo(structured(found, output))
    elif why := found.get("notLocked"):
        click.echo(f"nothing was compared: {why}")
    else:
        for row in found["drift"]:
            click.echo(f"{row['object']}: {row.get('problem') or row['state']}")
            for field in row.get("fields", ()):
                click.echo(f"  {field['path']}: live {field['live']}, locked {field['locked']}")
        for text in found["problems"]:
            click.echo(text)
        if not found["drift"] and not found["problems"]:
            click.echo(f"no drift from revision {found['revision']} of {found['release']}")
    sys.exit(NOTHING_LOCKED if "notLocked" in found else 1 if found["drift"] or found["problems"] else 0)


def _drift(each: LockedObject) -> dict[str, Any] | None:
    row: dict[str, Any] = {"object": str(each.key)}
    if each.problem is not None:
        return {**row, "state": "not kept", "problem": each.problem.text}
    if each.live is None:
        return {**row, "state": "missing"}
    if not each.drift:
        return None
    hidden = each.key.kind == "Secret"
    fields = [
        {
            "path": shown(path),
            "live": "(hidden)" if hidden else _value(value_at(each.live, path)),
            "locked": "(hidden)" if hidden else _value(value_at(each.wanted, path)),
        }
        for path in each.drift
    ]
    return {**row, "state": "drifted" if each.body is not None else "drifted, to be made anew", "fields": fields}


def _value(value: Any) -> str:
    return "nothing" if value is MISSING else json.dumps(value, ensure_ascii=False)[:200]


def _suspend(name: str, namespace: str, kubeconfig: Path | None, suspended: bool) -> None:
    async def write(api: Api, system: str) -> None:
        found = await _get(api, name, system)
        operations = [{"op": "test", "path": "/metadata/uid", "value": found["metadata"]["uid"]}]
        if not isinstance(found.get("spec"), dict):
            operations.append({"op": "add", "path": "/spec", "value": {}})
        operations.append({"op": "add", "path": "/spec/suspend", "value": suspended})
        if not suspended and LOCK in annotations_of(found):
            operations.append({"op": "remove", "path": pointer("metadata", "annotations", LOCK)})
        await api.json_patch(HELM_RELEASE, name, system, operations)

    _run(write, namespace, kubeconfig)


async def _get(api: Api, name: str, system: str) -> Object:
    found = await api.get(HELM_RELEASE, name, system)
    if found is None:
        raise _missing(name, system)
    return found


def _missing(name: str, system: str) -> NotFound:
    return NotFound(f"there is no HelmRelease {name} in namespace {system}; `tenantry lock list` shows those that are")


def _summary(found: Object) -> dict[str, Any]:
    status = found.get("status") or {}
    locked = find_condition(found, "Locked") or {}
    complete = find_condition(found, "Complete") or {}
    why = complete.get("reason") if complete.get("status") == "False" else locked.get("reason")
    return {
        "name": found["metadata"]["name"],
        "release": str(release_named(found) or ""),
        "state": status.get("state") or "",
        "version": status.get("version") or 0,
        "locked": locked.get("status") == "True",
        "why": why or "not looked at yet",
    }


def _run(
    work: Callable[[Api, str], Awaitable[Any]], namespace: str, kubeconfig: Path | None, manager: str = "tenantry-cli"
) -> Any:
    async def run() -> Any:
        system = namespace or load_config().helm_project_operator.system_namespace
        async with await Api.connect(field_manager=manager, kubeconfig=kubeconfig) as api:
            return await work(api, system)

    return asyncio.run(run())
