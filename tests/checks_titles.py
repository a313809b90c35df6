"""What each acceptance check promises, in at most eight words."""

from __future__ import annotations

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


_PAAS = """\
p-1 Namespaces of a Paas
p-2 Labels of namespaces
p-3 Users make a Group of exactly them
p-4 A query makes no Group
p-5 Subjects are groups, sorted by name
p-6 Roles give ClusterRoles in all namespaces
p-7 PaasNS with groups: bound for them only
p-8 PaasNS without groups: as where it lives
p-9 PaasNS in the namespace of a PaasNS
p-10 Quotas of a Paas and of a capability
p-11 Accounts of a capability are bound cluster-wide
p-12 Extra permissions come and go
p-13 Example is Ready, with one warning
p-15 Events three times over write nothing
p-16 New user: Group in place, bindings untouched
p-17 Lost role: what another role gives stays
p-18 Without roles the default is given
p-19 Group that leaves: Group and name are gone
p-20 Users become a query: the Group goes
p-21 Renamed key: Group and subjects follow
p-22 Namespace that leaves the spec is deleted
p-23 Capability off: namespace, quota, subjects go
p-24 Lost mapping: unbound, counts as default, told
p-25 Other default: every namespace follows
p-26 Permissions move to another role in place
p-27 Foreign subject is taken off
p-28 Deleted RoleBinding is back
p-29 Quota object follows the Paas
p-30 Shared quota of three Paas is min
p-31 Shared quota grows with Paas, up to max
p-32 Shared quota holds the two largest, uncut
p-33 Shared quota follows a Paas that goes
p-35 Similar name keeps its subject when one goes
p-36 Deletion recomputes both shared quotas
p-37 Deletion without a PaasConfig
p-38 Deleted PaasNS: its namespace, and no Group
p-39 Stricter configuration is in nothing's way
p-40 PaasNS with a key its Paas lacks
p-41 Last group of a PaasNS left: nobody bound
p-42 PaasNS outside of a Paas is refused
p-43 PaasNS for another Paas is refused
p-44 PaasNS with an impossible name is refused
p-45 Role that is not mapped, by policy
p-48 Foreign Group is untouched and never bound
p-49 Names of Kubernetes are refused or left out
p-52 Foreign ClusterRoleBinding is untouched and told
p-53 Second PaasConfig is refused and without effect
p-54 Contradicting quotas and bad expressions are refused
p-56 Quotas above the largest are refused
p-57 Requestor: asked for, and a label's value
p-58 Without PaasConfig nothing is made, then all
p-60 Tenants with everything change no mark
p-61 The source's three documents give the table
p-62 Removed mapping leaves no binding anywhere
p-63 Dropped permission is left nowhere
p-64 Capability without permissions writes no binding
p-65 Similar name: never a subject missing
p-66 Deletion recomputes every shared quota
p-67 One large wish in a shared quota
p-68 Parts of a CPU are not cut
p-69 Label alone gives no namespace away
p-70 Namespaces and Groups before it stay untouched
p-71 At rest no RoleBinding is written
p-73 PaasNS in a restricted namespace is restricted
p-74 Deletions without a PaasConfig; of two one counts
p-75 A mistake stops no withdrawal
p-77 Twenty at once; other generators stay
p-78 Stolen token binds nothing that is undeclared
p-79 Impossible names and requestors are refused
p-80 No subject ever begins with system:
p-81 Spoiled shared binding is put right
p-83 Either shape works through either version
p-84 Capability is on by its version
p-86 Restricted namespace never falls back to all
p-87 Namespaces: two shapes, nothing else
p-89 No webhook; both versions without any function
p-90 What upstream stored reads as enabled
p-97 Names out of queries, row by row
p-98 Names that do not show are refused
p-99 One name generated twice: exactly one has it
p-100 Name bound by a query is not generated
p-101 Query binds no Group of another Paas
p-102 Name bound in the cluster is not generated
p-103 Name passes on without two meanings
p-104 Users in place of groups, and back
p-106 Next PaasNS gets a new, empty namespace
p-107 PaasNS that hold each other up go
p-108 Namespace of a PaasNS becomes the spec's
p-109 PaasNS says how it went, and that it healed
p-110 PaasNS under a forged label makes nothing
p-111 Groups of a PaasNS change in place
p-112 Missing ClusterRole is bound and told
p-113 Foreign RoleBinding of our name is untouched
p-114 Binding to another role becomes what is declared
p-115 Without a default mapping nothing is given
p-116 Paas without groups has no bindings
p-117 Users allowed: no warning
p-119 Blocked users are refused where new
p-120 Blocked users: bindings go before their Group
p-121 Labels of the Paas follow
p-122 Protected labels are told, tools' are not
p-123 Managed by another Paas
p-124 Built-in labels off and on
p-127 Required custom field is asked for
p-128 Custom field: the Paas' value, else default
p-129 Custom fields and their defaults are validated
p-130 Unknown custom field is left out, told
p-131 New required field takes no element away
p-133 Unknown placeholders are refused
p-134 Capability becomes an element, nothing else
p-135 Element goes before its Paas
p-136 Elements move to another ApplicationSet
p-137 Nobody's element stays and is told
p-138 Hand-over that cannot be is told
p-139 Spoiled element is put right
p-140 No write is lost among writers
p-142 Argo CD gets its policy in a ConfigMap
p-143 Policy of others is untouched, ours put back
p-144 Names that would add lines left out
p-145 Shares in whole units are the quota
p-146 Sum of shares is never above the quota
p-147 Small amounts are divided
p-148 Whole quota for each, and shares again
p-149 Capabilities' quotas without shared ones
p-150 Shares go when shared quotas come, and back
p-152 Capability's quota between min and max
p-155 Resources that are not allowed are refused
p-156 Extra permissions nobody configured: told, unbound
p-157 Permissions in namespaces, without a gap
p-158 No name is free with a right
p-162 Fields without a use are named
p-163 A Paas waits only for parts it needs
p-164 Function away: the others' parts are complete
p-165 Columns and short name
p-169 Withdrawn role: bindings shrink and never grow
p-171 Policies do not judge what is unchanged
p-172 Who may read and write PaasNS
p-173 Deleted Paas: bindings, Groups, then namespaces
p-174 Removed group: Group after its last binding
p-175 Changed roles: access is never missing
p-176 Refused additions stop no withdrawal
p-182 Without PaasConfig nothing changes by itself
p-183 The older PaasConfig counts, then the younger
p-197 Command shows what a Paas comes to
p-198 Command converts as upstream did
p-199 Command refuses a conversion that widens
"""


def _numbered(prefix: str, text: str) -> dict[str, str]:
    return {f"{prefix}{number}": title for number, title in enumerate(text.splitlines(), 1)}


TITLES = {
    **_numbered("hpo-", _HPO),
    **_numbered("A", _ACCEPTED),
    **_numbered("R", _REFUSED),
    **_numbered("sb-", _SCOPES),
    **{number: title for number, _, title in (line.partition(" ") for line in (_ATTACKS + _PAAS).splitlines())},
}
