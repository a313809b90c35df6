"""What each acceptance check promises, in at most eight words."""

from __future__ import annotations

from checks_titles_flux import FLUX
from checks_titles_paas import PAAS

_HPO = """\
Project label makes a marked registration namespace
Member namespace remembers its project by label
Registration ConfigMap shows chart values and questions
Edited, immutable or deleted ConfigMap is restored
Removed mark returns; foreign labels stay
Without cluster id the annotation has no prefix
Denied project gets no registration namespace
System project is left alone
Named system namespace never joins a project
Last member deleted: registration namespace is marked orphaned
Member returns: orphan mark goes
Label taken off last member: orphaned, memory gone
Moved namespace: both projects follow
Moved to a denied project: memory goes
Deleted registration namespace of a live project returns
Deleted orphan stays deleted
Invalid project id: warned, everything else served
Foreign namespace of that name is not touched
200 projects at once within 30 seconds
At rest nothing is written to namespaces
Quota refusal is told; other projects are served
Registration namespace is hardened
Hardening drift is repaired
Hardening off: nothing is written
Hardening follows the configuration
A user's label alone never hardens a namespace
ProjectHelmChart makes namespace, HelmChart and HelmRelease
Release namespace carries marks and system project
HelmChart carries marks and its manager's name
Values name project, namespaces and selector
Forced values win over the user's
Order of values; lists are replaced whole
Broken user values cannot hide forced values
Status names namespaces, release and targets
Dashboard values follow labelled ConfigMaps
One bad dashboard value spoils no other
New member reaches the values; noise does not
Edited or deleted HelmChart is restored
Foreign helmApiVersion is left alone
Changed to foreign: release stays, status says so
ProjectHelmChart outside registration namespaces does nothing
Second claim of a release name is refused
Waiting claim is served when the name frees
Singleton: a second ProjectHelmChart is refused
Too long release name is refused and explained
Project without members: release is removed
Deleted ProjectHelmChart: release goes, namespaces stay
Deleted release namespace is made and filled again
Cleanup label removes the release
Redeployment takes the cleanup label off
Restarts never delete or recreate anything
Project denied later: told, and deletable
Foreign namespace is never taken for a release
Chart reference is given whole or refused
No release project: release in the registration namespace
Single-namespace mode selects targets by selector
Single-namespace mode follows changes and never crashes
Project admin is bound to the chart's Role
Cluster-wide bindings count for every project
ServiceAccounts excluded; subjects appear once
Last subject gone: RoleBinding goes
Role gone or level unknown: no RoleBinding
Edited or deleted RoleBinding is restored
Bindings elsewhere have no effect
Binding to a Role of that name: nothing
Unchanged subjects cause no write
Foreign RoleBinding is left alone and reported
Label off the Role: RoleBinding goes
Deployed release is locked
Drift is put back; extra keys stay
Running Helm operation is left alone
New revision is what is locked
Deleted HelmRelease frees the objects, keeps them
No release: state says so
HelmRelease of another manager is ignored
Plain payloads are read; corrupt ones skipped
Objects without namespace belong to release namespace
Status changes cause no writes
Failed upgrade: the deployed revision stays protected
Paused lock lets edits stay
Two locks on one object: second reports
Locked objects do not block Helm's upgrade
Immutable drift is repaired by one recreation
Cold start without drift writes nothing
Doubled and reversed events end the same
Lost events are repaired by one sweep
Namespaces of a living project cannot be deleted
Helm follows a project, once for a burst
Who may do what with charts and releases"""

_ACCEPTED = """\
Binary mode with JSON
Media types with charset, in any case
No body, no content type
Data of other types
Structured mode; the body wins over headers
Structured data in every form
Header names in any case; extra extensions
Percent-encoded and quoted header values
Empty namespace and no namespace are the same
Large bodies
Timestamps in every RFC 3339 form
The same event twice writes nothing more
Any path
Specversion 0.3: refused, decided once"""

_REFUSED = """\
Required attribute missing
Attribute present and empty
Unknown specversion
Malformed structured event
Batches
Other event formats
Time or dataschema malformed
Attribute names outside a-z and 0-9
Header values that are not UTF-8
Header ce-datacontenttype in binary mode
Declared JSON that does not parse
Request without event
Other HTTP methods
Body above the limit"""

