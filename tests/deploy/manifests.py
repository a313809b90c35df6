"""Reads what is deployed: every YAML document of ``knative/`` and ``triggers/``, and what the kustomizations
make of them.

Invariant: a document is found here if and only if it lies in one of the two folders, so a file that no
kustomization lists is still tested, and a test that looks at all documents cannot miss one. Patches,
configuration files and kustomizations are no documents.

``resolve`` follows ``resources`` and ``configMapGenerator`` only, which is all that the default installation
uses; ``render`` is the real kustomize, for the overlays.
"""

from __future__ import annotations

import copy
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tenantry.local.manifests import spec_of
from tenantry.local.specs import SourceSpec
from tenantry.model.kinds import Kind
from tenantry.serving.installed import services_of

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("knative", "triggers")
OVERLAYS = tuple(sorted(p.parent.name for p in ROOT.glob("knative/overlays/*/kustomization.yaml")))
WAYS = ("knative", *(f"knative/overlays/{name}" for name in OVERLAYS))
"""The folders of all ways to install."""

Body = dict[str, Any]

CLUSTER_SCOPED = frozenset(
    {"Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "ScopeTemplate", "ScopeInstance"}
    | {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    | {"PriorityClass", "FlowSchema", "PriorityLevelConfiguration"}
    | {"Paas", "PaasConfig", "Group", "ClusterResourceQuota"}
)


@dataclass(frozen=True)
class Document:
    """One object of a YAML file; ``path`` is relative to the repository."""

    path: Path
    body: Body

    @property
    def api_version(self) -> str:
        return str(self.body["apiVersion"])

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def kind(self) -> str:
        return str(self.body["kind"])

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.body["metadata"].get("namespace", ""))

    @property
    def spec(self) -> Body:
        spec = self.body["spec"]
        assert isinstance(spec, dict)
        return spec

    def __str__(self) -> str:
        return f"{self.path}:{self.kind}/{self.name}"


@dataclass(frozen=True)
class Kustomization:
    """A ``kustomization.yaml`` and the paths it names, resolved."""

    path: Path
    body: Body

    def _paths(self, names: list[str]) -> list[Path]:
        return [(self.path.parent / name).resolve() for name in names]

    @property
    def resources(self) -> list[Path]:
        return self._paths(self.body.get("resources", []))

    @property
    def others(self) -> list[Path]:
        """Files that are read but are no objects: patches, generated content, kustomize's own configuration."""
        names = [patch["path"] for patch in self.body.get("patches", []) if "path" in patch]
        names += self.body.get("configurations", [])
        for generator in self.body.get("configMapGenerator", []):
            names += [entry.rpartition("=")[2] for entry in generator.get("files", [])]
        return self._paths(names)

    def generated(self) -> list[Document]:
        """The ConfigMaps of ``configMapGenerator``, without the hash that kustomize appends to the name."""
        found = []
        for generator in self.body.get("configMapGenerator", []):
            files = [(self.path.parent / entry.rpartition("=")[2]) for entry in generator.get("files", [])]
            body = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": generator["name"], "namespace": generator["namespace"]},
                "data": {file.name: file.read_text(encoding="utf-8") for file in files},
            }
            found.append(Document(self.path.relative_to(ROOT), body))
        return found


def files() -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.yaml"))


def kustomizations() -> list[Kustomization]:
    return [read_kustomization(path.parent) for path in files() if path.name == "kustomization.yaml"]


def read_kustomization(folder: Path) -> Kustomization:
    """The kustomization of one folder; a missing one is a FileNotFoundError."""
    path = folder / "kustomization.yaml"
    return Kustomization(path, yaml.safe_load(path.read_text(encoding="utf-8")))


def load(path: Path) -> list[Document]:
    bodies = yaml.safe_load_all(path.read_text(encoding="utf-8"))
    return [Document(path.relative_to(ROOT), body) for body in bodies]


def documents() -> list[Document]:
    """Every object that is written in the two folders, the overlays' included."""
    no_objects = {path for k in kustomizations() for path in [k.path, *k.others]}
    return [document for path in files() if path not in no_objects for document in load(path)]


def resolve(folder: Path) -> list[Document]:
    """The objects of a folder's kustomization and of those it includes, patches and name hashes left out."""
    kustomization = read_kustomization(folder)
    found = kustomization.generated()
    for path in kustomization.resources:
        found += resolve(path) if path.is_dir() else load(path)
    return found


def kustomize() -> list[str] | None:
    """The command that renders a kustomization, or None where the machine has none."""
    if path := shutil.which("kustomize"):
        return [path, "build"]
    if path := shutil.which("kubectl"):
        return [path, "kustomize"]
    return None


def render(folder: Path, command: list[str]) -> list[Document]:
    """What kustomize makes of a folder; its complaint is the message of the AssertionError."""
    run = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=False, timeout=60)
    assert run.returncode == 0, run.stderr
    return [Document(folder.relative_to(ROOT), body) for body in yaml.safe_load_all(run.stdout)]


def pod_templates(found: list[Document]) -> list[tuple[str, Body]]:
    """The pod templates inside the documents, whatever kind holds them."""
    kinds = {"Service", "Deployment", "ContainerSource"}
    return [(str(d), d.spec["template"]) for d in found if d.kind in kinds and "template" in d.spec]


def serving(found: list[Document]) -> list[Document]:
    return [d for d in found if d.api_version == "serving.knative.dev/v1"]


def within(body: Body, namespace: str) -> Body:
    """A copy of an object in another namespace, if it is in any."""
    moved = copy.deepcopy(body)
    if "namespace" in moved["metadata"]:
        moved["metadata"]["namespace"] = namespace
    return moved


def sources(found: list[Document]) -> list[tuple[Document, SourceSpec]]:
    """The sources that watch kinds, of either shape, with what they watch as one machine plays it."""
    made = []
    for document in found:
        if document.kind in {"ApiServerSource", "ContainerSource"}:
            spec = spec_of(str(document), document.body)
            assert isinstance(spec, SourceSpec)
            made.append((document, spec))
    return made


def functions() -> list[str]:
    """The names of the functions, with dashes, from the folders of their packages."""
    return sorted(path.parent.name.replace("_", "-") for path in ROOT.glob("functions/*/__init__.py"))


def services() -> list[str]:
    """The Services of the functions, which are also the names of their identities."""
    return sorted(each.name for each in services_of(functions()))


def guessed_plural(kind: str) -> str:
    """The resource name that Knative's API source derives from a kind (knative eventing 1.22, apimachinery's guess)."""
    word = kind.lower()
    if word == "endpoints":
        return word
    if word.endswith("s"):
        return word + "es"
    if word.endswith("y"):
        return word[:-1] + "ies"
    return word + "s"


def seconds(duration: str) -> int:
    """The seconds of an ISO 8601 duration of the form ``PT<n>S``, the only form that our files use."""
    assert duration.startswith("PT"), duration
    assert duration.endswith("S"), duration
    return int(duration[2:-1])


def kind_of(body: Body) -> Kind:
    """How the API server serves the kind of an object of ours; the guess of the plural holds for all of them."""
    kind = body["kind"]
    return Kind(body["apiVersion"], kind, guessed_plural(kind), namespaced=kind not in CLUSTER_SCOPED)
