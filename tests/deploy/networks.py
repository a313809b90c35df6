"""What NetworkPolicies let through, as the API defines it (networking.k8s.io/v1): by selectors, blocks and ports.

A pod that some policy selects for a direction gets only what some policy lets it have in that direction.  A connection needs both
ends.  There is no node here to ask; the definition is short.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Any

from knative_pods import Pod

Body = dict[str, Any]


def selects(selector: Body, labels: dict[str, str]) -> bool:
    """Whether a label selector matches; an empty one matches everything."""
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for each in selector.get("matchExpressions") or ():
        key, values = each["key"], each.get("values", [])
        found = {
            "In": labels.get(key) in values,
            "NotIn": labels.get(key) not in values,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }[each["operator"]]
        if not found:
            return False
    return True


def is_peer(peer: Body, pod: Pod, home: str) -> bool:
    """Whether a peer of a policy in the namespace ``home`` is this pod or address."""
    assert peer.keys() <= {"ipBlock", "namespaceSelector", "podSelector"}, peer
    if block := peer.get("ipBlock"):
        if not pod.address:
            return False  # blocks are for what is outside of the cluster: plugins differ about pods
        address, network = ipaddress.ip_address(pod.address), ipaddress.ip_network(block["cidr"])
        return address in network and not any(address in ipaddress.ip_network(each) for each in block.get("except", ()))
    if pod.address:
        return False
    if "namespaceSelector" in peer:
        names = {"kubernetes.io/metadata.name": pod.namespace, **pod.namespace_labels}
        if not selects(peer["namespaceSelector"], names):
            return False
    elif pod.namespace != home:
        return False
    return selects(peer.get("podSelector", {}), pod.labels)


def lets(policies: Iterable[Body], direction: str, pod: Pod, other: Pod, port: int, protocol: str) -> bool:
    """Whether a pod's policies let it have this connection; ``direction``: Ingress or Egress."""
    rules, peers = ("ingress", "from") if direction == "Ingress" else ("egress", "to")
    mine = [
        policy
        for policy in policies
        if policy["metadata"]["namespace"] == pod.namespace
        and direction in policy["spec"]["policyTypes"]
        and selects(policy["spec"]["podSelector"], pod.labels)
    ]
    if not mine:
        return True
    for policy in mine:
        for rule in policy["spec"].get(rules) or ():
            ports = rule.get("ports")
            at = ports is None or any(each["port"] == port and each.get("protocol", "TCP") == protocol for each in ports)
            among = rule.get(peers)
            if at and (among is None or any(is_peer(each, other, pod.namespace) for each in among)):
                return True
    return False


def connects(policies: list[Body], source: Pod, target: Pod, port: int, protocol: str = "TCP") -> bool:
    """Whether a connection comes about: both ends let it, of which an address has no policies."""
    out = bool(source.address) or lets(policies, "Egress", source, target, port, protocol)
    return out and (bool(target.address) or lets(policies, "Ingress", target, source, port, protocol))