_SCOPES = """\
Template without instance makes nothing
Instance brings its template's ClusterRole, marked and owned
One marked RoleBinding per role and namespace
The right holds there and nowhere else
New namespace is bound; the others stay untouched
Removed namespace loses its binding, others keep theirs
Without namespaces: one ClusterRoleBinding, no RoleBindings
Back to namespaces: the ClusterRoleBinding goes
Access never missing while the reach changes
Changed rules reach the ClusterRole in place
Changed subjects reach the binding in place
New generateName: new role and binding, old gone
Missing template is named; nothing bound, no loop
Template comes later: the instance heals untouched
Deleted template: bindings go, the instance says so
Deleted template's ClusterRole goes without garbage collection
Deleted instance's binding and role go so, too
ClusterRole goes with the last instance naming it
Deleted binding returns
Edited subjects are restored
Edited rules of a ClusterRole are restored
One deleted ClusterRole of several returns
Edited rules of one among several are restored
Removed owner references return
Removed mark returns; no second binding appears
Binding remade to another role points back
Labels of others stay and cause no writes
Missing namespace is named; the others are bound
Namespace that appears is bound
Terminating namespace is named; others stay, few writes
Namespace listed twice is bound once
Somebody's own ClusterRole is neither changed nor bound
No template hands out cluster-admin
Taken name stays told; other roles are served
A selector binds in the namespaces it matches
Bindings follow the labels of namespaces
Selector without match binds nothing, never the cluster
Selector and list add up
Shared subjects serve roles without their own
Trailing dash: a longer name that stays
Account without namespace: the binding's; cluster-wide refused
Impossible kind of subject is told
Doubled events at several replicas: one binding each
200 bindings get new subjects, none is deleted
Only the deleted instance's bindings go
Oria's bindings are taken over without loss
The list holds members, is marked and owned
List is sorted and has its own namespace
Operators' roles are projected into members
Projected rights hold in members, and no more
Finalizer is set; found members are in status
Helm's label means no finalizer
Missing member is left out until it exists
New member: rights, list, restart
Removed member: rights go, list shrinks, restart
Hand-edited list does not keep old rights
StatefulSets and DaemonSets restart too
OLM's pods are deleted once
Without any member: one restart at most
First list causes one restart at most
Failed restart is made good
Pods that do not use the list stay
Shared list is the union; exclusive members go
Shared list restarts the workloads of both
Role that an account gains is projected
Role that an account loses goes in members
Edited projection is restored
Verbs such as use are not projected
A wildcard gives what it names, no more
Consent bounds rights; what lacks is told
Without consent no rights; they follow when given
Member without consent does not stop others
Role with nothing to project stops no other
Bound ClusterRoles are projected within consent
Subject without namespace counts as its binding's
Named accounts count without pods; unknown are ignored
Summary role per member, unbound; goes with it
Deleted NamespaceScope takes rights and finalizer along
Deleted home namespace is not held up
Hand-made list is adopted; other keys stay
Manual management: list and restarts, no rights
Long list names give valid labels
NamespaceScopes of several namespaces are served
Operators that OLM runs get list and label
Injection only when asked for; empty block asks
Literal value is replaced, nothing crashes
Webhooks see members only; without members unchanged
Injection switched off: the original is back
OLM is optional and may come later
Consent by command: made, repeated, removed, mistakes told
OLM's targets and permissions become scopes
OperatorGroup's selector stays one; no match, no binding
Group without targets: whole cluster, may see namespaces
What OLM refuses generates nothing and is told
Deleted version takes everything generated along
Copied versions generate nothing
Managed: one Role of the consent, for the pods' accounts
Consent taken back ends those rights, and only those"""


_ATTACKS = """\
a-1 Forged hook in a record: nobody gains rights
a-2 Forged manifest: a neighbour's objects stay
a-3 Forged failure: nothing reinstalled, data stay
a-4 Records forged, raised, deleted, renamed: no rights
a-5 Editors gain no more than owners
a-6 Lock reads only the storage in use
a-7 Lock stays in its namespace unless allowed
a-8 Lock touches only its release's marked objects
a-9 Helm's own work and the lock's still work
a-12 Large, deep, wide events: others are served
a-13 Small record, large inside: told, costs little
a-14 Large, wide, deep values: told, costs little
a-15 Many large labelled ConfigMaps: others are served
a-16 Dashboard of 35,000 keys: others are served
a-17 Large and multiplied consents: others are served
a-18 Extreme quantities, selectors, names, numbers: others are served
a-19 5,000 objects of each kind: others are served
a-20 Malformed events: bounded objects, others are served
a-21 Large event that fails: key and reason kept
a-22 Forged sweeps: one runs, one waits
a-23 Forged requests write nothing that sweeps would not
a-24 Forged events during work: same end, same writes
a-25 Pods outside of the event path are refused
a-30 Squatted release namespace is never installed into
a-31 Squatted registration namespace is never taken over
a-32 Left-over release namespace is not inherited
a-33 Namespaces join projects only by right
a-34 Our labels, annotations, finalizers, conditions are ours
a-35 Objects named like ours are not trusted
a-36 Squatted release names: told without the neighbour's
a-37 Consent does not pass to another namespace
a-38 Role with our name is never filled
a-40 Stolen: namespace-registration stays inside its fence
a-41 Stolen: rbac-aggregation stays inside its fence
a-42 Stolen: release-provisioning stays inside its fence
a-43 Stolen: scope-binding stays inside its fence
a-44 Stolen: lock-enforcement stays inside its fence
a-45 Stolen: a source writes and reads no contents
a-46 Stolen: a Helm Job stays in its namespace
a-47 Stolen: no tokens, foreign pods, impersonation, own rights
a-50 Values as templates reach nothing outside
a-51 Forged upper layers of values are overridden
a-52 Values authors cannot read another project's
a-60 Shipped images and packages cannot be replaced
a-61 Pods restricted, networks closed, quotas and limits set
a-62 Helm never runs twice on one release
a-63 SBOM, audited locks, threat model with tests
"""


def _numbered(prefix: str, text: str) -> dict[str, str]:
    return {f"{prefix}{number}": title for number, title in enumerate(text.splitlines(), 1)}


TITLES = {
    **_numbered("hpo-", _HPO),
    **_numbered("A", _ACCEPTED),
    **_numbered("R", _REFUSED),
    **_numbered("sb-", _SCOPES),
    **{number: title for number, _, title in (line.partition(" ") for line in (_ATTACKS + PAAS + FLUX).splitlines())},
}
