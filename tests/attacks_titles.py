"""Each attack of the specification in a sentence, and what stops it: the text of docs/attacks.md.

What stops an attack is printed only where a test shows it.
"""

from __future__ import annotations

from typing import NamedTuple


class Attack(NamedTuple):
    """What somebody does, and what ends it."""

    does: str
    stopped_by: str


class Part(NamedTuple):
    """One part of the page: the numbers from ``first`` to ``last``."""

    heading: str
    about: str
    first: int
    last: int


PARTS = (
    Part("Helm's records", "Helm and locks act on the record of a release; a record is data of whoever may write it.", 1, 9),
    Part("Size", "One tenant's objects neither end nor slow a function for the others, within the limits of the pods.", 12, 19),
    Part("Events", "An event names an object to look at. It carries no authority, and costs little.", 20, 25),
    Part("Names and labels", "A name or a label gives nobody anything.", 30, 38),
    Part("Stolen identities", "What rights cannot say, an admission policy for each identity says: its fence.", 40, 47),
    Part("Values", "Values of a chart are data, not templates.", 50, 52),
    Part("What is shipped", "Images, packages, pods and networks.", 60, 63),
)

_TEXT = """\
1 | owner puts a hook with a ClusterRoleBinding into the record of a release, then has it uninstalled | \
a guard refuses the record; the Job has the rights of its release namespace only
2 | owner forges a manifest that names objects of a neighbour | a guard refuses the record; the Job's rights end at its namespace
3 | owner writes `status: failed` into the record, to have the release made anew | a guard refuses the change of the record
4 | owner forges a record as ConfigMap, adds a higher revision, deletes a record, names another release | \
a guard refuses each; locks read only the storage in use, and act on marked objects of the release
5 | editor does the same | the same
6 | owner or editor forges a newer record in the storage that Helm does not use | \
the lock reads the storage that the HelmRelease names
7 | owner or editor forges a record that names objects in other namespaces or of the cluster | \
the lock stays in the release namespace and where the HelmRelease allows it by name
8 | owner or editor forges a record that names somebody's objects beside the release | \
the lock touches only objects with Helm's marks
9 | nobody: Helm by its Jobs and by administrators, and locks | still work
12 | wire sends events of the largest size: `[[],[],...]`, one deep list, a million short keys, 50 at once | \
large bodies are taken a few at a time; values are counted before they are parsed
13 | owner forges a small record that unpacks to very much, and manifests of aliases and nesting | \
budgets for bytes, tokens and depth before anything is parsed
14 | values author writes values of 1 MB, of 100,000 keys, of depth 5,000 | budgets for bytes, keys and depth
15 | owner makes 200 ConfigMaps of 1 MB with labels that functions select by | \
lists are read in pages and reduced while they are read
16 | owner writes one dashboard ConfigMap of 35,000 keys | a budget for keys
17 | owner writes Roles of 880 kB as consent on both sides, and Roles that multiply | a budget for rules
18 | owner writes quantities such as `1e9999999`, names and selectors at every limit, numbers of 10,000 digits | \
numbers without bounds are compared as they are written; names are checked before anything is made
19 | owner makes 5,000 small objects of each kind | lists are read in pages; each owner is looked at by himself
20 | wire sends 5,000 malformed events of 900 kB each | dead letters are a store of a fixed size
21 | wire, or bad luck: a well-formed event above 1 MiB that cannot be delivered | the dead letter keeps key and reason
22 | wire sends 1,000 forged requests for a sweep | one sweep runs, one waits, the others are answered by these
23 | wire forges requests to look at owners that exist, do not, or are `../x` | \
a function plans from what it reads; names that no object can have are passed over
24 | wire forges events of every kind and shape while others work | events are keys to look at; payloads are not read
25 | a pod outside of the event path tries broker, functions and dead-letter sink | network policies
30 | labeller makes the release namespace with our labels before the project's owner asks | \
what is ours is told by field ownership, which a guard keeps; an administrator adopts
31 | labeller does the same with a registration namespace | the same
32 | a release goes, its namespace stays with Secrets; a neighbour asks for the name | \
a namespace with leftovers of another project is refused until it is empty or adopted
33 | labeller puts his namespace into a project, or takes one out | a guard asks for the verb `join` on the project
34 | anybody writes our labels, annotations, finalizers or conditions | a guard asks for the verb `write` on `marks`
35 | owner names a ProjectHelmChart, Role, ConfigMap or RoleBinding like an object of ours before we make it | \
objects without our field manager's marks are not taken over; who asked is told
36 | neighbour squats a release name | the first who asked has the name; the second is told without the first's objects
37 | somebody deletes the home namespace and makes it again | consent is bound to the namespace's uid
38 | owner makes a Role of our name, with a binding of his own on it | a Role that others are bound to gets no more
40 | thief of namespace-registration's token | fence and rights
41 | thief of rbac-aggregation's token | fence and rights
42 | thief of release-provisioning's token | fence and rights
43 | thief of scope-binding's token | fence and rights
44 | thief of lock-enforcement's token | fence and rights
45 | thief of a source's token | rights without any write, and a fence
46 | thief of a Helm Job's token | a RoleBinding in the release namespace, for as long as the Job exists
47 | thief of any of these tokens makes tokens, pods under other accounts, impersonates, changes his own rights | \
rights and fences
50 | values author writes templates that read Secrets, and lists of extra objects, for a chart that renders values | \
the rights of the Job that runs Helm
51 | values author forges the layers above his own | the layers above are merged over his, whatever he writes
52 | values author reads another project's values, status or dashboard | rights end at the project's own namespaces
60 | somebody publishes an image or package under a name that we ship | digests and hashes; placeholders instead of foreign names
61 | anything that reaches a pod of ours, or piles up objects | `restricted`, default deny, quotas, priorities, limits
62 | a node is drained while Helm runs | the Job's replacement policy
63 | somebody changes what is built | SBOM, locked packages, an audit of them
"""

ATTACKS: dict[str, Attack] = {}
for _line in _TEXT.splitlines():
    _number, _does, _stops = (part.strip() for part in _line.split(" | "))
    ATTACKS[f"a-{_number}"] = Attack(_does, _stops)
