"""How much of everything is read, unpacked, parsed, listed, kept and reported: the one place of all budgets.

What tenants write can be as large as the API server stores, and as many objects as it takes.  A function has the memory of its
pod, and one event loop for all.  What is larger than its budget here is reported on its object, with the limit and the fix, and
left as it is; no other owner waits for it (checks a-12 to a-19).  docs/limits.md lists these figures for people.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

KIB: Final = 2**10
MIB: Final = 2**20

# -- events ----------------------------------------------------------------------------------------------------

EVENT_BYTES: Final = 4 * MIB
"""Bytes of a request's body; etcd's own limit for one object is 1.5 MiB."""
EVENT_VALUES: Final = 100_000
"""Values in the JSON of an event: what they cost in memory is 20 MiB at most."""
EVENT_SMALL_BYTES: Final = 64 * KIB
"""Bytes of a body that is read without waiting: almost all events are smaller."""
EVENTS_LARGE_AT_ONCE: Final = 2
"""Larger bodies that are in memory at a time."""
EVENT_READ_S: Final = 5.0
"""Seconds in which a large body must arrive: others wait meanwhile."""
RUNS_PENDING: Final = 2000
"""Owners whose runs are under way or wait; beyond that events are answered 429."""
RUNS_AT_ONCE: Final = 64
"""Runs that are under way: each holds what it has read, and who waits holds an event only.  More than the client's requests."""

# -- dead letters ----------------------------------------------------------------------------------------------

DEAD_LETTERS: Final = 500
"""Letters that are kept, one for each key of a function."""
DEAD_LETTERS_BYTES: Final = 192 * KIB
"""Bytes of all letters together."""
DEAD_LETTER_BODY_BYTES: Final = 64 * KIB
"""Bytes of an event in structured mode, whose attributes stand in the body; brokers send dead letters in binary mode."""
DEAD_LETTER_READ_BYTES: Final = 16 * KIB
"""Bytes that are read from a connection at once.  asyncio reads 256 KiB: unread bodies of some hundred senders would fill the
memory."""
DEAD_LETTER_SENDERS: Final = 64
"""Senders that wait for the write, as many as the Knative Service lets in; more are answered at once, and hold no memory."""

# -- decisions as events ---------------------------------------------------------------------------------------

DECISION_CAUSES: Final = 50
"""Events that a decision names as its causes; of more their number is told."""
DECISION_INPUTS: Final = 200
"""Objects that a decision names as read."""
DECISION_TEXTS: Final = 2000
"""Objects, fields and subjects that the writes of one event name; a decision of more is several events."""
DECISION_FIELDS: Final = 100
"""Fields of one write, changed or given up, that are named."""
DECISION_SUBJECTS: Final = 1000
"""Subjects of one binding, added or removed, that are named."""
DECISION_REFUSED: Final = 100
"""Refused writes that a decision names."""
DECISION_NAME_CHARACTERS: Final = 320
"""Characters of a subject's name."""
DECISIONS_WAITING: Final = 1000
"""Decisions of one process that wait to be sent; of more the oldest are dropped, and the gap is named."""
DECISIONS_WAITING_NAMES: Final = 50_000
"""Objects that they name, read or written."""
LEDGER_EVENT_BYTES: Final = MIB
"""Bytes of an event that the ledger takes."""
LEDGER_SENDERS: Final = 256
"""Senders that wait until the ledger has written; more are told to come again."""

# -- answers of the API server ---------------------------------------------------------------------------------

PAGE_OBJECTS: Final = 500
"""Objects in one page of a list."""
PAGE_BYTES: Final = 2 * MIB
"""Bytes of one page of a list, as JSON; a page of a single object may be larger."""
ANSWER_SMALL_BYTES: Final = 64 * KIB
"""Bytes of an answer that is decoded at once; of larger ones one at a time, and what is ready otherwise goes between two."""
OBJECT_LEVELS: Final = 180
"""Levels of maps and lists inside each other in an object: what is deeper is null.  The parser's own limit is 200."""

WRITES_AT_ONCE: Final = 12
"""Writes of one run that are under way; the client has 32 requests under way for all."""

# -- charts and values -----------------------------------------------------------------------------------------

