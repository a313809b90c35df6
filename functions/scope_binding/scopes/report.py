"""The status of scopes: the conditions Templated and Scoped, with what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from scope_binding.scopes.declared import reach_of, roles_of, subject_problem, template_name_of
from scope_binding.scopes.descriptor import SCOPES
from scope_binding.scopes.names import SCOPED, TEMPLATED
from scope_binding.scopes.seen import InstanceSeen, TemplateSeen, alive, role_problem, template_problem
from scope_binding.scopes.withdrawal import SHIPPED, told, withdrawal_of
from tenantry.model import limits
from tenantry.model.conditions import condition, find_condition
from tenantry.model.config import SelectorChange
from tenantry.model.kinds import Kind, Object, object_of
from tenantry.model.leftovers import report_leftovers
from tenantry.model.plan import NOTHING, Apply, KubernetesEvent, Plan, Refusal
from tenantry.model.refusals import fixes, message_of, text_of

_BETWEEN = "; "
FIXES = fixes(SCOPES, invalid="correct the ScopeTemplate or the ScopeInstance")
_GOOD = frozenset({"TemplatingSuccessful", "ScopingSuccessful"})


def report_template(observed: TemplateSeen, refusals: Sequence[Refusal]) -> Plan:
    """The condition ``Templated`` (1.1); without a template, Events on what could not be deleted."""
    template = alive(observed.template)
    if template is None:
        return report_leftovers(observed.leftovers, refusals, SCOPES, "scopes")
    found = [role_problem(role, template, observed.found.get(role.name)) for role in roles_of(template)]
    problems = [problem for problem in found if problem]
    problems += sorted(_refused(refusal, template, TEMPLATED) for refusal in refusals)
    reason = "TemplatingFailed" if problems else "TemplatingSuccessful"
    message = _BETWEEN.join(problems) or f'ScopeTemplate "{template["metadata"]["name"]}" successfully reconciled'
    return _status(observed.family.template, template, TEMPLATED, reason, message)


def _refused(refusal: Refusal, on: Object, type_: str, place: str = "") -> str:
    standing = message_of(on, type_, generation=on["metadata"].get("generation"))
    return text_of(refusal, FIXES, standing, place=place, separator=_BETWEEN)


def report_instance(observed: InstanceSeen, refusals: Sequence[Refusal], limit: SelectorChange = SHIPPED) -> Plan:
    """The condition ``Scoped`` (1.2), and where the scope does not hold; without an instance, Events on what was not deleted."""
    instance, kind = alive(observed.instance), observed.family.instance
    if instance is None:
        return report_leftovers(observed.leftovers, refusals, SCOPES, "scopes")
    reported = find_condition(instance, SCOPED) or {}
    if observed.part and (not refusals or reported.get("status") == "False"):
        return NOTHING  # a run of the whole instance reports more
    template = alive(observed.template)
    if template is None:
        missing, asked = template_name_of(instance), observed.family.template
        text = f'getting ScopeTemplate "{missing}": {asked.kind}.{asked.group} "{missing}" not found'
        if not missing:
            text += ": write spec.scopeTemplateName, the name of a ScopeTemplate of the same API group"
        return _status(kind, instance, SCOPED, "ScopeTemplateNotFound", text)
    if template_problem(observed, template) is None:
        return NOTHING
    problems = list(_problems(observed, instance, template, refusals))
    waiting = withdrawal_of(observed, limit)
    if waiting is not None:
        problems.insert(0, ("WithdrawalWaits", told(waiting, instance)))
    reason = problems[0][0] if problems else "ScopingSuccessful"
    message = _BETWEEN.join(text for _, text in problems)
    message = message or f'ScopeInstance "{instance["metadata"]["name"]}" reconciled successfully'
    refused = {refusal.key.namespace for refusal in refusals} - {""}
    places = sorted(observed.missing | observed.terminating | refused)
    return _status(
        kind,
        instance,
        SCOPED,
        reason,
        message,
        unboundNamespaces=places,
        namespaceSelector=_stands_by(observed, waits=waiting is not None),
    )


def _stands_by(observed: InstanceSeen, *, waits: bool) -> Object | None:
    """The selector by which the bindings stand after the run: the declared one, unless something waits for it.

    A run for one namespace has not made that of the others.
    """
    instance = observed.instance or {}
    if observed.part or reach_of(instance).problem or waits:
        return (instance.get("status") or {}).get("namespaceSelector")
    return (instance.get("spec") or {}).get("namespaceSelector")


def _problems(seen: InstanceSeen, instance: Object, template: Object, refusals: Sequence[Refusal]) -> Iterator[tuple[str, str]]:
    reach = reach_of(instance)
    if text := template_problem(seen, template):
        yield "ScopeTemplateFailed", f'ScopeTemplate "{template["metadata"]["name"]}": {text}'
    if reach.problem:
        yield "ScopingFailed", reach.problem
    for role in roles_of(template):
        if problem := subject_problem(role, cluster=reach.cluster):
            yield "ScopingFailed", problem
    places = {name: f'{name}: namespaces "{name}" not found' for name in seen.missing}
    places |= {name: f"{name}: the namespace is being terminated" for name in seen.terminating}
    for refusal in sorted(refusals, key=lambda each: each.key):
        namespace = refusal.key.namespace
        places.setdefault(namespace, _refused(refusal, instance, SCOPED, namespace))
    for _, text in sorted(places.items()):
        yield "ScopingFailed", text


def _status(kind: Kind, live: Object, type_: str, reason: str, message: str, **more: Any) -> Plan:
    """The status with one condition, and with more where there is; an Event reports a change of it, but not the first success."""
    good = reason in _GOOD
    message = message.encode()[: limits.MESSAGE_CHARACTERS].decode(errors="ignore")
    made = condition(type_, "True" if good else "False", reason, message, live["metadata"].get("generation"))
    before = find_condition(live, type_) or {}
    event = None
    if (before.get("reason"), before.get("message")) != (reason, message) and (before or not good):
        event = KubernetesEvent(live, reason, message, "Report", "Normal" if good else "Warning")
    status = {"conditions": [made], **{name: value for name, value in more.items() if value not in (None, [])}}
    wanted = object_of(kind, {"name": live["metadata"]["name"]}, status=status)
    return Plan(((Apply(kind, wanted, live, subresource="status", event=event),),))
