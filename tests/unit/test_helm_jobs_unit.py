"""The unit of HelmCharts reads and works out once what takes long."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, cast

import owning
import pytest
from chart_objects import ARCHIVE, SYSTEM, chart, config, further, install_of, stored

from release_provisioning.jobs import manifest, plan
from release_provisioning.jobs.unit import Jobs
from tenantry.api import Api
from tenantry.engine.reader import Reader
from tenantry.model.kinds import Kind, Object


class Shelf(Reader):
    """Reads from a few objects, counts how often each is read, and how many at a time."""

    def __init__(self, *objects: Object) -> None:
        super().__init__(cast(Api, None))
        self.objects = {(found["kind"], found["metadata"]["name"]): found for found in objects}
        self.reads: Counter[str] = Counter()
        self.active = self.most = 0

    async def _fetch(self, kind: Kind, name: str, namespace: str) -> Object | None:
        self.reads[f"{kind.kind} {name}"] += 1
        self.active += 1
        self.most = max(self.most, self.active)
        await asyncio.sleep(0)
        self.active -= 1
        return self.objects.get((kind.kind, name))

    async def list(self, kind: Kind, namespace: str = "", **narrowed: Any) -> list[Object]:
        del namespace, narrowed
        return [found for (of, _), found in self.objects.items() if of == kind.kind]


@pytest.mark.parametrize("changed", [False, True])
async def test_what_takes_long_is_worked_out_once_for_plan_and_report(monkeypatch: pytest.MonkeyPatch, *, changed: bool) -> None:
    """Digest, archive and values may be megabytes: worked out once by a look; the last two count as good once Helm was asked."""
    calls: Counter[str] = Counter()

    def counted(module: Any, name: str) -> None:
        work = getattr(module, name)

        def call(*given: Any) -> Any:
            calls[name] += 1
            return work(*given)

        monkeypatch.setattr(module, name, call)

    of = chart(chartContent=ARCHIVE, valuesContent="a: 1")
    jobs, shelf = Jobs(config(quietSeconds=0)), Shelf(of, install_of(chart() if changed else of))
    for module, name in ((manifest, "install_job"), (plan, "_bad_archive"), (plan, "load_yaml")):
        counted(module, name)
    observed = await owning.observe(jobs, f"chart/{SYSTEM}/demo", shelf)
    owning.handler(jobs, "chart/x/y").plan(observed)
    owning.handler(jobs, "chart/x/y").report(observed, ())

    assert calls == ({"install_job": 1, "_bad_archive": 1, "load_yaml": 1} if changed else {"install_job": 1})


@pytest.mark.parametrize(
    ("owner", "ours"),
    [
        (f"chart/{SYSTEM}/demo", True),
        (f"chart/{SYSTEM}/a.b", True),
        ("chart/other/demo", False),
        (f"chart/{SYSTEM}/No", False),
        ("release/demo", False),
    ],
)
def test_owners_are_charts_of_the_system_namespace(owner: str, ours: bool) -> None:
    """A request may name only HelmCharts of the system namespace."""
    assert owning.accepts(Jobs(config()), owner) is ours


async def test_secrets_with_values_are_read_together() -> None:
    """A HelmChart with many of them waits for one read, not for each."""
    names = [f"more-{number}" for number in range(9)]
    shelf = Shelf(
        chart(valuesSecrets=[{"name": name, "keys": ["a"]} for name in names[1:]]),
        stored({"kind": "Secret", "metadata": {"name": names[1]}}),
    )
    shelf.objects["HelmChartConfig", "demo"] = further(valuesSecrets=[{"name": name, "keys": ["a"]} for name in names[:2]])
    observed = await owning.observe(Jobs(config()), f"chart/{SYSTEM}/demo", shelf)

    assert list(observed.secrets) == names
    assert [name for name, found in observed.secrets.items() if found is not None] == [names[1]]
    assert shelf.most == len(names)
    assert set(shelf.reads.values()) == {1}


async def test_crd_is_read_once_per_sweep() -> None:
    """What a sweep learns of the CRD holds for the runs after it, and for those that it meets on their way."""
    schema = {"openAPIV3Schema": {"properties": {"status": {"properties": {"jobName": {}}}}}}
    crd = {
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "helmcharts.helm.cattle.io"},
        "spec": {"versions": [{"name": "v1", "schema": schema}]},
    }
    jobs, owner = Jobs(config()), f"chart/{SYSTEM}/demo"
    before, during, after = (Shelf(chart(), crd) for _ in range(3))
    assert (await owning.observe(jobs, owner, before)).plain is True
    met, owners = await asyncio.gather(owning.observe(jobs, owner, before), owning.sweep(jobs, during))
    seen_after = await asyncio.gather(*(owning.observe(jobs, owner, after) for _ in range(3)))

    assert owners == [owner]
    assert [found.plain for found in (met, *seen_after)] == [True] * 4
    reads = [shelf.reads["CustomResourceDefinition helmcharts.helm.cattle.io"] for shelf in (before, during, after)]
    assert reads == [1, 1, 0]
    del before.objects["HelmChart", "demo"]
    assert await owning.sweep(jobs, before) == []
