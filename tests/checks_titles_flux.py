"""What each acceptance check of Flux tenancy promises, in at most eight words."""

from __future__ import annotations

FLUX = """\
f-1 Local references need no grant
f-2 One's own namespace is local
f-3 A grant is not read locally
f-4 What is not shared is denied
f-5 A chart repository for everybody
f-6 Namespaces without labels count too
f-7 No selector is nobody
f-8 A namespace is selected by its name
f-9 A selector needs all of its pairs
f-10 One of several selectors is enough
f-11 Values are compared exactly
f-12 A SourceGrant opens a source
f-13 Only what is beside a source grants it
f-14 A bad annotation grants nothing, told once
f-15 An illegal selector takes nothing from others
f-16 A denial does not show what exists
f-17 Image automation needs a grant to write
f-18 An ImageRepository opens by its field
f-19 A source that is a chart needs one
f-20 No grant opens alerts
f-21 Receivers are local
f-22 What depends on others is local
f-23 Exempt namespaces may name everything
f-24 A single tenant is not judged
f-25 Namespaces of one tenant share sources
f-26 Without an index nobody names anything
f-27 Without its grant a consumer is locked
f-28 Nothing is said or written twice
f-29 A grant that returns ends the lock
f-30 A user's own suspension stays
f-31 A label that goes takes grants along
f-32 A tenant takes no lock off
f-33 A locked object ends after its lock
f-34 Denied objects take additions
f-35 A source that is gone locks
f-36 Mode Audit warns, lists, changes nothing
f-37 A single tenant has no locks
f-38 Accounts are filled or required
f-39 An empty name is no account
f-40 Only the account of the tenant
f-41 Deliveries go to their own namespace
f-42 Everything in one namespace, nothing outside
f-43 Cluster-scoped objects are told to tenants
f-44 Manifests a tenant cannot apply are listed
f-45 Kubeconfigs can be refused
f-46 A tenant is printed exactly
f-47 Two namespaces are six documents, once
f-48 A tenant does not label its namespace
f-49 Tenants set the labels that are listed
f-50 A namespace is deleted by the platform
f-51 Options change only what they name
f-52 Wrong input is one line on stderr
f-53 Labels of others stay when adopted
f-54 A namespace of another tenant is refused
f-55 Deleted parts of a Tenant are back
f-56 A namespace that leaves is left alone
f-57 A Tenant goes in order, leaving nothing
f-58 Wrong sources and Kustomizations are refused
f-59 Source of another namespace is named
f-60 Only two profiles are legal
f-61 Reading and writing are granted apart
f-62 Each policy is what refuses
f-63 Wrong credentials are refused, and never told
f-64 Story 1: charts for all tenants
f-65 Story 2: a repository for another tenant
f-66 Story 3: image automation elsewhere
f-67 A field that is dropped grants nothing
f-68 Every field and kind of source
f-69 A new namespace has what labels give
f-70 Without the ACL the rest holds
f-71 By default nothing is enforced
f-72 What is no profile is refused
f-73 Policies count before functions run
f-74 A missing index refuses consumers only
f-75 The index is not deleted
f-76 Grants that are written by hand go
f-77 A full index keeps what it has
f-78 What stays granted is never refused
f-79 Grants at once; same carriers, same bytes
f-80 Selectors that imitate the index grant nothing
f-81 Every served version is judged alike
f-82 Policies follow what is served
f-83 A further kind is a row
f-84 All policies are typed
f-85 Platform is who has the verb
f-86 References are judged whoever asks
f-88 The index is written soon, stored small
f-89 A revocation counts at once
f-91 A thousand references are judged within budget
f-92 Admission decides what the table says
f-93 Locks and admission agree
f-94 Ordinary work is refused nothing
f-95 Functions write no policies; edits are told
f-96 Conditions of a lock are kept
f-97 The end of a run hides no lock
f-98 Deletion waits for the lock's end
f-99 Denied objects may be edited
f-100 A parent leaves its child locked
f-101 A denied child fails its parent
f-102 A quarantined child fails nobody
f-103 A denied reference is quarantined
f-104 Quarantine comes to rest under apply
f-105 Without mutations quarantine denies
f-106 Quarantine ends with a grant
f-107 Marks of a tenant are taken off
f-108 A report is no lock
f-109 Each kind is stopped by its means
f-110 Status of a source is its controller's
f-111 Nobody deploys another's artifact
f-112 External artifacts are their producers'
f-113 Artifact generators are denied and locked
f-114 Charts carry no keys of tenancy
f-115 No secrets of others verify charts
f-116 Status of a HelmRelease is its controller's
f-117 A HelmChart stays the first release's
f-118 A chart made elsewhere: by its name only
f-119 ResourceSets depend on what is theirs
f-120 Providers of inputs select at home
f-121 What was there before is stopped
f-122 Labels that tenants could set are named
f-123 Labels are guarded on every way
f-124 Keys and prefixes that tenants may set
f-125 Namespaces in repositories are not applied
f-126 Who makes namespaces labels none
f-127 A namespace is shown what it may use
f-128 A tenant asks of a source by itself
f-129 The shortcut of RFC-0003, to the byte
f-130 Single-tenant takes everything away
f-131 Each addition to a profile, and no other
f-132 Controllers start with what is exported
f-133 It is applied as the tenant
f-134 Without an account nothing is applied
f-135 A controller that only impersonates delivers
f-136 Cluster-scoped objects in repositories are rejected
f-137 A filled account is nobody's
f-138 Without mutations accounts are required
f-139 Without mutations served: required and refused
f-140 Both ways to switch end alike
f-141 All is listed before the switch
f-142 A flag that makes a grant void
f-143 The RFC's names, without labels
f-144 The RFC's five documents, all admitted
f-145 With the user, as Flux' command
f-146 Keys are a pair; credentials have their keys
f-147 Sources and Kustomizations have what was asked
f-148 A tenant delivers all that it needs
f-149 A Tenant's repository runs as itself
f-150 What a Tenant made, its tenant cannot change
f-151 Namespaces of a Tenant are not pruned
"""
