"""The command lines of the three programs, tuned for one machine with two cores.

etcd listens on Unix sockets in the data folder, which is closed to other users, so it needs neither ports
nor certificates.  The programs run in the data folder, which keeps the socket names short.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

#: Controllers that need nodes, volumes, a cloud or a certificate authority; the rest run as in any cluster.
CONTROLLERS_LEFT_OUT = (
    "node-ipam-controller",
    "node-lifecycle-controller",
    "taint-eviction-controller",
    "device-taint-eviction-controller",
    "horizontal-pod-autoscaler-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-attach-detach-controller",
    "persistentvolume-expander-controller",
    "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller",
    "ephemeral-volume-controller",
    "volumeattributesclass-protection-controller",
    "certificatesigningrequest-signing-controller",
    "certificatesigningrequest-approving-controller",
    "certificatesigningrequest-cleaner-controller",
    "service-cidr-controller",
    "ttl-controller",
)

ETCD_SOCKET = "etcd.sock"
_PEER_SOCKET = "peer.sock"


@dataclass(frozen=True)
class Ports:
    """The two TCP ports, both on 127.0.0.1."""

    api_server: int
    controller_manager: int


def etcd(program: Path, *, sync: bool) -> list[str]:
    """Return etcd's command line; without ``sync`` a crash can lose data, and clients can speak JSON."""
    client, peer = f"unix://{ETCD_SOCKET}", f"unix://{_PEER_SOCKET}"
    command = [
        str(program),
        "--name=tenantry",
        "--data-dir=etcd",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=tenantry={peer}",
        "--heartbeat-interval=20",
        "--election-timeout=100",
        "--log-level=warn",
    ]
    return [*command, "--enable-grpc-gateway=false"] if sync else [*command, "--unsafe-no-fsync"]


def api_server(program: Path, ports: Ports, extra: Sequence[str]) -> list[str]:
    """Return kube-apiserver's command line; ``extra`` comes last and so wins."""
    return [
        str(program),
        f"--etcd-servers=unix://{ETCD_SOCKET}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={ports.api_server}",
        "--cert-dir=certs",
        "--token-auth-file=tokens.csv",
        "--authorization-mode=Node,RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-account-key-file=service-account.key",
        "--service-account-signing-key-file=service-account.key",
        "--service-cluster-ip-range=10.0.0.0/24",
        # No pod reaches the server through the `kubernetes` service, so nobody needs its endpoints.
        "--endpoint-reconciler-type=none",
        "--allow-privileged=true",
        "--profiling=false",
        # Without it a stop waits for every open watch.
        "--shutdown-watch-termination-grace-period=1s",
        # Seats of priority and fairness are those of an API server by default: what a level of ours is good for shows here, too.
        *extra,
    ]


def controller_manager(program: Path, ports: Ports, extra: Sequence[str]) -> list[str]:
    """Return kube-controller-manager's command line; ``extra`` comes last and so wins."""
    return [
        str(program),
        "--kubeconfig=controller-manager.kubeconfig",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.controller_manager}",
        "--cert-dir=manager-certs",
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        "--service-account-private-key-file=service-account.key",
        "--root-ca-file=ca.crt",
        "--controllers=" + ",".join(["*", *(f"-{name}" for name in CONTROLLERS_LEFT_OUT)]),
        "--profiling=false",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--concurrent-namespace-syncs=20",
        "--concurrent-gc-syncs=20",
        "--concurrent-resource-quota-syncs=10",
        "--resource-quota-sync-period=5s",
        *extra,
    ]
