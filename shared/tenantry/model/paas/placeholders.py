"""The closed set of placeholders of ``templating`` and ``template`` (2.15): one value each, never a key, a list or a map."""

from __future__ import annotations

import re

from tenantry.model.paas.declared import Paas

_KEY = r'"((?:[^"\\{}])*)"'
_PLACEHOLDER = re.compile(
    r"\{\{\s*(?:"
    r"(?P<name>\.Paas\.Name)"
    r"|(?P<requestor>\.Paas\.Spec\.Requestor)"
    r"|(?P<managed>\.Paas\.Spec\.ManagedByPaas)(?P<default>\s*\|\s*default\s+\.Paas\.Name)?"
    rf"|index\s+\.Paas\.Labels\s+(?P<label>{_KEY})"
    rf"|index\s+\.Paas\.Annotations\s+(?P<annotation>{_KEY})"
    r'|\(\s*splitn\s+"-"\s+2\s+\.Paas\.Name\s*\)\._(?P<part>[01])'
    r")\s*\}\}"
)
KNOWN = (
    "{{ .Paas.Name }}, {{ .Paas.Spec.Requestor }}, {{ .Paas.Spec.ManagedByPaas }}, "
    "{{ .Paas.Spec.ManagedByPaas | default .Paas.Name }}, "
    '{{ index .Paas.Labels "<key>" }}, {{ index .Paas.Annotations "<key>" }}, {{ (splitn "-" 2 .Paas.Name)._0 }} or _1'
)
"""What there is, for messages."""


def template_problem(template: str) -> str:
    """What of a text is no known placeholder; empty where all is."""
    rest = _PLACEHOLDER.sub("", template)
    at = rest.find("{{")
    return f"{rest[at : at + 60]!r} is no placeholder: there are {KNOWN}" if at >= 0 else ""


def rendered(template: str, paas: Paas) -> str | None:
    """The text with its placeholders filled in, what is not there as empty; None where something in it is no placeholder."""
    if template_problem(template):
        return None

    def value(found: re.Match[str]) -> str:
        if found["name"]:
            return paas.name
        if found["requestor"]:
            return paas.requestor
        if found["managed"]:
            return paas.managed_by or (paas.name if found["default"] else "")
        if found["label"]:
            return paas.labels.get(found["label"][1:-1], "")
        if found["annotation"]:
            return paas.annotations.get(found["annotation"][1:-1], "")
        parts = paas.name.split("-", 1)
        return parts[int(found["part"])] if int(found["part"]) < len(parts) else ""

    return _PLACEHOLDER.sub(value, template)