CHART_CHARACTERS: Final = 1_000_000
"""Characters of an embedded chart in base64: the whole HelmChart must fit into a request of 1.5 MiB to etcd."""
VALUES_BYTES: Final = 256 * KIB
"""Bytes of the values of a ProjectHelmChart, as JSON: the HelmChart and its Secret hold them again, as YAML in base64."""
VALUES: Final = 10_000
"""Maps, lists, texts and numbers in the values of a ProjectHelmChart: as YAML for Helm they take a tenth of a second."""
VALUES_SMALL_BYTES: Final = 4 * KIB
"""Bytes of values that become YAML at once; larger ones do so in a thread, one after the other, and once for each change."""
VALUES_LEVELS: Final = 100
"""Levels of maps and lists inside each other in the values of a ProjectHelmChart and of a dashboard."""
JOB_VALUES_CHARACTERS: Final = 200_000
"""Characters of a HelmChart's values that are checked before Helm gets them; more takes seconds, and Helm's Job reports it."""
DASHBOARD_BYTES: Final = 256 * KIB
"""Bytes of a release's dashboard values, as JSON, that fit beside everything else into the ProjectHelmChart."""
DASHBOARD_READ_BYTES: Final = MIB
"""Bytes of texts in the ConfigMaps of one release that are read."""
DASHBOARD_KEYS: Final = 1000
"""Keys of ConfigMaps with dashboard values that are read: the values found so far are laid out again for each of them."""
DASHBOARD_KEY_CHARACTERS: Final = 1020
"""Characters of a key in dashboard values, as JSON: the API server reads what is applied as YAML, whose keys end at 1,024."""

# -- Helm's records and their manifests ------------------------------------------------------------------------

RECORD_BYTES: Final = 8 * MIB
"""Bytes of a record when it is unpacked; a Secret has a mebibyte at most, packed."""
RECORD_VALUES: Final = 200_000
"""Maps, lists, texts and numbers in a record: a chart's values, its schema and its templates, of which each is one."""
RECORDS_REMEMBERED_BYTES: Final = 24 * MIB
"""Bytes of manifests that one process remembers."""
OLDER_RECORDS: Final = 30
"""Records before the newest that are read to find the last deployed one."""
MANIFEST_OBJECTS: Final = 2000
"""Objects in a manifest."""
MANIFEST_VALUES: Final = 200_000
"""Maps, lists and texts in a manifest, those that aliases repeat included."""
DOCUMENT_VALUES: Final = 50_000
"""The same in one document; the largest CRDs have half of it."""
DOCUMENT_LEVELS: Final = 120
"""Levels of maps and lists inside each other in a document; the deepest CRDs have a few dozen."""
DOCUMENT_BRACKETS: Final = 1000
"""Brackets that are open at a time in a document; those in texts count too."""
NUMBER_BITS: Final = 1024
"""Bits of a whole number in a document: one of thousands of digits cannot even be written down."""

# -- what a sweep keeps of its lists --------------------------------------------------------------------------

SWEEP_VALUES_BYTES: Final = 2 * MIB
"""Bytes of all small values of ProjectHelmCharts together, as JSON; of others a digest is kept, and they are read one by one."""
SWEEP_DASHBOARD_BYTES: Final = 8 * MIB
"""Bytes of all dashboard values together; those of further releases are read one by one."""
SWEEP_TEXT_BYTES: Final = 4 * KIB
"""Bytes of a text or map, beyond which a digest is kept where only equality matters."""

# -- rights ----------------------------------------------------------------------------------------------------

PEOPLE: Final = 1000
"""Users and groups of one level in the RoleBinding of a release's Role."""
ACCESS_REVIEWS: Final = 100
"""Access reviews that one run makes at most, for NamespaceScopes whose rights are made by hand."""

# -- NamespaceScopes -------------------------------------------------------------------------------------------

