"""References that would be denied, each with the grant that would allow it (2.1, 2.5)."""

from __future__ import annotations

from collections.abc import Iterator

from tenantry.model.flux.access import Asking, NamedObject, decide_access, denial_of, references_of
from tenantry.model.flux.audit.seen import AuditedConsumer, AuditFinding, AuditSeen
from tenantry.model.flux.consumers import DEPENDS_ON, Reference
from tenantry.model.flux.names import ACCESS_DENIED, ACCESS_INDEX, DEFAULT, IMAGE_REPOSITORIES, SOURCE_GRANT, SOURCES
from tenantry.model.identifiers import SUBDOMAIN_LIMIT, digest, is_dns_label, is_dns_subdomain
from tenantry.model.kinds import Object, object_of
from tenantry.model.names import NAMESPACE_NAME

INDEX_INCOMPLETE = "AccessIndexIncomplete"


def denied_references(seen: AuditSeen) -> Iterator[AuditFinding]:
    """A finding for each of them; and one before them, if what is granted is not known yet and would be asked for."""
    found = [finding for each in seen.consumers for finding in _denied(each, seen)]
    if not seen.entries.complete and any(each.grant is not None for each in found):
        text = "is missing, or does not have all grants yet: what sources' owners share is not known"
        yield AuditFinding(INDEX_INCOMPLETE, ACCESS_INDEX.kind, "", DEFAULT, text, "have scope-binding run, then ask again")
    yield from found


def is_denied(reference: Reference, named: NamedObject, namespace: str, seen: AuditSeen) -> bool:
    """Whether a consumer of a namespace may not have a reference."""
    asking = Asking(namespace, seen.labels(namespace))
    return decide_access(reference, named, asking, seen.entries, seen.profile) == "deny"


def _denied(consumer: AuditedConsumer, seen: AuditSeen) -> Iterator[AuditFinding]:
    namespace = consumer.namespace
    for reference, named in references_of(consumer.live, consumer.row):
        if is_denied(reference, named, namespace, seen):
            text = denial_of(reference, named, Asking(namespace, None))
            yield consumer.finding(ACCESS_DENIED, text, _fix(reference, named, namespace), grant_for(reference, named, namespace))


def _fix(reference: Reference, named: NamedObject, namespace: str) -> str:
    if reference.path == DEPENDS_ON:
        return f"name what is in namespace {namespace}, or set checkDependsOn: false in the TenancyProfile"
    if reference.access == "local":
        return f"name what is in namespace {namespace}, or give what names it to the platform"
    if not _can_be(named):
        return "correct the reference: nothing can be called so"
    selected = f"for {NAMESPACE_NAME}={namespace}"
    if named.kind == IMAGE_REPOSITORIES.kind:
        return f"write spec.accessFrom of {named} {selected}"
    if named.kind not in SOURCES:
        return f"name a source that can be shared, one of {', '.join(SOURCES)}"
    access = ", with access Write," if reference.access == "write" else ""
    return f"make a SourceGrant in namespace {named.namespace} for {named.kind} {named.name}{access} {selected}"


def _can_be(named: NamedObject) -> bool:
    """Whether there can be such an object: what a consumer names is free text."""
    return is_dns_subdomain(named.name) and is_dns_label(named.namespace)


def grant_for(reference: Reference, named: NamedObject, namespace: str) -> Object | None:
    """The manifest that gives one namespace what it names; None where no grant does."""
    access_from = {"namespaceSelectors": [{"matchLabels": {NAMESPACE_NAME: namespace}}]}
    if reference.access == "local" or not _can_be(named):
        return None
    if named.kind == IMAGE_REPOSITORIES.kind:
        metadata = {"name": named.name, "namespace": named.namespace}
        return object_of(IMAGE_REPOSITORIES, metadata, spec={"accessFrom": access_from})
    if named.kind not in SOURCES:
        return None
    name = f"{named.kind.lower()}-{named.name}-{reference.access}-{namespace}"
    if len(name) > SUBDOMAIN_LIMIT:
        name = f"{named.kind.lower()}-{digest(str(named), reference.access, namespace)}"
    spec = {
        "sourceRef": {"kind": named.kind, "name": named.name},
        "access": [reference.access.capitalize()],
        "accessFrom": access_from,
    }
    return object_of(SOURCE_GRANT, {"name": name, "namespace": named.namespace}, spec=spec)
