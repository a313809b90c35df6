"""All policies as the API server's controller type-checks them."""

from __future__ import annotations

import pytest
from flux_policing import Policing, is_checked, warnings
from times import CONTROLLER_S, LEFT_TO_MAKE_WHOLE

from tenantry.model.flux.policies import GENERATED, manifests
from tenantry.model.flux.policies.compared import is_as_generated
from tenantry.model.flux.policies.parts import LABELS
from tenantry.model.flux.policies.served import Served
from tenantry.model.kinds import ADMISSION_POLICY, Object
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

MINE = ",".join(f"{key}={value}" for key, value in LABELS.items())


@pytest.mark.check("f-84")
@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"onDenied": "Quarantine", "allowIntraTenant": True, "pinToTenant": True, "kubeConfig": "Deny"},
        {"mode": "Audit", "serviceAccountMode": "Require", "tenantLabelKeys": ["a", "b/*"]},
    ],
)
async def test_all_policies_are_typed(policing: Policing, spec: Object) -> None:
    """No policy has a warning; a copy with a misspelt field has one."""
    profile = await policing.enforce(**spec)
    for wanted in manifests(profile, Served.of(await policing.admin.groups())):
        kind = next(each for each in GENERATED if each.kind == wanted["kind"])
        live = await policing.admin.get(kind, wanted["metadata"]["name"])
        assert live is not None
        assert is_as_generated(wanted, live), (wanted, live)

    async def checked() -> list[Object]:
        found = (await policing.admin.list(ADMISSION_POLICY, label_selector=MINE)).items
        return found if all(is_checked(each) for each in found) else []

    found = await eventually(checked, within=CONTROLLER_S, what="all policies are checked")
    assert len(found) > 20
    assert "\n".join(filter(None, map(warnings, found))) == ""

    one = next(each for each in found if each["metadata"]["name"].startswith("tenantry-references-kustomizations"))
    wrong = obj(ADMISSION_POLICY, "misspelt", spec=one["spec"])
    (judged,) = wrong["spec"]["validations"]
    judged["expression"] = judged["expression"].replace("sourceRef", "sorceRef")
    await policing.admin.apply(ADMISSION_POLICY, wrong)

    async def told() -> bool:
        stored = await policing.admin.get(ADMISSION_POLICY, "misspelt")
        return stored is not None and is_checked(stored) and "sorceRef" in warnings(stored)

    await eventually(told, within=CONTROLLER_S, what="the misspelt field is told")
    await policing.admin.delete(ADMISSION_POLICY, "misspelt")