SCOPES_OF_HOME: Final = 100
"""NamespaceScopes of one namespace that are served, the oldest first."""
SCOPES_TOLD_AT_ONCE: Final = 200
"""NamespaceScopes beyond that whose status one run writes; the next run writes that of the next."""
COPIED_ROLES_OF_HOME: Final = 200
"""Roles that the accounts of one namespace have there and that are copied into members, counted for each account."""
LABELLED_CONFIG_MAPS: Final = 100
"""ConfigMaps of one namespace that have the label of a list of members and are none, above which that is reported."""
TEXT_KEPT: Final = 4096
"""Characters of a list of members that are kept of each ConfigMap; of a longer one its digest is kept."""
ACCOUNTS_OF_HOME: Final = 200
"""ServiceAccounts of one NamespaceScope that get rights in members."""
NOTES_OF_SCOPE: Final = 100
"""Entries of a NamespaceScope's ``status.unprojectedRoles``."""
OWNER_REFERENCES: Final = 1000
"""Owner references of a ConfigMap that are read."""
ROLE_RULES: Final = 256
"""Rules in a Role that is a consent, or that is copied into members."""
ROLE_ENTRIES: Final = 4096
"""API groups, resources, verbs and names in all rules of such a Role."""
ROLE_RIGHTS: Final = 100_000
"""What they multiply to: verbs by groups by resources by names, of all its rules together."""
HOME_ENTRIES: Final = 50_000
"""The same entries of all Roles that are copied for one namespace, and of all different consents to it."""
ROLES_READ: Final = 50
"""Large Roles in members that one run reads again to see what they have."""
PROJECTED_RULES: Final = 512
"""Rules in a Role that is written into a member."""
RULES_COMPARED: Final = 2_000_000
"""Entries of rules that are compared to work out what one consent leaves of all that a namespace wants: a second at most."""

# -- sources of Flux -------------------------------------------------------------------------------------------

GRANTS: Final = 10_000
"""Sources with grants in the AccessIndex; `flux.maxGrants` can make it less."""
INDEX_BYTES: Final = 896 * KIB
"""Bytes of grants and tenants in the AccessIndex, as JSON: etcd's own limit for one object is 1.5 MiB."""
INDEX_KEYS_BYTES: Final = 64 * KIB
"""Bytes of the list of label keys in it, the first in order: it is for people."""
INDEX_TENANT_KEYS_BYTES: Final = 32 * KIB
"""Bytes of the list of keys that tenants may set or could set before; those that they may set come first."""
ACCESS_FROM_BYTES: Final = 16 * KIB
"""Bytes of what one carrier says about access to a source, as JSON, and of the text that all carriers of one source come to."""
ACCESS_SELECTORS: Final = 64
"""Selectors of one carrier."""
ACCESS_PAIRS: Final = 32
"""Labels in one selector."""
GRANT_MATCHES: Final = 200_000
"""Sources that are looked at for all SourceGrants of one namespace, counted for each; the oldest SourceGrants come first."""
SOURCES_TOLD: Final = 200
"""Sources of one namespace about whose mistakes there are Events, the oldest first."""

# -- what a process remembers between runs ---------------------------------------------------------------------

REMEMBERED: Final = 20_000
"""Entries of a memory that only saves work: what is forgotten is read again."""
PARTIES: Final = 5_000
"""Namespaces of which is known how much of the client they had lately."""
READS_APART: Final = 12
"""Reads of one sort, each of one object or of one label's value, that are under way at a time before others wait for them."""
READ_TOGETHER: Final = 50
"""Names or values that one read asks for: a selector is a part of the request's URL."""
LIST_NOTED: Final = 200
"""Items of a list, at most, whose versions a run notes: events that tell of nothing newer need no further run."""

# -- what is reported ------------------------------------------------------------------------------------------

MESSAGE_CHARACTERS: Final = 1024
"""Characters of a condition's message."""
NOTE_BYTES: Final = 1024
"""Bytes of an Event's note; an API server takes no more."""
REFUSAL_CHARACTERS: Final = 600
"""Characters of an API server's refusal that are quoted."""
PROBLEMS_SHOWN: Final = 10
"""Problems, objects or fields that a message lists."""


def few(texts: Sequence[str], most: int = PROBLEMS_SHOWN, *, between: str = ", ", last: str = " and ") -> str:
    """The first of many texts for a message, and how many more there are: ``a, b and 3 more``."""
    return between.join(texts[:most]) + (f"{last}{len(texts) - most} more" if len(texts) > most else "")
