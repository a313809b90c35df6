"""What each acceptance check of Paas promises, in at most eight words."""

from __future__ import annotations

PAAS = """\
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
p-14 Argo CD's object gets its policy
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
p-34 Deleted Paas leaves nothing, without controllers too
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
p-46 Unknown capability: namespace without rights, or refused
p-47 Users beside a query are ignored and told
p-48 Foreign Group is untouched and never bound
p-49 Names of Kubernetes are refused or left out
p-50 Who has a namespace keeps it
p-51 Namespace that was there before is unchanged
p-52 Foreign ClusterRoleBinding is untouched and told
p-53 Second PaasConfig is refused and without effect
p-54 Contradicting quotas and bad expressions are refused
p-55 Keys by expression, else as the API takes
p-56 Quotas above the largest are refused
p-57 Requestor: asked for, and a label's value
p-58 Without PaasConfig nothing is made, then all
p-59 Example on plain Kubernetes
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
p-72 Later PaasNS of a name change nothing
p-73 PaasNS in a restricted namespace is restricted
p-74 Deletions without a PaasConfig; of two one counts
p-75 A mistake stops no withdrawal
p-76 Protected and dropped labels are nowhere
p-77 Twenty at once; other generators stay
p-78 Stolen token binds nothing that is undeclared
p-79 Impossible names and requestors are refused
p-80 No subject ever begins with system:
p-81 Spoiled shared binding is put right
p-82 Example is the same in both versions
p-83 Either shape works through either version
p-84 Capability is on by its version
p-85 Capability never turns on by itself
p-86 Restricted namespace never falls back to all
p-87 Namespaces: two shapes, nothing else
p-88 What only v1alpha1 asks for
p-89 No webhook; both versions without any function
p-90 What upstream stored reads as enabled
p-91 Names that no Paas may have
p-92 Impossible names are refused, and stop nothing
p-93 Amounts and numbers have bounds; largest works
p-94 No expression holds anybody up
p-95 Two quotas of one name and label
p-96 Beyond a limit: told by name, rest there
p-97 Names out of queries, row by row
p-98 Names that do not show are refused
p-99 One name generated twice: exactly one has it
p-100 Name bound by a query is not generated
p-101 Query binds no Group of another Paas
p-102 Name bound in the cluster is not generated
p-103 Name passes on without two meanings
p-104 Users in place of groups, and back
p-105 PaasNS takes nothing from the spec
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
p-118 Users discouraged: warned of, all there
p-119 Blocked users are refused where new
p-120 Blocked users: bindings go before their Group
p-121 Labels of the Paas follow
p-122 Protected labels are told, tools' are not
p-123 Managed by another Paas
p-124 Built-in labels off and on
p-125 Templated labels are on their kind only
p-126 Labels that somebody changes are back
p-127 Required custom field is asked for
p-128 Custom field: the Paas' value, else default
p-129 Custom fields and their defaults are validated
p-130 Unknown custom field is left out, told
p-131 New required field takes no element away
p-132 Each placeholder gives one value
p-133 Unknown placeholders are refused
p-134 Capability becomes an element, nothing else
p-135 Element goes before its Paas
p-136 Elements move to another ApplicationSet
p-137 Nobody's element stays and is told
p-138 Hand-over that cannot be is told
p-139 Spoiled element is put right
p-140 No write is lost among writers
p-141 Argo CD asks for elements, with a token
p-142 Argo CD gets its policy in a ConfigMap
p-143 Policy of others is untouched, ours put back
p-144 Names that would add lines left out
p-145 Shares in whole units are the quota
p-146 Sum of shares is never above the quota
p-147 Small amounts are divided
p-148 Whole quota for each, and shares again
p-149 Capabilities' quotas without shared ones
p-150 Shares go when shared quotas come, and back
p-151 Quota a tenant changes or deletes is back
p-152 Capability's quota between min and max
p-153 Capability without quotas, or external
p-154 No quota, or more requests than limits
p-155 Resources that are not allowed are refused
p-156 Extra permissions nobody configured: told, unbound
p-157 Permissions in namespaces, without a gap
p-158 No name is free with a right
p-159 Each reason is told and heals
p-160 At rest nothing is written; Ready never flaps
p-161 Secrets are ignored and told
p-162 Fields without a use are named
p-163 A Paas waits only for parts it needs
p-164 Function away: the others' parts are complete
p-165 Columns and short name
p-166 Forged marks: refused, and proving nothing
p-167 Tenant changes no binding of ours for long
p-168 Fences allow what is needed, no more
p-169 Withdrawn role: bindings shrink and never grow
p-170 Write refused by an old param succeeds
p-171 Policies do not judge what is unchanged
p-172 Who may read and write PaasNS
p-173 Deleted Paas: bindings, Groups, then namespaces
p-174 Removed group: Group after its last binding
p-175 Changed roles: access is never missing
p-176 Refused additions stop no withdrawal
p-177 Mapping that reaches 600 namespaces in time
p-178 Broken Paas are in nobody's way
p-179 Many at once are soon complete
p-180 Configuration without another meaning writes nothing
p-181 Faults: only what is declared, no free name
p-182 Without PaasConfig nothing changes by itself
p-183 The older PaasConfig counts, then the younger
p-184 Each mistake of a PaasConfig, each warning
p-185 Other quota label: never another Paas' namespace
p-186 Capability that leaves the configuration
p-187 What opr-paas left is taken over
p-188 Elements, finalizers, bare namespaces of old releases
p-189 What proves nothing is not taken over
p-190 Taken over: no owner reference, others' unchanged
p-191 Foreign CRDs: nothing but a Warning
p-192 What a forced deletion left goes
p-193 Administrators hand namespaces over
p-194 Uninstalled: what Paas declare stays
p-195 Deleted CRDs: as every Paas' deletion
p-196 Command checks as the API server does
p-197 Command shows what a Paas comes to
p-198 Command converts as upstream did
p-199 Command refuses a conversion that widens
"""
