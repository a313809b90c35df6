"""A system whose decisions are kept, the command that asks for them, and what the API server says was written meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from tenantry.cli import main
from tenantry.local.kinds import guess_plural
from tenantry.local.knative import Knative
from tenantry.model.kinds import Object
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.testing.audit import AuditLog

Row = tuple[str, str, str, str]
"""A write: ``delete``, ``status`` or ``write``, the plural, namespace and name."""
ACCOUNT = f"system:serviceaccount:{SYSTEM_NAMESPACE}:"
_VERBS = {"create": "write", "update": "write", "patch": "write", "delete": "delete"}


async def tenantry(*arguments: str, **environment: str) -> Result:
    """The command, in a thread: it brings an event loop of its own."""
    result = await asyncio.to_thread(CliRunner().invoke, main, arguments, env=environment)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


async def history(running: Knative, *arguments: str) -> Any:
    """What the ledger of a running system says, as JSON."""
    assert running.ledger.path is not None
    result = await tenantry("history", *arguments, "--ledger", str(running.ledger.path), "--limit", "100000", "-o", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def now() -> str:
    """This moment, as the command takes it."""
    return datetime.now(UTC).isoformat()


def writes_in(decisions: Iterable[Object]) -> Counter[Row]:
    """All writes of decisions."""
    return Counter(
        (
            write["verb"] if write["verb"] in ("delete", "status") else "write",
            guess_plural(write["kind"]),
            write.get("namespace", ""),
            write["name"],
        )
        for each in decisions
        for write in each["writes"]
    )


def audited(log: AuditLog, services: Sequence[str], since: str) -> Counter[Row]:
    """What the API server stored for these identities since a moment, without Events."""
    found = Counter[Row]()
    for event in log.events():
        service, about, verb = event["user"]["username"].removeprefix(ACCOUNT), event.get("objectRef") or {}, event["verb"]
        at = datetime.fromisoformat(event["requestReceivedTimestamp"])
        if service not in services or verb not in _VERBS or about.get("resource") == "events" or "dryRun" in event["requestURI"]:
            continue
        if at < datetime.fromisoformat(since) or (event.get("responseStatus") or {}).get("code", 0) >= 300:
            continue
        did = "status" if about.get("subresource") == "status" else _VERBS[verb]
        namespace = "" if about["resource"] == "namespaces" else about.get("namespace", "")  # the audit log names its own there
        found[did, about["resource"], namespace, about.get("name", "")] += 1
    return found


def holds(path: Path, *texts: str) -> list[str]:
    """Which of these texts are anywhere in the ledger's files, packed or not."""
    from tenantry.serving.ledger.asked import reading
    from tenantry.serving.ledger.record import unpacked

    raw = b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*"))
    with reading(path) as connection:
        blobs = [row[0] for table in ("decisions", "writes") for row in connection.execute(f"SELECT more FROM {table}")]
    everything = raw.decode("latin-1") + json.dumps([unpacked(blob) for blob in blobs])
    return [text for text in texts if text in everything]
