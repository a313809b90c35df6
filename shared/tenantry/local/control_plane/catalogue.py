"""The table of programs that are built from pinned Go modules, and where they are kept.

One row of :data:`MODULES` is one folder below ``gomod/`` with its own ``go.mod`` and ``go.sum``, because
Kubernetes and etcd pin different versions of shared modules.  A program is a package of such a module.
A new program is a new row and, where it needs one, a new folder; nothing else changes.

The key of a module is its version and a digest of everything that decides the bytes of the result
(``go.mod``, ``go.sum``, linker flags).  It names the folder in the cache, so a changed pin never meets
an old binary.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_GOMOD = Path(__file__).parent / "gomod"


@dataclass(frozen=True)
class Program:
    """One executable: its name, the Go package with its ``main``, and the seconds it takes on two cores.

    ``asks_version`` are the arguments on which it prints its version.
    """

    name: str
    package: str
    expected_seconds: int
    asks_version: tuple[str, ...] = ("--version",)


@dataclass(frozen=True)
class Module:
    """One pinned Go module and the programs that are built from it.

    All programs of a module are taken from the same place, so that kube-apiserver and
    kube-controller-manager never differ in version.  ``below`` is the first version that is too new.  What
    the control plane does not need is not ``required``: a folder that was named for the control plane
    may lack it, and then the other places are tried.
    """

    name: str
    version: str
    minimum: tuple[int, int]
    programs: tuple[Program, ...]
    linker_flags: tuple[str, ...] = ("-s", "-w")
    below: tuple[int, int] | None = None
    required: bool = True

    @property
    def folder(self) -> Path:
        """The folder with ``go.mod`` and ``go.sum``."""
        return _GOMOD / self.name

    @cached_property
    def key(self) -> str:
        """Name of the module's folder in the cache, for example ``etcd-3.7.3-1a2b3c4d``."""
        digest = hashlib.sha256(" ".join(self.linker_flags).encode())
        for name in ("go.mod", "go.sum"):
            digest.update((self.folder / name).read_bytes())
        return f"{self.name}-{self.version}-{digest.hexdigest()[:8]}"


def _kubernetes_version_flags(version: str) -> tuple[str, ...]:
    major, minor, _ = version.split(".")
    release = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    values = {**release, "gitTreeState": "clean", "gitCommit": ""}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return tuple(f"-X={package}.{name}={value}" for package in packages for name, value in values.items())


ETCD = Module(
    name="etcd",
    version="3.7.3",
    minimum=(3, 5),
    programs=(Program("etcd", "go.etcd.io/etcd/server/v3", 60),),
)

KUBERNETES = Module(
    name="kubernetes",
    version="1.36.3",
    minimum=(1, 34),
    programs=(
        Program("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", 270),
        Program("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", 80),
    ),
    linker_flags=("-s", "-w", *_kubernetes_version_flags("1.36.3")),
)

#: What the jobs of release-provisioning run where there is no node (tenantry.local.jobs).
HELM = Module(
    name="helm",
    version="3.22.0",
    minimum=(3, 14),
    below=(4, 0),
    programs=(Program("helm", "helm.sh/helm/v3/cmd/helm", 110, asks_version=("version", "--short")),),
    linker_flags=("-s", "-w", "-X=helm.sh/helm/v3/internal/version.version=v3.22.0"),
    required=False,
)

#: The next major version, for the test that locks are never in the way of its server-side apply.
HELM_4 = Module(
    name="helm4",
    version="4.3.1",
    minimum=(4, 0),
    below=(5, 0),
    programs=(Program("helm4", "helm.sh/helm/v4/cmd/helm", 110, asks_version=("version", "--short")),),
    linker_flags=("-s", "-w", "-X=helm.sh/helm/v4/internal/version.version=v4.3.1"),
    required=False,
)

#: The Helm controller of K3s, for the test that it can do the work of ours (helmController.enabled: false).
HELM_CONTROLLER = Module(
    name="helm-controller",
    version="0.17.7",
    minimum=(0, 16),
    programs=(Program("helm-controller", "github.com/k3s-io/helm-controller", 150),),
    linker_flags=("-s", "-w", "-X=github.com/k3s-io/helm-controller/pkg/version.Version=v0.17.7"),
    required=False,
)

#: What makes artifacts of GitRepositories in the tests of Flux tenancy that run its real controllers (`make flux`).
SOURCE_CONTROLLER = Module(
    name="source-controller",
    version="1.9.1",
    minimum=(1, 7),
    programs=(Program("source-controller", "github.com/fluxcd/source-controller", 300),),
    required=False,
)

#: What applies them.
KUSTOMIZE_CONTROLLER = Module(
    name="kustomize-controller",
    version="1.9.4",
    minimum=(1, 7),
    programs=(Program("kustomize-controller", "github.com/fluxcd/kustomize-controller", 200),),
    required=False,
)

#: What a control plane needs, in the order of building.
MODULES: tuple[Module, ...] = (ETCD, KUBERNETES)
#: What ``tenantry cluster build`` builds.
ALL_MODULES: tuple[Module, ...] = (*MODULES, HELM)
#: What is built only when it is asked for by name.
EXTRAS: Mapping[str, tuple[Module, ...]] = {
    "helm-controller": (HELM_CONTROLLER,),
    "helm4": (HELM_4,),
    "flux": (SOURCE_CONTROLLER, KUSTOMIZE_CONTROLLER),
}
EXTRA_MODULES: tuple[Module, ...] = tuple(module for modules in EXTRAS.values() for module in modules)
