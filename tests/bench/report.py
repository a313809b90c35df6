"""The figures: one list of rows, printed as a table or as JSON."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.bench.latency import quantile

if TYPE_CHECKING:
    from tests.bench.aggregation import Figures as Rights
    from tests.bench.convergence import Round
    from tests.bench.decisions import Figures as Decisions
    from tests.bench.flux_admission import Figures as Flux
    from tests.bench.growth import Figures as Growth
    from tests.bench.locks import Figures as Locks
    from tests.bench.memory import Figure as Memory
    from tests.bench.namespace_scopes import Figures as NamespaceScopes
    from tests.bench.paas import Figures as Paas
    from tests.bench.policies import Figures as Policies
    from tests.bench.process import Figures
    from tests.bench.releases import Figures as ReleaseFigures
    from tests.bench.requests import Asked, Phase
    from tests.bench.scopes import Figures as Scopes


@dataclass(frozen=True)
class Row:
    name: str
    value: float
    unit: str
    note: str = ""


class Report:
    """Collects rows in the order in which they are measured."""

    def __init__(self, machine: str) -> None:
        self._machine = machine
        self._rows: list[Row] = []

    def convergence(self, name: str, projects: int, rounds: Sequence[Round], peak_mb: float) -> None:
        """Rounds of one size; the name says it, and whether other functions were at work."""
        best = min(rounds, key=lambda each: each.seconds)
        seconds, floors = [each.seconds for each in rounds], [each.floor for each in rounds]
        many = len(rounds) > 1
        self._seconds(f"{name}: first creation to all complete", seconds)
        note = "same requests by a bare client, 16 in flight" + (f"; best {min(floors):.2f}" if many else "")
        self._add(f"{name}: floor", statistics.median(floors), "s", note)
        self._ratio(f"{name}: ratio to the floor", seconds, floors)
        reads = statistics.median(each.reads for each in rounds) / projects
        writes = statistics.median(each.writes for each in rounds) / projects
        self._add(f"{name}: reads per project", reads, "requests", "apiserver_request_total: GET and LIST of our kinds")
        self._add(f"{name}: writes per project", writes, "requests", "the same: every apply, created namespaces and Events")
        used = {who: statistics.median(each.cpu[who] for each in rounds) for who in best.cpu}
        for who in ("function", "up", "kube-apiserver"):
            floor = f"floor: {statistics.median(each.floor_cpu[who] for each in rounds):.2f}" if who in best.floor_cpu else ""
            if who in used:
                self._add(f"{name}: CPU of {who}", used[who], "s", floor)
        self._add(f"{name}: peak memory of the function", peak_mb, "MiB", "start, sweep and load")

    def latency(self, what: str, values: Sequence[float]) -> None:
        for share in (0.5, 0.9, 0.99):
            self._add(f"{what}: p{share * 100:.0f}", quantile(list(values), share), "ms", f"{len(values)} samples, by watch")

    def at_rest(self, seconds: float, writes: float, changes: int) -> None:
        self._add("at rest: writes", writes, "requests", f"in {seconds:.0f} s, our kinds, by anybody; {changes} watch events")

    def sweep(self, seconds: float, cpu_s: float, reads: float, writes: float, peak_mb: float) -> None:
        self._add("sweep: time", seconds, "s", f"{writes:.0f} writes")
        self._add("sweep: CPU of the function", cpu_s, "s")
        self._add("sweep: reads", reads, "requests", "one per page of 500 objects")
        self._add("sweep: peak memory of the function", peak_mb, "MiB", "load and sweep")

    def releases(self, others: str, figures: ReleaseFigures) -> None:
        name = f"{figures.charts} charts{others}"
        self._seconds(f"{name}: asked for to all complete", figures.seconds)
        note = "same requests by a bare client, 16 in flight"
        self._add(f"{name}: floor", statistics.median(figures.floors), "s", note)
        self._ratio(f"{name}: ratio to the floor", figures.seconds, figures.floors)
        self._add(f"{name}: reads per chart", figures.reads, "requests", "by anybody, until rest")
        self._add(f"{name}: writes per chart", figures.writes, "requests", "the same, without the question itself")
        self.latency(f"{name}: namespace joins, in the values", figures.joins)
        self._add(f"{name}: writes at rest", figures.at_rest, "requests", f"in {figures.rest_s:.0f} s")
        self._add(f"{name}: sweep", figures.sweep_s, "s", f"{figures.sweep_reads:.0f} reads, {figures.sweep_writes:.0f} writes")
        self._add(f"{name}: peak memory of the function", figures.peak_mb, "MiB")

    def process(self, figures: Figures) -> None:
        starts = f"median of {len(figures.starts)} starts; best {min(figures.starts):.2f}"
        self._add("start to first handled event: CPU", figures.start_cpu_s, "s", starts)
        self._add("start to first handled event: wall", figures.start_wall_s, "s")
        self._add("memory at the first event", figures.first_mb, "MiB", "resident")
        self._add("memory after the load", figures.loaded_mb, "MiB", f"peak {figures.peak_mb:.1f}")
        self._add("memory idle", figures.idle_mb, "MiB", "5 s later")
        note = "unknown kind, 2 KB, 16 connections; server and generator pinned to a core each"
        self._add("events without work", figures.noop_s, "1/s", note)
        self._add("events without work per CPU second", figures.noop_cpu_s, "1/s")
        note = "reconcile.requested for a namespace whose label is missing: GET, apply"
        self._add("events that read once and apply once", figures.once_s, "1/s", note + "; API server shares the cores")
        self._add("the same per CPU second of the function", figures.once_cpu_s, "1/s")
        note = "add of a namespace that joins: reads of its project too, runs coalesced"
        self._add("joining events per CPU second", figures.join_cpu_s, "1/s", note)

    def rights(self, others: str, figures: Rights) -> None:
        name = f"ClusterRoleBinding in {figures.projects} projects{others}"
        for what, values in (("comes", figures.comes), ("goes", figures.goes)):
            self._seconds(f"{name}: {what}", values)
        note = f"an apply and an Event in each by a bare client, 16 in flight; best {min(figures.floor):.2f}"
        self._add(f"{name}: floor", statistics.median(figures.floor), "s", note)
        self._ratio(f"{name}: ratio to the floor", figures.comes, figures.floor)
        self.latency(f"RoleBinding in one project{others}", figures.one_ms)

    def scopes(self, others: str, rounds: Sequence[Scopes]) -> None:
        name = f"scopes: 2 roles in {rounds[0].namespaces} namespaces{others}"
        bound, floors = [each.bound for each in rounds], [each.floor for each in rounds]
        self._seconds(f"{name}: bound", bound)
        self._seconds(f"{name}: floor", floors)
        self._seconds(f"{name}: narrowed to half", [each.narrowed for each in rounds])
        self._ratio(f"{name}: bound, ratio to the floor", bound, floors)
        self._add(f"{name}: CPU of the function to bind", statistics.median(each.cpu["function"] for each in rounds), "s")
        if back := [each for one in rounds for each in one.back]:
            for share in (0.5, 0.99):
                text = f"scopes: a deleted binding is back{others}, p{share * 100:.0f}"
                self._add(text, quantile(back, share), "ms", f"{len(back)} samples, by watch")

    def namespace_scopes(self, found: NamespaceScopes) -> None:
        """First convergence of one NamespaceScope, its end, and what it costs at rest."""
        name = f"NamespaceScope, {found.members} members, {found.projection}"
        self._add(f"{name}: {found.bindings} bindings given", found.given, "s", "one run")
        self._add(f"{name}: floor", found.floor, "s", "the same Roles and RoleBindings by a bare client")
        self._add(f"{name}: given, ratio to the floor", found.given / found.floor, "")
        self._add(f"{name}: CPU of the function to give", found.cpu["function"], "s")
        self._add(f"{name}: all taken back", found.withdrawn, "s")
        self._add(f"{name}: write requests at rest", found.writes_at_rest, "", f"in {found.rest_s:.0f} s, by anybody")
        self._add(f"{name}: read requests at rest", found.reads_at_rest, "", f"in {found.rest_s:.0f} s, by anybody")

    def locks(self, figures: Locks) -> None:
        name = f"{figures.releases} locked releases of {figures.objects} objects"
        self._add(f"{name}: cold sweep", figures.cold_s, "s", f"{figures.sweep_writes:.0f} writes")
        self._add(f"{name}: reads per release and kind, cold", figures.per_release_and_kind, "requests")
        self._add(f"{name}: second sweep", figures.warm_s, "s", f"{figures.warm_requests:.0f} reads")
        self._add(f"{name}: memory of the function", figures.memory_mb, "MiB", "resident, after sweeps and repairs")
        self.latency("drift to repair", figures.repairs_ms)
        self._add("drift to repair: floor", quantile(figures.floor_ms, 0.5), "ms", "read, apply and patch by a bare client, p50")
        note = f"for {figures.status_updates} status updates of a locked Deployment in {figures.status_s:.0f} s"
        self._add("status updates: writes", figures.status_writes, "requests", note)

    def paas(self, found: Paas) -> None:
        """Many Paas at once, one change after the other, and their end."""
        name = f"{found.paas} Paas of 3 namespaces"
        bare = "the same objects by a bare client, 16 in flight"
        self._add(f"{name}: first creation to all complete", found.created, "s", "2 groups, 12 RoleBindings, 2 quotas each")
        self._add(f"{name}: all say Ready", found.ready, "s")
        self._add(f"{name}: floor", found.floor, "s", bare)
        self._add(f"{name}: complete, ratio to the floor", found.created / found.floor, "")
        for who in ("functions", "up", "kube-apiserver"):
            self._add(f"{name}: CPU of {who}", found.cpu[who], "s")
        note = "a binding comes and one goes in each"
        self._add(f"{name}: a mapping changes in {3 * found.paas} namespaces", found.mapped, "s", note)
        self._add(f"{name}: a mapping changes, floor", found.mapped_floor, "s", bare)
        note = "to Paas and what they have, by anybody"
        self._add(f"{name}: writes of a change without effect", found.idle_writes, "requests", note)
        self.latency(f"{name}: a new Paas", found.new_ms)
        self.latency(f"{name}: a user added", found.user_ms)
        self.latency(f"{name}: a spoiled binding back", found.back_ms)
        self._add(f"{name}: all deleted", found.deleted, "s", f"{found.paas + len(found.new_ms)} Paas are gone")
        for who, (peak, limit) in sorted(found.peaks.items(), key=lambda each: each[1][0] / each[1][1], reverse=True)[:4]:
            self._add(f"{name}: peak memory of {who}", peak, "MiB", f"its limit is {limit:g}")

    def paas_growth(self, sizes: Sequence[Paas]) -> None:
        """How the cost of a Paas grows from one size to the next."""
        for before, after in pairwise(sizes):
            for what in ("created", "mapped", "deleted"):
                ratio = (getattr(after, what) / after.paas) / (getattr(before, what) / before.paas)
                self._add(f"{after.paas} Paas against {before.paas}: {what}, for each", ratio, "", "1: linear")

    def flux(self, found: Flux) -> None:
        """The index, what policies add to a request, locks, revocations, and rest."""
        for each in found.index:
            name = f"index of {each.grants:,} grants"
            self.latency(f"{name}: one write", each.write_ms)
            self._add(f"{name}: stored", each.size / 1024, "KiB", "one selector each, managed fields included")
        name = f"{found.policies} bindings, {found.sizes.grants:,} grants"
        for what, having in found.having.items():
            bare = found.bare[what]
            note = f"{len(having)} dry runs of each in {found.sizes.blocks} blocks of both in turn, one at a time"
            self._add(f"{name}: {what}, p50 with policies", quantile(having, 0.5), "ms", note)
            self._add(f"{name}: {what}, p50 without", quantile(bare, 0.5), "ms")
            self._add(f"{name}: {what}, more at p50", quantile(having, 0.5) - quantile(bare, 0.5), "ms")
            note = f"{quantile(bare, 0.99):.2f} without"
            self._add(f"{name}: {what}, p99 with policies", quantile(having, 0.99), "ms", note)
        name = f"{found.sizes.consumers:,} consumers of {found.sizes.used} sources"
        self._seconds(f"{name}: one grant narrowed, all stopped", found.stopped_s)
        self._seconds(f"{name}: one grant narrowed, all say AccessDenied", found.told_s)
        self._seconds(f"{name}: given back, all go on", found.freed_s)
        self._seconds(f"{name}: {found.sizes.used} grants narrowed, all stopped", found.each_stopped_s)
        self._seconds(f"{name}: {found.sizes.used} grants narrowed, all say AccessDenied", found.each_told_s)
        note = "two updates and an Event each by a bare client, 16 in flight, nothing else at work"
        self._add(f"{name}: floor", found.floor_s, "s", note)
        for who in ("functions", "up", "kube-apiserver"):
            self._add(f"{name}: CPU of {who}", found.cpu[who], "s", "narrowed and given back")
        self.latency("a grant taken back: answer to first refused request", found.revoked_ms)
        self.latency("a grant given: answer to first admitted request", found.granted_ms)
        note = f"in {found.sizes.rest_s:.0f} s, to all that Flux tenancy is about, by anybody"
        self._add(f"{name}: writes at rest", found.rest_writes, "requests", note)

    def policies(self, figures: Policies) -> None:
        """What all policies cost together: each with all and with none, and the ratio of the means of all rounds."""
        name = f"{figures.policies} policies, {figures.projects} x {figures.members} with all functions"
        for what, having, bare in figures.rows():
            ratios = [one / other for one, other in zip(having, bare, strict=True)]
            note = f"{len(ratios)} rounds of each in turn; median (least to greatest)"
            self._add(f"{name}: {what}", statistics.median(having), "s", f"{spread(having)}; {note}")
            self._add(f"{name}: {what}, without", statistics.median(bare), "s", spread(bare))
            ratio = statistics.fmean(having) / statistics.fmean(bare)
            self._add(f"{name}: {what}, ratio of the means", ratio, "", f"neighbouring rounds {spread(ratios)}")
        shares = [100 * each for each in figures.shares]
        note = f"{spread(shares)}; seconds in admission for each CPU second of everything at work"
        self._add(f"{name}: share of policies", statistics.median(shares), "%", note)

    def decisions(self, figures: Decisions) -> None:
        """What decisions as events cost, and the ledger of many."""
        for name, used in figures.runs_us.items():
            note = f"{spread(used)}; two writes, an API server that answers at once"
            self._add(f"CPU of a run, {name}", statistics.median(used), "us", note)
        name = f"{figures.projects} x {figures.members}"
        for what, rounds in (("on", figures.on), ("off", figures.off)):
            seconds = [each.seconds for each in rounds]
            self._add(f"{name}, decisions {what}: all complete", statistics.median(seconds), "s", spread(seconds))
            for who in ("function", "up"):
                used = [each.cpu[who] for each in rounds]
                self._add(f"{name}, decisions {what}: CPU of {who}", statistics.median(used), "s", spread(used))
        for what, value in figures.ledger.items():
            text, _, unit = what.rpartition(": ")
            self._add(f"ledger of {figures.kept:,}, {text}", value, unit)

    def requests(self, size: str, phases: Sequence[Phase]) -> None:
        """Of each phase: requests by identity, with what it asked for most, and CPU by process."""
        for phase in phases:
            by_identity: dict[str, list[tuple[Asked, int]]] = {}
            for asked, count in phase.requests.most_common():
                by_identity.setdefault(asked.identity, []).append((asked, count))
            name = f"{size}, {phase.name}"
            each = f"for each of {phase.count}"
            self._add(f"{name}: all requests", phase.requests.total() / phase.count, "requests", each)
            for identity, sorts in sorted(by_identity.items(), key=lambda found: -sum(count for _, count in found[1])):
                most = ", ".join(f"{asked.verb} {asked.resource} {count / phase.count:.1f}" for asked, count in sorts[:8])
                self._add(f"{name}: {identity}", sum(count for _, count in sorts) / phase.count, "requests", most)
            for process, seconds in sorted(phase.cpu.items(), key=lambda used: -used[1]):
                self._add(f"{name}: CPU of {process}", seconds, "s")

    def instances(self, size: str, found: Mapping[int, Sequence[Phase]]) -> None:
        """By number of processes of each function, what projects and charts came to, with what followed until rest."""
        for what in ("registered", "charts", "a namespace joins"):
            asked = {count: [each for each in phases if each.name.endswith(what)] for count, phases in found.items()}
            each = {count: sum(phase.requests.total() for phase in of) / of[0].count for count, of in asked.items()}
            for count, of in asked.items():
                name = f"{size}, {what}, {count} of each function"
                conflicts = sum(phase.conflicts for phase in of)
                note = f"for each of {of[0].count}, until rest; {conflicts} conflicts in all"
                self._add(f"{name}: requests", each[count], "requests", note)
                self._add(f"{name}: requests, ratio to one", each[count] / each[1], "")

    def size(self, found: Growth) -> None:
        """One size of many projects with charts, all functions at work."""
        name = f"{found.projects} x 5 with charts, all functions"
        for what, burst in (("registered", found.registered), ("charts", found.charts)):
            self._add(f"{name}: {what}", burst.seconds, "s", f"{1000 * burst.seconds / found.projects:.0f} ms for each project")
            self._add(f"{name}: {what}, floor", burst.floor, "s", "the same writes by a bare client, 16 in flight, afterwards")
            self._add(f"{name}: {what}, ratio to the floor", burst.seconds / burst.floor, "")
            most = sorted(burst.cpu.items(), key=lambda used: -used[1])
            used = ", ".join(f"{who} {seconds:.1f}" for who, seconds in most[:6] if who not in ("function", "bench"))
            self._add(
                f"{name}: {what}, CPU of all",
                sum(burst.cpu[who] for who in ("kube-apiserver", "etcd", "up", "functions")),
                "s",
                used,
            )
            self._add(f"{name}: {what}, requests in the 10 s after", burst.after, "requests", "of our kinds, by anybody")
        self.latency(f"{name}: a namespace joins, quiet", found.quiet_ms)
        self.latency(f"{name}: a namespace joins, while 200 projects come", found.busy_ms)
        who, peak = max(found.peaks.items(), key=lambda each: each[1])
        self._add(f"{name}: peak memory", peak, "MiB", f"of {who}, the largest")

    def growth(self, sizes: Sequence[Growth]) -> None:
        """How the cost of a project grows from one size to the next."""
        for before, after in pairwise(sizes):
            for what in ("registered", "charts"):
                ratio = (getattr(after, what).seconds / after.projects) / (getattr(before, what).seconds / before.projects)
                self._add(f"a project, {what}: cost at {after.projects} beside that at {before.projects}", ratio, "")

    def memory(self, count: int, members: int, figures: Sequence[Memory]) -> None:
        """The peak of each function in a sweep, beside three quarters of its limit."""
        for each in figures:
            allowed = 0.75 * each.limit
            held = "" if max(each.swept, each.begun, each.made) < allowed else " EXCEEDED"
            before = f"from its start {each.begun:.0f}, while all was made {each.made:.0f}"
            note = f"{allowed:.0f} of {each.limit} MiB are allowed{held}; {before}"
            sweeps = f"; {each.sweeps} sweeps until one ended" if each.sweeps > 1 else ""
            self._add(f"sweep of {count} x {members}, peak memory: {each.function}", each.swept, "MiB", note + sweeps)

    def table(self) -> str:
        width = max((len(row.name) for row in self._rows), default=0)
        lines = [self._machine, ""]
        lines += [f"{row.name:<{width}}  {_number(row.value):>9} {row.unit:<9} {row.note}".rstrip() for row in self._rows]
        return "\n".join(lines)

    def json(self) -> str:
        return json.dumps({"machine": self._machine, "rows": [asdict(row) for row in self._rows]}, indent=2)

    def _seconds(self, name: str, values: Sequence[float]) -> None:
        note = f"median of {len(values)}; best {min(values):.2f}" if len(values) > 1 else "one run"
        self._add(name, statistics.median(values), "s", note)

    def _ratio(self, name: str, values: Sequence[float], floors: Sequence[float]) -> None:
        ratios = [value / floor for value, floor in zip(values, floors, strict=True)]
        self._add(name, statistics.median(ratios), "", f"best {min(ratios):.2f}" if len(ratios) > 1 else "")

    def _add(self, name: str, value: float, unit: str, note: str = "") -> None:
        self._rows.append(Row(name, round(value, 4), unit, note))


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 200 or value == int(value) else f"{value:.1f}" if value >= 20 else f"{value:.2f}"


def spread(values: Sequence[float]) -> str:
    """Median, least and greatest."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
