"""Hardening of the namespaces that we make: no token for pods that ask for none, and no traffic that nobody allowed.

Registration and release namespaces get it alike, each from the function that makes them; a namespace that a user
labels gets nothing (hpo-22 to hpo-26).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tenantry.model.config import Config
from tenantry.model.kinds import NETWORK_POLICY, SERVICE_ACCOUNT, Kind, Object, labels_of, object_of
from tenantry.model.names import DEFAULT_SERVICE_ACCOUNT, HARDENING_POLICY, OPERATED
from tenantry.model.plan import Apply, KubernetesEvent

HARDENED_BY = {SERVICE_ACCOUNT: DEFAULT_SERVICE_ACCOUNT, NETWORK_POLICY: HARDENING_POLICY}


@dataclass(frozen=True, slots=True)
class Hardening:
    """What hardens a namespace, as it is."""

    service_account: Object | None = None
    network_policy: Object | None = None


def harden(namespace: str, live: Hardening, config: Config) -> Iterable[Apply]:
    """The ServiceAccount ``default`` and the NetworkPolicy of a namespace as configured; nothing where hardening is off."""
    hardened = config.helm_project_operator.hardened_namespaces
    if not hardened.enabled:
        return
    spec = hardened.configuration.service_account_spec
    account = _object(SERVICE_ACCOUNT, namespace, automountServiceAccountToken=spec.automount_service_account_token)
    if spec.secrets:
        account["secrets"] = [{"name": secret.name} for secret in spec.secrets]
    if spec.image_pull_secrets:
        account["imagePullSecrets"] = [{"name": secret.name} for secret in spec.image_pull_secrets]
    hardened_before = OPERATED in labels_of(live.service_account)
    yield Apply(SERVICE_ACCOUNT, account, live.service_account, event=restored(live.service_account) if hardened_before else None)
    policy = _object(NETWORK_POLICY, namespace, spec=with_policy_defaults(hardened.configuration.network_policy_spec))
    yield Apply(NETWORK_POLICY, policy, live.network_policy, event=restored(live.network_policy))


def _object(kind: Kind, namespace: str, **parts: Any) -> Object:
    return object_of(kind, {"name": HARDENED_BY[kind], "namespace": namespace, "labels": {OPERATED: "true"}}, **parts)


def restored(live: Object | None) -> KubernetesEvent | None:
    """The Event about an object of ours that somebody changed; none for one that is made."""
    if live is None:
        return None
    return KubernetesEvent(live, "Restored", f"{live['kind']} {live['metadata']['name']} was put back as configured", "Restore")


def with_policy_defaults(spec: dict[str, Any]) -> dict[str, Any]:
    """A NetworkPolicy spec with the API server's defaults filled in, so that it equals what is stored.

    Nulls and empty lists, which the server drops, are left out.  Only a direction without rules is written out,
    as an empty list: left out, rules that somebody adds would not differ.
    """

    def with_protocol(rule: Any) -> Any:
        if not isinstance(rule, dict) or not isinstance(rule.get("ports"), list):
            return rule
        ports = [{"protocol": "TCP", **port} if isinstance(port, dict) else port for port in rule["ports"]]
        return {**rule, "ports": ports}

    given = {name: _as_stored(value) for name, value in spec.items() if value is not None}
    made: dict[str, Any] = {"podSelector": {}, "ingress": [], "egress": [], **given}
    for direction in ("ingress", "egress"):
        if isinstance(made.get(direction), list):
            made[direction] = [with_protocol(rule) for rule in made[direction]]
    if not made.get("policyTypes"):
        made["policyTypes"] = ["Ingress", "Egress"] if made.get("egress") else ["Ingress"]
    return made


def _as_stored(value: Any) -> Any:
    """A value without the nulls, empty lists and empty ``matchLabels`` that the API server does not store."""
    if isinstance(value, list):
        return [_as_stored(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    kept = {name: _as_stored(below) for name, below in value.items() if below is not None and below != []}
    return {name: below for name, below in kept.items() if name != "matchLabels" or below}
