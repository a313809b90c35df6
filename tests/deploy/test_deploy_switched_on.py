"""What comes with another system: OLM, OpenShift, Argo CD."""

from __future__ import annotations

from pathlib import Path

import manifests
import pytest
import yaml
from test_deploy_triggers import SWITCHED_ON


@pytest.mark.parametrize("folder", [each for each in SWITCHED_ON if (manifests.ROOT / each / "triggers.yaml").exists()])
def test_what_is_switched_on_has_a_variant_for_plain_deployments(folder: str) -> None:
    """``knative/<system>-deployment`` is ``knative/<system>`` but for the kind of Service that its Triggers call."""
    variant = yaml.safe_load((manifests.ROOT / f"{folder}-deployment" / "kustomization.yaml").read_text(encoding="utf-8"))
    (patch,) = variant["patches"]

    assert variant["resources"] == [f"../{Path(folder).name}"]
    assert patch["target"] == {"group": "eventing.knative.dev", "kind": "Trigger"}
    assert {each["path"]: each["value"] for each in yaml.safe_load(patch["patch"])} == {
        "/spec/subscriber/ref/apiVersion": "v1",
        "/spec/delivery/deadLetterSink/ref/apiVersion": "v1",
    }
