"""The change that is planned: manifests to be applied, objects to be deleted, labels to be set.

All of it is laid on, and nothing is made.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tenantry.api.errors import ApiError, KindNotServed
from tenantry.api.served import ServedResource, served_resources
from tenantry.engine.overlay.api import OverlayApi
from tenantry.model.field_sets import lost, take_out
from tenantry.model.identifiers import is_label_key, is_label_value
from tenantry.model.kinds import CUSTOM_RESOURCE_DEFINITION, NAMESPACE, Kind, Object, annotations_of, can_be_name
from tenantry.model.manifests import NotReadable, load_yaml
from tenantry.model.written import fields_of_write, with_metadata

_SUFFIXES = (".yaml", ".yml", ".json")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
STDIN = "-"


class BadChange(ValueError):
    """The change cannot be planned; the message says what of it, and the way out."""


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What is to be done: objects with where they come from, and (KIND/NAME, text) pairs."""

    objects: Sequence[tuple[str, Object]] = ()
    deletions: Sequence[str] = ()
    labels: Sequence[tuple[str, str]] = ()
    namespace: str = ""
    """Of what names none."""
    _resources: list[ServedResource] = field(default_factory=list, compare=False)

    async def lay(self, over: OverlayApi) -> None:
        """Lay it on.

        Raises:
            BadChange: the cluster could not take it.
        """
        first = (NAMESPACE.kind, CUSTOM_RESOURCE_DEFINITION.kind)
        for source, body in sorted(self.objects, key=lambda each: each[1]["kind"] not in first):
            await self._apply(over, source, body)
        for text, change in self.labels:
            await self._label(over, text, change)
        for text in self.deletions:
            kind, name, namespace = await self._named(over, text)
            await self._existing(over, kind, name, namespace, text)
            with _saying(f"--delete {text}"):
                await over.delete(kind, name, namespace)

    async def _apply(self, over: OverlayApi, source: str, body: Object) -> None:
        kind = await over.served(body["apiVersion"], body["kind"])
        if kind is None:
            raise BadChange(
                f"{source}: the cluster serves no {body['kind']} in {body['apiVersion']}: correct it, or install its CRD first"
            )
        metadata = dict(body["metadata"])
        metadata.pop("managedFields", None)
        if kind.namespaced:
            metadata.setdefault("namespace", self.namespace or "default")
        elif metadata.pop("namespace", ""):
            raise BadChange(f"{source}: a {kind.kind} is in no namespace: leave metadata.namespace out")
        body = {name: value for name, value in body.items() if name != "status"} | {"metadata": metadata}
        with _saying(source):
            live = await over.current(kind, metadata["name"], metadata.get("namespace", ""))
            await over.apply(kind, body)
            given = annotations_of(live).get(_LAST_APPLIED)
            if given is not None:
                await self._give_up(over, kind, body, given)

    async def _give_up(self, over: OverlayApi, kind: Kind, body: Object, given: str) -> None:
        """Take out what `kubectl apply` applied before, by its annotation, and what is not there any more."""
        try:
            before = json.loads(given)
        except ValueError:
            return
        schema = with_metadata(await over.schema(kind))
        after = await over.current(kind, body["metadata"]["name"], body["metadata"].get("namespace", ""))
        if after is None or not isinstance(before, dict) or not isinstance(before.get("metadata"), dict):
            return
        old, new = (fields_of_write(each, schema) for each in (before, body))
        for path in list(lost(old, new, ())):
            take_out(after, path)
        await over.update(kind, after)

    async def _label(self, over: OverlayApi, text: str, change: str) -> None:
        kind, name, namespace = await self._named(over, text)
        after = await self._existing(over, kind, name, namespace, text)
        key, sign, value = change.partition("=")
        labels = after["metadata"].setdefault("labels", {})
        if not sign and change.endswith("-") and is_label_key(change[:-1]):
            labels.pop(change[:-1], None)
        elif sign and is_label_key(key) and is_label_value(value):
            labels[key] = value
        else:
            raise BadChange(f"--label {text} {change}: write key=value, or key- to take it off")
        with _saying(f"--label {text}"):
            await over.update(kind, after)

    async def _existing(self, over: OverlayApi, kind: Kind, name: str, namespace: str, text: str) -> Object:
        with _saying(text):
            found = await over.current(kind, name, namespace)
        if found is None:
            where = f" in namespace {namespace}" if kind.namespaced else ""
            raise BadChange(f"{text}: there is no {kind.kind} {name}{where}")
        return found

    async def _named(self, over: OverlayApi, text: str) -> tuple[Kind, str, str]:
        """What KIND/NAME means, with its namespace."""
        called, sign, name = text.partition("/")
        if not sign or not called or not can_be_name(name):
            raise BadChange(f"{text}: write KIND/NAME, such as namespace/team-a")
        if not self._resources:
            self._resources.extend(await served_resources(over))
        found = _called(called, self._resources)
        if len(found) != 1:
            known = ", ".join(each.kind.resource for each in found)
            raise BadChange(f"{text}: {f'which of {known}?' if found else f'the cluster serves no kind {called}'}")
        kind = found[0].kind
        return kind, name, (self.namespace or "default") if kind.namespaced else ""


