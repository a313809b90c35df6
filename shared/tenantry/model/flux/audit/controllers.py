"""Flags of Flux' controllers that make grants void, or leave objects without account to the controllers' own (2.3, 2.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tenantry.model.flux.audit.deliveries import default_account
from tenantry.model.flux.audit.seen import AuditFinding, AuditSeen
from tenantry.model.flux.names import IMAGE_REPOSITORY
from tenantry.model.flux.security_profile import AUTOMATION, HELM, KUSTOMIZE, REFLECTOR, WATCHER
from tenantry.model.kinds import Object

NO_SHARING, NO_DEFAULT = "FlagMakesGrantVoid", "FlagMissing"
NO_CROSS_NAMESPACE_REFS = "--no-cross-namespace-refs"
DEFAULT_SERVICE_ACCOUNT = "--default-service-account"
_FALSE = ("0", "f", "F", "false", "False", "FALSE")
"""What Flux' flags take for no."""
_SHOWN = 3


class _Asks(NamedTuple):
    """The sources that a controller asks for; with the flag only those of the same namespace."""

    kinds: tuple[str, ...]
    writes: bool = False


_CONTROLLERS: Mapping[str, _Asks] = {
    KUSTOMIZE: _Asks(("GitRepository", "OCIRepository", "Bucket", "ExternalArtifact")),
    HELM: _Asks(("HelmRepository", "GitRepository", "Bucket", "OCIRepository", "HelmChart", "ExternalArtifact")),
    REFLECTOR: _Asks((IMAGE_REPOSITORY,)),
    AUTOMATION: _Asks(("GitRepository",), writes=True),
    WATCHER: _Asks(("Bucket", "GitRepository", "OCIRepository", "HelmChart", "ExternalArtifact")),
}
CONTROLLERS = frozenset(_CONTROLLERS)
"""The names of the Deployments whose flags are looked at, in whatever namespace."""
_APPLIES = {KUSTOMIZE: "Kustomization", HELM: "HelmRelease"}


def wrong_flags(seen: AuditSeen) -> Iterator[AuditFinding]:
    """Flags that take away what a grant gives, and accounts that the profile names and a controller does not know."""
    for each in seen.deployments:
        if each["metadata"]["name"] in CONTROLLERS:
            yield from _sharing(each, seen)
            yield from _account(each, seen)


def _sharing(deployment: Object, seen: AuditSeen) -> Iterator[AuditFinding]:
    value = flag_of(deployment, NO_CROSS_NAMESPACE_REFS, bare="true")
    if value is None or value in _FALSE:
        return
    asks = _CONTROLLERS[deployment["metadata"]["name"]]
    granted = seen.entries.write if asks.writes else seen.entries.read
    void = sorted(each for each in granted if each.split("/")[0] in asks.kinds)
    shown = ", ".join(void[:_SHOWN]) + (f" and {len(void) - _SHOWN} more" if len(void) > _SHOWN else "")
    if not void and seen.profile.allows_intra_tenant:
        shown = "what a tenant's namespaces may share (allowIntraTenant)"
    if shown:
        text = f"{_told(deployment)} has {NO_CROSS_NAMESPACE_REFS}={value}, which makes void: {shown}"
        yield _finding(deployment, NO_SHARING, text, "take the flag off, as part flux of `tenantry profile export` does")


def _account(deployment: Object, seen: AuditSeen) -> Iterator[AuditFinding]:
    """Policies fill accounts when objects are written; until then what has none is applied as the controller says."""
    name, account = deployment["metadata"]["name"], seen.profile.default_service_account
    if flag_of(deployment, DEFAULT_SERVICE_ACCOUNT) == account:
        return
    without = [
        each
        for each in seen.consumers
        if each.live["kind"] == _APPLIES.get(name) and each.namespace not in seen.profile.exempt and default_account(each, seen)
    ]
    if without:
        first = f"{without[0].namespace}/{without[0].name}"
        text = f"{_told(deployment)} has no {DEFAULT_SERVICE_ACCOUNT}={account}, and {_APPLIES[name]} {first} no account"
        fix = "apply part flux of `tenantry profile export`: until they are written, such objects have the controller's rights"
        yield _finding(deployment, NO_DEFAULT, text, fix)


def flag_of(deployment: Object, flag: str, *, bare: str = "") -> str | None:
    """The value of an argument of a controller, the last one counts; None: it has none.

    With ``bare`` the flag may stand alone and is that then; else the next argument is its value.
    """
    found = None
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        arguments = [*container["command"], *container["args"]]
        for number, each in enumerate(arguments):
            name, sign, value = each.partition("=")
            if name != flag:
                continue
            following = arguments[number + 1] if number + 1 < len(arguments) else ""
            found = value if sign else bare or following
    return found


def _told(deployment: Object) -> str:
    return f"{deployment['kind']} {deployment['metadata']['name']}"


def _finding(deployment: Object, reason: str, text: str, fix: str) -> AuditFinding:
    metadata = deployment["metadata"]
    return AuditFinding(reason, deployment["kind"], metadata["namespace"], metadata["name"], text, fix)
