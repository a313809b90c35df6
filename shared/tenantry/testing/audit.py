"""Which rights each function used, and what it wrote: the API server's own audit log, read as RBAC and fences decided.

The log has only requests under our service accounts: writes with their bodies, but nothing of what Secrets, Events and status
hold.  Of a function's identity only the requests count that its own client made (its field manager is in the User-Agent), so
that a test which borrows the identity claims no right.
A request counts when a role of ours allowed it, whatever became of it afterwards: an object that was not there, a conflict,
a quota.  A patch that made an object (201) needed ``create`` as well, which the server asks for without a trace in the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from pydantic_core import from_json

from tenantry.model.names import SYSTEM_NAMESPACE, field_manager
from tenantry.serving.installed import service_named
from tenantry.testing.writes import Written, written

_POLICY = f"""\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
  - level: Metadata
    userGroups: ["system:serviceaccounts:{SYSTEM_NAMESPACE}"]
    verbs: [get, list, watch]
  - level: Metadata
    userGroups: ["system:serviceaccounts:{SYSTEM_NAMESPACE}"]
    resources:
      - group: ""
        resources: [secrets, events, serviceaccounts/token]
      - group: events.k8s.io
      - resources: ["*/status"]
  - level: Request
    userGroups: ["system:serviceaccounts:{SYSTEM_NAMESPACE}"]
  - level: None
"""
_USER = f"system:serviceaccount:{SYSTEM_NAMESPACE}:"
_OUR_ROLE = re.compile(r' of (?:Cluster)?Role "tenantry-(?![^"]*-kinds")')
"""Roles named ``…-kinds`` are filled by administrators: what they allow is not ours to judge."""
_DENIED = re.compile(r'cannot (\w+) resource "([^"]+)" in API group "([^"]*)"')
_NO_NAME = frozenset({"create", "deletecollection"})


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """One right as RBAC sees it; ``resource`` with its subresource, ``name`` empty where the request named no object.

    ``function`` is the identity: where duties of a function run apart, that of the duty.
    """

    function: str
    group: str
    resource: str
    verb: str
    name: str = ""


@dataclass(slots=True)
class Used:
    """What was allowed by our roles, and what was refused for want of a right; what was written, and what a fence refused."""

    allowed: set[Use] = field(default_factory=set)
    denied: set[Use] = field(default_factory=set)
    written: set[Written] = field(default_factory=set)
    refused: set[Written] = field(default_factory=set)

    def add(self, event: Any) -> None:
        """Count one event of the log."""
        user = str(event["user"]["username"])
        function = user.removeprefix(_USER)
        reference = event.get("objectRef")
        if (
            function == user
            or not reference
            or f"({field_manager(service_named(function).function)})" not in event.get("userAgent", "")
        ):
            return
        status = event.get("responseStatus") or {}
        group, name, verb = reference.get("apiGroup", ""), reference.get("name", ""), event["verb"]
        if status.get("code") == 403 and (found := _DENIED.search(status.get("message", ""))):
            verb, resource, group = found.groups()
            self.denied.add(Use(function, group, resource, verb, name))
            return
        if not _OUR_ROLE.search((event.get("annotations") or {}).get("authorization.k8s.io/reason", "")):
            return
        resource = "/".join(part for part in (reference["resource"], reference.get("subresource", "")) if part)
        self.allowed.add(Use(function, group, resource, verb, "" if verb in _NO_NAME else name))
        if verb == "patch" and status.get("code") == 201:
            self.allowed.add(Use(function, group, resource, "create", name))
        entries, refused = written(event, function)
        (self.refused if refused else self.written).update(entries)

    def include(self, other: Self) -> None:
        """Count what another process saw too."""
        self.allowed |= other.allowed
        self.denied |= other.denied
        self.written |= other.written
        self.refused |= other.refused

    def document(self) -> dict[str, list[dict[str, str]]]:
        """As a JSON document."""
        uses = {"allowed": _rows(self.allowed), "denied": _rows(self.denied)}
        return {**uses, "written": _rows(self.written), "refused": _rows(self.refused)}

    @classmethod
    def of(cls, document: Any) -> Self:
        """From `document`."""
        allowed, denied = ({Use(**row) for row in document[part]} for part in ("allowed", "denied"))
        entries, refused = ({Written(**row) for row in document[part]} for part in ("written", "refused"))
        return cls(allowed, denied, entries, refused)


def _rows(uses: Iterable[Use | Written]) -> list[dict[str, str]]:
    return [asdict(use) for use in sorted(uses)]


class AuditLog:
    """The audit log of one control plane in a folder of its own; what it has is the policy's matter."""

    def __init__(self, folder: Path, policy: str = _POLICY) -> None:
        self._policy, self._log = folder / "policy.yaml", folder / "audit.log"
        self._policy.write_text(policy)

    @property
    def api_server_args(self) -> list[str]:
        """What kube-apiserver must be started with.  Each event is on disk before its request is answered."""
        return [
            f"--audit-policy-file={self._policy.absolute()}",
            f"--audit-log-path={self._log.absolute()}",
            "--audit-log-maxsize=2000",
        ]

    def events(self) -> Iterator[Any]:
        """Every request of the policy so far, as the API server writes it down."""
        if self._log.exists():
            with self._log.open("rb") as lines:
                for line in lines:
                    if line.endswith(b"\n"):
                        yield from_json(line)

    def of(self, identity: str) -> Iterator[Any]:
        """Those of one of our identities, such as ``rbac-aggregation-paas``."""
        return (event for event in self.events() if event["user"]["username"] == f"{_USER}{identity}")

    def read(self) -> Used:
        """All that was used so far."""
        used = Used()
        for event in self.events():
            used.add(event)
        return used


def why_partial(session: Any) -> str:
    """Why a pytest run cannot tell which rights are used: it is not the whole suite, or not whole so far; else empty."""
    config, options = session.config, session.config.option
    if config.args_source is not config.ArgsSource.TESTPATHS:
        return "rights are judged by the whole suite: run pytest without paths"
    narrowing = ("keyword", "markexpr", "deselect", "ignore", "ignore_glob", "lf", "failedfirst", "stepwise", "maxfail")
    if given := [name for name in narrowing if getattr(options, name, None)]:
        return f"rights are judged by the whole suite: run pytest without {', '.join(given)}"
    return "tests failed, so what they use is not known" if session.testsfailed else ""
