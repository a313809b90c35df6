"""Loads the YAML that a cluster would get, and refuses what one machine would play differently.

`load` takes folders and files; every document in them must be an ApiServerSource, a ContainerSource that runs the adapter of
one, a PingSource, a Trigger or a Broker (a kustomization is passed over).  Both kinds of sources become a `SourceSpec`.  Each
error names file, document and key path, and all errors of all files come at once.  Nothing is started and nothing is looked up
here; `resolve` turns a destination into an address later, through a mapping that the caller gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import yaml
from pydantic import ValidationError

from tenantry.local.adapters import ContainerSpec
from tenantry.local.filters import FilterError
from tenantry.local.specs import (
    FROM_DOCUMENT,
    BrokerSpec,
    DeliverySpec,
    Destination,
    Named,
    PingSpec,
    SourceSpec,
    TriggerSpec,
    Watched,
)
from tenantry.model.event import APISERVER_TYPE_PREFIX, Event

__all__ = [
    "BrokerSpec",
    "DeliverySpec",
    "Destination",
    "ManifestError",
    "Manifests",
    "PingSpec",
    "SourceSpec",
    "TriggerSpec",
    "heard",
    "load",
    "resolve",
]

_KINDS: dict[tuple[str, str], type[Named]] = {
    ("sources.knative.dev/v1", "ApiServerSource"): SourceSpec,
    ("sources.knative.dev/v1", "ContainerSource"): ContainerSpec,
    ("sources.knative.dev/v1", "PingSource"): PingSpec,
    ("eventing.knative.dev/v1", "Trigger"): TriggerSpec,
    ("eventing.knative.dev/v1", "Broker"): BrokerSpec,
}
_PASSED_OVER = ("kustomize.config.k8s.io/v1beta1", "Kustomization")
_TOP_LEVEL = ("apiVersion", "kind", "metadata", "spec", "status")


class ManifestError(ValueError):
    """What is wrong with the documents, one line per finding: file, document, key path, reason."""


@dataclass(frozen=True, slots=True)
class Manifests:
    """What the documents declare, in the order of files and documents."""

    sources: tuple[SourceSpec, ...] = ()
    pings: tuple[PingSpec, ...] = ()
    triggers: tuple[TriggerSpec, ...] = ()
    brokers: tuple[BrokerSpec, ...] = ()


def _sample(spec: SourceSpec, watched: Watched) -> Event:
    """An event of a source about an object of that kind, for trying filters."""
    attributes = {"kind": watched.kind, "apiversion": watched.api_version, "namespace": "", "name": "sample"}
    extensions = {**spec.ce_overrides.extensions, **attributes}
    return Event("sample", "/tenantry", f"{APISERVER_TYPE_PREFIX}ref.update", extensions=extensions)


def heard(sources: Iterable[SourceSpec], triggers: Iterable[TriggerSpec]) -> list[SourceSpec]:
    """The sources with what some Trigger listens to, and without the rest."""
    filters = [trigger.filter for trigger in triggers]
    found = []
    for spec in sources:
        resources = [each for each in spec.resources if any(some.matches(_sample(spec, each)) for some in filters)]
        if resources:
            found.append(spec.model_copy(update={"resources": resources}))
    return found


def load(*paths: Path) -> Manifests:
    """Load all documents of the files, and of all ``*.yaml`` and ``*.yml`` in the folders.

    Raises:
        ManifestError: with every finding of every file.
    """
    findings: list[str] = []
    found: list[Named] = []
    seen: dict[tuple[type[Named], str, str], str] = {}
    for path in _files(paths, findings):
        for where, document in _documents(path, findings):
            spec = _read(where, document, findings)
            if spec is None:
                continue
            first = seen.setdefault((type(spec), spec.namespace, spec.name), where)
            if first is not where:
                findings.append(f"{where}: metadata.name: {spec.namespace}/{spec.name} is there already, in {first}")
            found.append(spec)
    brokers = tuple(spec for spec in found if isinstance(spec, BrokerSpec))
    for spec in found:
        if isinstance(spec, TriggerSpec) and not any(
            (broker.namespace, broker.name) == (spec.namespace, spec.broker) for broker in brokers
        ):
            known = ", ".join(f"{broker.namespace}/{broker.name}" for broker in brokers) or "none"
            where = seen[type(spec), spec.namespace, spec.name]
            findings.append(f"{where}: spec.broker: no Broker {spec.namespace}/{spec.broker}; known are {known}")
    if findings:
        raise ManifestError("\n".join(findings))
    return Manifests(
        sources=tuple(spec for spec in found if isinstance(spec, SourceSpec)),
        pings=tuple(spec for spec in found if isinstance(spec, PingSpec)),
        triggers=tuple(spec for spec in found if isinstance(spec, TriggerSpec)),
        brokers=brokers,
    )


def spec_of(where: str, document: Any) -> Named:
    """One document as a spec; ``where`` names it in errors.

    Raises:
        ManifestError: with every finding.
    """
    findings: list[str] = []
    spec = _read(where, document, findings)
    if spec is None or findings:
        raise ManifestError("\n".join(findings) or f"{where}: nothing that is played here")
    return spec


def resolve(destination: Destination, addresses: Mapping[str, str]) -> str:
    """The address of a destination: its ``ref`` by ``Kind/name`` or by name alone, or its ``uri``.

    A file that stands for a ``ref`` takes whatever is sent there, so a ``uri`` beside the ``ref`` leads nowhere else.

    Raises:
        ManifestError: nobody told where the name is.
    """
    if destination.ref is None:
        return destination.uri
    ref = destination.ref
    base = addresses.get(f"{ref.kind}/{ref.name}") or addresses.get(ref.name)
    if base is None:
        known = ", ".join(sorted(addresses)) or "none"
        raise ManifestError(f"no address for {ref.kind}/{ref.name}; known are {known}")
    return base if not destination.uri or base.startswith("file:") else urljoin(base, destination.uri)


def _files(paths: Iterable[Path], findings: list[str]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            files = sorted(each for each in path.iterdir() if each.suffix in (".yaml", ".yml"))
            if not files:
                findings.append(f"{path}: there is no YAML file in this folder")
            yield from files
        elif path.is_file():
            yield path
        else:
            findings.append(f"{path}: no such file or folder")


def _documents(path: Path, findings: list[str]) -> Iterator[tuple[str, Any]]:
    try:
        documents = list(yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        findings.append(f"{path}: not valid YAML: {' '.join(str(error).split())}")
        return
    for number, document in enumerate(documents, 1):
        if document is not None:
            yield f"{path}, document {number}", document


def _read(where: str, document: Any, findings: list[str]) -> Named | None:
    if not isinstance(document, Mapping):
        findings.append(f"{where}: expected an object")
        return None
    identity = (document.get("apiVersion"), document.get("kind"))
    if identity == _PASSED_OVER:
        return None
    model = _KINDS.get(identity)  # type: ignore[arg-type]  # None and foreign values are simply not in there
    if model is None:
        known = ", ".join(f"{kind} ({api_version})" for api_version, kind in _KINDS)
        findings.append(f"{where}: unknown document {identity[1]} ({identity[0]}); known are {known}")
        return None
    metadata, spec = document.get("metadata"), document.get("spec") or {}
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if not isinstance(metadata, Mapping) or not isinstance(name, str) or not name:
        findings.append(f"{where} ({identity[1]}): metadata.name: expected a name")
        return None
    where = f"{where} ({identity[1]} {name})"
    unknown = [key for key in document if key not in _TOP_LEVEL]
    findings.extend(f"{where}: {key}: unknown key; known are {', '.join(_TOP_LEVEL)}" for key in unknown)
    if not isinstance(spec, Mapping):
        findings.append(f"{where}: spec: expected an object")
        return None
    for key in ("name", "namespace"):
        if key in spec:
            findings.append(f"{where}: spec.{key}: unknown key; it belongs into metadata")
            return None
    try:
        named = {**spec, "name": name, "namespace": metadata.get("namespace") or "default"}
        made = model.model_validate(named, context=FROM_DOCUMENT)
        return made.source if isinstance(made, ContainerSpec) else made
    except ValidationError as error:
        findings.extend(f"{where}: {line}" for line in _explain(error))
        return None


def _explain(error: ValidationError) -> Iterator[str]:
    for finding in error.errors(include_url=False):
        path = "spec"
        for step in finding["loc"]:
            path += f"[{step}]" if isinstance(step, int) else f".{step}"
        cause = finding.get("ctx", {}).get("error")
        if isinstance(cause, FilterError):
            yield f"{path}.{cause.path}: {cause.reason}"
        elif isinstance(cause, ValueError):
            yield f"{path}: {cause}"
        else:
            yield f"{path}: {finding['msg'][:1].lower()}{finding['msg'][1:]}"
