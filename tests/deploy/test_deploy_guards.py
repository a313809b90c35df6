"""Guards as they are written."""

from __future__ import annotations

import re

from tenantry.local.policies import guard_documents
from tenantry.model.kinds import ADMISSION_POLICY, ADMISSION_POLICY_BINDING

_LIST = re.compile(
    r"\[\s*(\"[^\]]*\")\s*\]\.(?:exists|filter)\(key, (?:key in object\.metadata\.\?|variables\.)(labels|annotations)"
)


def _marks(expression: str) -> dict[str, set[str]]:
    """The keys of labels and of annotations that an expression looks for."""
    return {where: set(re.findall(r'"([^"]*)"', keys)) for keys, where in _LIST.findall(expression)}


def test_what_lets_a_new_namespace_pass_knows_all_marks() -> None:
    """The condition, which has no variables, names every mark that the validations look for."""
    (spec,) = [
        each["spec"]
        for each in guard_documents()
        if each["metadata"]["name"] == "tenantry-guard-namespaces" and "variables" in each["spec"]
    ]
    (condition,) = spec["matchConditions"]
    (changed,) = [each["expression"] for each in spec["variables"] if each["name"] == "changed"]
    marks = _marks(changed)
    assert marks.keys() == {"labels", "annotations"}
    assert _marks(condition["expression"]) == marks


def test_a_policy_that_cannot_have_its_param_is_in_nobodys_way() -> None:
    """While a CRD is gone, or the API server has just started, what a policy with a param looks at could else not be written at
    all, the end of namespaces included; every other policy that refuses does so also when it fails."""
    documents = guard_documents()
    policies = {each["metadata"]["name"]: each["spec"] for each in documents if each["kind"] == ADMISSION_POLICY.kind}
    bindings = [each["spec"] for each in documents if each["kind"] == ADMISSION_POLICY_BINDING.kind]
    assert [name for name, spec in policies.items() if "paramKind" in spec]
    for binding in bindings:
        spec = policies[binding["policyName"]]
        if "paramKind" in spec:
            assert binding["paramRef"] == {"selector": {}, "parameterNotFoundAction": "Allow"}
        assert spec["failurePolicy"] == ("Ignore" if "paramKind" in spec or binding["validationActions"] == ["Warn"] else "Fail")


def test_every_refusal_about_paas_has_a_path() -> None:
    """What a policy says when it cannot work out more, and the beginning of what it does."""
    for document in guard_documents():
        for each in document["spec"].get("validations", ()) if "-paas-" in document["metadata"]["name"] else ():
            assert "messageExpression" in each or "message" in each
            assert re.match(r"(spec|metadata|a mark)", each.get("message", "spec")), each["message"]
            assert re.search(r'"(spec|metadata)|variables\.\w+\.(join|map)', each.get("messageExpression", '"spec')), each
