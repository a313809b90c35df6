"""What is told of scopes: the conditions Templated and Scoped, with what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scope_binding.descriptor import SCOPES
from scope_binding.scopes.declared import reach_of, roles_of, subject_problem, template_name_of
from scope_binding.scopes.names import SCOPED, TEMPLATED
from scope_binding.scopes.seen import InstanceSeen, TemplateSeen, alive, is_pending, role_problem, template_problem
from tenantry.model import limits
from tenantry.model.conditions import condition, find_condition
from tenantry.model.kinds import Kind, Object
from tenantry.model.leftovers import report_leftovers
from tenantry.model.plan import NOTHING, Apply, Notice, Plan, Refusal
from tenantry.model.refusals import fixes, message_of, text_of

_BETWEEN = "; "
FIXES = fixes(SCOPES, invalid="correct the ScopeTemplate or the ScopeInstance")
_GOOD = frozenset({"TemplatingSuccessful", "ScopingSuccessful"})


def report_template(seen: TemplateSeen, refusals: Sequence[Refusal]) -> Plan:
    """The condition ``Templated`` (1.1); without a template, what could not be deleted is told where it stands."""
    template = alive(seen.template)
    if template is None:
        return report_leftovers(seen.leftovers, refusals, SCOPES, "scopes")
    problems = [problem for role in roles_of(template) if (problem := role_problem(role, template, seen.found.get(role.name)))]
    problems += sorted(_refused(refusal, template, TEMPLATED) for refusal in refusals)
    name = template["metadata"]["name"]
    if problems:
        return _status(seen.family.template, template, TEMPLATED, "TemplatingFailed", _BETWEEN.join(problems))
    return _status(seen.family.template, template, TEMPLATED, "TemplatingSuccessful", _done("ScopeTemplate", name))


def _refused(refusal: Refusal, on: Object, type_: str, place: str = "") -> str:
    standing = message_of(on, type_, generation=on["metadata"].get("generation"))
    return text_of(refusal, FIXES, standing, place=place, separator=_BETWEEN)


def _done(kind: str, name: str) -> str:
    if kind == "ScopeTemplate":
        return f'ScopeTemplate "{name}" successfully reconciled'
    return f'ScopeInstance "{name}" reconciled successfully'


def report_instance(seen: InstanceSeen, refusals: Sequence[Refusal]) -> Plan:
    """The condition ``Scoped`` (1.2), and where the scope does not hold; without an instance, what could not be deleted."""
    instance = alive(seen.instance)
    if instance is None:
        return report_leftovers(seen.leftovers, refusals, SCOPES, "scopes")
    told = find_condition(instance, SCOPED) or {}
    if seen.part and (not refusals or told.get("status") == "False"):
        return NOTHING  # the whole of the instance has more to say
    template = alive(seen.template)
    if template is None:
        missing = template_name_of(instance)
        what = f"{seen.family.template.kind}.{seen.family.group}"
        text = f'getting ScopeTemplate "{missing}": {what} "{missing}" not found'
        if not missing:
            text += ": write spec.scopeTemplateName, the name of a ScopeTemplate of the same API group"
        return _scoped(seen, instance, "ScopeTemplateNotFound", text, [])
    if is_pending(seen, template):
        return NOTHING
    problems = list(_problems(seen, instance, template, refusals))
    if not problems:
        return _scoped(seen, instance, "ScopingSuccessful", _done("ScopeInstance", instance["metadata"]["name"]), [])
    reason = problems[0][0]
    unbound = sorted({*seen.missing, *seen.terminating, *(each.key.namespace for each in refusals if each.key.namespace)})
    return _scoped(seen, instance, reason, _BETWEEN.join(text for _, text in problems), unbound)


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


def _scoped(seen: InstanceSeen, instance: Object, reason: str, message: str, unbound: Sequence[str]) -> Plan:
    return _status(seen.family.instance, instance, SCOPED, reason, message, unboundNamespaces=list(unbound))


def _status(kind: Kind, live: Object, type_: str, reason: str, message: str, **fields: list[str]) -> Plan:
    """The status with one condition; a turn of it is told by an Event, the first success is not."""
    good = reason in _GOOD
    message = message.encode()[: limits.MESSAGE_CHARACTERS].decode(errors="ignore")
    made = condition(type_, "True" if good else "False", reason, message, live["metadata"].get("generation"))
    before = find_condition(live, type_) or {}
    notice = None
    if (before.get("reason"), before.get("message")) != (reason, message) and (before or not good):
        notice = Notice(live, reason, message, "Report", "Normal" if good else "Warning")
    status = {"conditions": [made], **{name: value for name, value in fields.items() if value}}
    wanted: Object = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": live["metadata"]["name"]},
        "status": status,
    }
    return Plan(((Apply(kind, wanted, live, subresource="status", notice=notice),),))