def _called(text: str, resources: Sequence[ServedResource]) -> list[ServedResource]:
    """What somebody means by a kind, a plural, a short name, or one of them with its group (``helmcharts.helm.cattle.io``)."""
    name, _, group = text.lower().partition(".")
    found = [each for each in resources if name in each.names and each.kind.kind and (not group or each.kind.group == group)]
    core = [each for each in found if each.kind.group == ""]
    return core or found


@contextmanager
def _saying(about: str) -> Iterator[None]:
    """Say of what an error of the API is."""
    try:
        yield
    except KindNotServed as error:
        raise BadChange(f"{about}: the cluster does not serve this kind") from error
    except ApiError as error:
        raise BadChange(f"{about}: {error.message}") from error


def read_manifests(paths: Sequence[str]) -> list[tuple[str, Object]]:
    """The objects of files, of the files of folders, or of standard input (``-``), each with where it stands.

    Raises:
        BadChange: a file cannot be read, or something in it is no object.
    """
    found: list[tuple[str, Object]] = []
    for path in paths:
        for name, text in _texts(path):
            found += _objects(name, text)
    return found


def _texts(path: str) -> Iterator[tuple[str, str]]:
    if path == STDIN:
        yield "standard input", sys.stdin.read()
        return
    place = Path(path)
    try:
        if not place.is_dir():
            yield path, place.read_text(encoding="utf-8")
            return
        files = sorted(each for each in place.rglob("*") if each.suffix in _SUFFIXES and each.is_file())
        if not files:
            raise BadChange(f"{path}: there is no file here that ends in {', '.join(_SUFFIXES)}")
        for each in files:
            yield str(each), each.read_text(encoding="utf-8")
    except OSError as error:
        raise BadChange(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeError as error:
        raise BadChange(f"{path}: cannot be read: it is not UTF-8 text") from error


def _objects(name: str, text: str) -> Iterator[tuple[str, Object]]:
    for number, document in enumerate(_documents(name, text), 1):
        source = f"{name}, document {number}"
        if document is None:
            continue
        items = document.get("items") if isinstance(document, dict) and str(document.get("kind", "")).endswith("List") else None
        for each in items if isinstance(items, list) else [document]:
            yield source, _checked(source, each)


def _documents(name: str, text: str) -> Iterator[Any]:
    parts, lines = [], list[str]()
    for line in [*text.splitlines(), "---"]:
        if line.rstrip() == "---" or line.startswith("--- "):
            parts.append("\n".join(lines))
            lines = []
        else:
            lines.append(line)
    for number, part in enumerate((each for each in parts if each.strip()), 1):
        try:
            yield load_yaml(part)
        except (NotReadable, yaml.YAMLError, ValueError) as error:
            raise BadChange(f"{name}, document {number}: {' '.join(str(error).split())}") from error


def _checked(source: str, body: Any) -> Object:
    """An object with what every one has."""
    if not isinstance(body, dict):
        raise BadChange(f"{source}: this is no object: it must be a mapping with apiVersion, kind and metadata")
    for field_ in ("apiVersion", "kind"):
        if not isinstance(body.get(field_), str) or not body[field_]:
            raise BadChange(f"{source}: {field_} is missing")
    metadata = body.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not can_be_name(metadata["name"]):
        raise BadChange(f"{source}: metadata.name of this {body['kind']} is missing, or no name")
    if not isinstance(metadata.get("namespace", ""), str):
        raise BadChange(f"{source}: metadata.namespace of this {body['kind']} is no text")
    return body
