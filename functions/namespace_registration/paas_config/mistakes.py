"""What of a PaasConfig makes no sense (2.10): the policies refuse it, and where it got in it is told.

A regular expression is never run here, so that one that does not compile is left to the API server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from namespace_registration.quotas import number
from tenantry.model.identifiers import is_dns_label, is_dns_subdomain, is_label_key, is_label_value
from tenantry.model.paas.config import CapabilityConfig, PaasConfig
from tenantry.model.paas.names import GROUP_OF_KINDS
from tenantry.model.paas.placeholders import template_problem
from tenantry.model.paas.status import PaasProblem

INVALID = "InvalidConfiguration"
OUR_DOMAINS = (GROUP_OF_KINDS, "tenantry.dev")


def mistakes_in(config: PaasConfig) -> list[PaasProblem]:
    """Every mistake, with the path of its field and the fix."""
    texts = [*_of_labels(config), *_of_texts(config)]
    for name, known in config.capabilities.items():
        texts += _of_capability(f"spec.capabilities[{name}]", name, known)
    return [PaasProblem(INVALID, text) for text in texts]


def _of_labels(config: PaasConfig) -> Iterator[str]:
    for field, key in (
        ("quota_label", config.quota_label),
        ("managed_by_label", config.managed_by_label),
        ("requestor_label", config.requestor_label),
    ):
        if key and not is_label_key(key):
            yield f"spec.{field}: {key!r} cannot be the key of a label: write one as [domain/]name"
    for pattern in config.protected_labels:
        domain = pattern[2:-1] + "x" if pattern.startswith("*.") and pattern.endswith("/*") else pattern
        if not is_label_key(domain):
            yield f"spec.protectedLabels: {pattern!r} is no key of a label: write one as [domain/]name, or as *.domain/*"
    if not is_label_value(config.managed_by_suffix):
        yield f"spec.managed_by_suffix: {config.managed_by_suffix!r} cannot end the value of a label: use letters and digits"
    for field, labels in _labels(config):
        for key in labels:
            path = f"spec.templating.{field}[{key}]"
            if not is_label_key(key):
                yield f"{path}: no label can have this key: write one as [domain/]name"
            elif is_ours(key, config):
                yield f"{path}: this label is written by Tenantry itself: remove it"


def is_ours(key: str, config: PaasConfig) -> bool:
    """Whether a label may not be written by ``templating``: it is one of ours, or says which quota a namespace counts to."""
    domain = key.rpartition("/")[0]
    return key == config.quota_label or any(domain == each or domain.endswith(f".{each}") for each in OUR_DOMAINS)


def _labels(config: PaasConfig) -> tuple[tuple[str, Mapping[str, str]], ...]:
    return (
        ("namespaceLabels", config.namespace_labels),
        ("groupLabels", config.group_labels),
        ("clusterQuotaLabels", config.quota_labels),
        ("roleBindingLabels", config.binding_labels),
    )


def _of_texts(config: PaasConfig) -> Iterator[str]:
    for field, texts in (*_labels(config), ("genericCapabilityFields", config.generic_fields)):
        for key, text in texts.items():
            if problem := template_problem(text):
                yield f"spec.templating.{field}[{key}]: {problem}"


def _of_capability(path: str, name: str, known: CapabilityConfig) -> Iterator[str]:
    if not is_dns_label(name):
        yield f"{path}: no namespace can have this name at its end: use lower-case letters, digits and dashes"
    for field, accounts in (("default_permissions", known.default_permissions), ("extra_permissions", known.extra_permissions)):
        for account in accounts:
            if not is_dns_subdomain(account):
                yield f"{path}.{field}[{account}]: no ServiceAccount can have this name"
    yield from _of_quotas(f"{path}.quotas", known)
    for field, custom in known.custom_fields.items():
        where = f"{path}.custom_fields[{field}]"
        given = [part for part, value in _ways(custom.required, custom.default, custom.template) if value]
        if len(given) > 1:
            yield f"{where}: it has {' and '.join(given)}: leave one of them"
        if problem := template_problem(custom.template):
            yield f"{where}.template: {problem}"


def _ways(required: bool, default: str, template: str) -> Iterable[tuple[str, object]]:
    return ("required", required), ("default", default), ("template", template)


def _of_quotas(path: str, known: CapabilityConfig) -> Iterator[str]:
    for resource in sorted({*known.least, *known.most}):
        least, most, usual = (amounts.get(resource) for amounts in (known.least, known.most, known.defaults))
        if least is not None and most is not None and number(least) > number(most):
            yield f"{path}.min[{resource}]: {least} is above max, which is {most}: lower it or raise max"
        if usual is None:
            field = "min" if least is not None else "max"
            yield f"{path}.{field}[{resource}]: defaults has none: give a default, or remove it"
            continue
        if most is not None and number(usual) > number(most):
            yield f"{path}.defaults[{resource}]: {usual} is above max, which is {most}: lower it or raise max"
        if least is not None and not known.clusterwide and number(usual) < number(least):
            yield f"{path}.defaults[{resource}]: {usual} is below min, which is {least}: raise it or lower min"
