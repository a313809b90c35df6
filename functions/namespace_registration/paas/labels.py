"""Labels of namespaces and quotas of a Paas: which are written, and which are not and are told (2.13, 2.15).

Keys come from the PaasConfig, or are labels of the Paas that nobody protects: the authors of a Paas must not lift their own guard
rails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tenantry.model.identifiers import is_label_key, is_label_value
from tenantry.model.names import NAMESPACE_NAME, PROJECT_ID
from tenantry.model.paas.config import PaasConfig
from tenantry.model.paas.declared import Paas
from tenantry.model.paas.names import MANAGED_BY_PAAS
from tenantry.model.paas.placeholders import rendered
from tenantry.model.paas.status import PaasProblem

PROTECTED = (
    "kubernetes.io",
    "k8s.io",
    "openshift.io",
    "cattle.io",
    "fluxcd.io",
    "argoproj.io",
    "istio.io",
    "tenantry.dev",
    "cpet.belastingdienst.nl",
)
"""Domains whose labels nobody copies from a Paas, nor those of domains in them."""
TOOLS = ("app.kubernetes.io", "helm.sh", "kustomize.toolkit.fluxcd.io")
"""Domains of tools that label what they apply: not copied, and not told."""
_OURS = ("tenantry.dev", "cpet.belastingdienst.nl")


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels to be written, and what is wrong with those that are not."""

    written: Mapping[str, str]
    errors: tuple[PaasProblem, ...] = ()
    warnings: tuple[PaasProblem, ...] = ()


def _domain(key: str) -> str:
    return key.partition("/")[0] if "/" in key else ""


def _is_in(domain: str, domains: Iterable[str]) -> bool:
    return any(domain == each or domain.endswith(f".{each}") for each in domains)


def is_ours(key: str, config: PaasConfig) -> bool:
    """Whether a label is for us alone to write: no template has it (p-125)."""
    return key in (config.quota_label, NAMESPACE_NAME) or _is_in(_domain(key), _OURS)


def is_tools(key: str) -> bool:
    """Whether a label is one of the tools that apply a Paas, and says nothing about its namespaces."""
    return _domain(key) in TOOLS


def is_protected(key: str, config: PaasConfig, project_label: str) -> bool:
    """Whether a label of a Paas is not copied to its namespaces, and that is told (p-122)."""
    fixed = {
        config.quota_label,
        config.requestor_label,
        config.managed_by_label,
        project_label,
        PROJECT_ID,
        *config.namespace_labels,
    }
    if key in fixed - {""} or _is_in(_domain(key), PROTECTED):
        return True
    return any(_fits(key, pattern) for pattern in config.protected_labels)


def _fits(key: str, pattern: str) -> bool:
    """Whether a key is one that administrators protect: a key, or ``*.domain/*``."""
    if pattern.startswith("*.") and pattern.endswith("/*"):
        return _is_in(_domain(key), (pattern[2:-2],))
    if pattern.endswith("/*"):
        return _domain(key) == pattern[:-2]
    return key == pattern


def namespace_labels(paas: Paas, quota: str, config: PaasConfig, project_label: str) -> Labels:
    """The labels of a namespace of a Paas that counts to the quota with this name (p-2, p-121 to p-125)."""
    templated = template_labels(config.namespace_labels, paas, config)
    written, errors, warnings = dict(templated.written), list(templated.errors), []
    built_in = (
        (config.requestor_label, paas.requestor, "spec.requestor"),
        (config.managed_by_label, f"{paas.managed_by or paas.name}-{config.managed_by_suffix}", "spec.managedByPaas"),
    )
    for key, value, field in built_in:
        if not is_label_key(key) or not value or key in written:
            continue  # switched off, or told on the PaasConfig
        if is_label_value(value):
            written[key] = value
        else:
            errors.append(_illegal(key, value, field))
    for key, value in sorted(paas.labels.items()):
        if is_tools(key):
            continue
        if is_protected(key, config, project_label):
            text = f"label {key} of the Paas is not copied to its namespaces, because it is protected: remove it from the Paas"
            warnings.append(PaasProblem("ProtectedLabel", text))
        else:
            written.setdefault(key, value)
    written |= {MANAGED_BY_PAAS: paas.name, config.quota_label: quota}
    return Labels(written, tuple(errors), tuple(warnings))


def template_labels(templates: Mapping[str, str], paas: Paas, config: PaasConfig) -> Labels:
    """The labels that administrators want by templates; one that is ours, or no text with known placeholders, is left out."""
    written, errors = {}, []
    for key, template in sorted(templates.items()):
        value = rendered(template, paas)
        if value is None or is_ours(key, config) or not is_label_key(key):
            continue  # told on the PaasConfig
        if is_label_value(value):
            written[key] = value
        else:
            errors.append(_illegal(key, value, "what it is made from"))
    return Labels(written, tuple(errors))


def _illegal(key: str, value: str, field: str) -> PaasProblem:
    shown = value if len(value) <= 100 else f"{value[:100]}..."
    text = f"label {key} cannot be {shown!r}, and is not written: change {field}; at most 63 letters, digits, '-', '_' and '.'"
    return PaasProblem("InvalidLabelValue", text)
