"""What a function imports at start decides its cold start: a deny list, held in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

PROBE = """
import json, sys
from tenantry.api.official import slim
from tenantry.serving.server import make_app
app, function = make_app("namespace-registration")
print(json.dumps({"slim": slim is not None, "modules": sorted(sys.modules)}))
"""

DENIED = (
    "kubernetes.client",  # the synchronous client: half of the start
    "kubernetes.aio.client.api.",
    "kubernetes.aio.client.models.v1_",
    "kubernetes.dynamic",
    "opentelemetry.sdk",  # only when an exporter is configured
    "opentelemetry.exporter",
    "opentelemetry.instrumentation",
    "cloudevents.pydantic",
    "fastapi",
    "click.testing",
    "tenantry.local",  # one machine's business
    "tenantry.testing",
    "pytest",
)


def test_a_function_imports_no_more_than_it_needs() -> None:
    """The official client comes without its synchronous half, and nothing of the deny list is loaded."""
    answer = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, timeout=240)
    found = json.loads(answer.stdout.splitlines()[-1])

    assert found["slim"], "the stand-ins in tenantry.api.official do not fit this version of kubernetes"
    assert [name for name in found["modules"] if name.startswith(DENIED)] == []
    assert "namespace_registration.projects.plan" in found["modules"]


def test_the_whole_client_can_still_be_imported() -> None:
    """Who imports kubernetes after us gets all of it."""
    code = "import tenantry.api, kubernetes.client as c, kubernetes.aio.client as a; print(c.CoreV1Api, a.CoreV1Api)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240)

    assert answer.stdout.count("CoreV1Api") == 2
