"""The CRDs of scope-binding: one schema in both API groups, and the columns that people see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from scope_binding.namespace_scopes.status import READY
from scope_binding.scopes.names import SCOPED, TEMPLATED

CRDS = Path(__file__).resolve().parents[2] / "knative" / "crds"
AGE = ("Age", "date", ".metadata.creationTimestamp", 0)


def spec_of(file: str) -> dict[str, Any]:
    (found,) = yaml.safe_load_all((CRDS / f"{file}.yaml").read_text())
    assert found["metadata"]["name"] == f"{found['spec']['names']['plural']}.{found['spec']['group']}"
    spec: dict[str, Any] = found["spec"]
    return spec


def told(column: str, condition: str, field: str, priority: int = 0) -> tuple[str, str, str, int]:
    return column, "string", f'.status.conditions[?(@.type=="{condition}")].{field}', priority


@pytest.mark.parametrize("plural", ["scopetemplates", "scopeinstances"])
def test_both_groups_have_one_schema(plural: str) -> None:
    """The two CRDs of a kind differ in nothing but their API group."""
    main, framework = spec_of(plural), spec_of(f"{plural}-operator-framework")
    assert (main.pop("group"), framework.pop("group")) == ("operators.coreos.com", "operators.io.operator-framework")
    assert main == framework


@pytest.mark.parametrize(
    ("file", "columns"),
    [
        (
            "scopetemplates",
            [
                told("Templated", TEMPLATED, "status"),
                told("Reason", TEMPLATED, "reason"),
                told("Message", TEMPLATED, "message", 1),
            ],
        ),
        (
            "scopeinstances",
            [
                ("Template", "string", ".spec.scopeTemplateName", 0),
                told("Scoped", SCOPED, "status"),
                told("Reason", SCOPED, "reason"),
                told("Message", SCOPED, "message", 1),
            ],
        ),
        (
            "namespacescopes",
            [
                ("Members", "string", ".status.validatedMembers", 0),
                told("Ready", READY, "status"),
                told("Reason", READY, "reason"),
            ],
        ),
    ],
)
def test_columns(file: str, columns: list[tuple[str, str, str, int]]) -> None:
    """A list shows what is declared, whether it holds and why not, and the age (O-1, N-1)."""
    (version,) = spec_of(file)["versions"]
    found = [
        (each["name"], each["type"], each["jsonPath"], each.get("priority", 0)) for each in version["additionalPrinterColumns"]
    ]
    assert found == [*columns, AGE]
