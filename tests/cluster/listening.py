"""The local source, and a sink that keeps what it tells."""

from __future__ import annotations

from typing import Any

from times import until

from tenantry.api import Api
from tenantry.local.source import ApiServerSource
from tenantry.local.specs import SourceSpec
from tenantry.model.event import Event
from tenantry.model.kinds import CONFIG_MAP, Object
from tenantry.testing.objects import obj

CONFIG_MAPS = {"apiVersion": "v1", "kind": "ConfigMap"}


class Recorder:
    """A sink that keeps what it gets; ``answers`` are given first, then 202."""

    def __init__(self, *answers: int | Exception, ignored: tuple[str, ...] = ("kube-root-ca.crt",)) -> None:
        self.events: list[Event] = []
        self.tried: list[str] = []
        self.answers = list(answers)
        self.ignored = ignored

    async def __call__(self, event: Event) -> int:
        if event.extensions["name"] in self.ignored:
            return 202
        self.tried.append(event.id)
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        self.events.append(event)
        return 202

    def told(self, name: str = "") -> list[tuple[str, str]]:
        """Verb and name of each event, of one name if given."""
        told = [(event.type.rpartition(".")[2], event.extensions["name"]) for event in self.events]
        return [each for each in told if not name or each[1] == name]

    async def hears(self, verb: str, name: str, times: int = 1) -> Event:
        """Wait for an event."""
        await until(lambda: self.told(name).count((verb, name)) >= times, what=f"{verb} of {name}; told: {self.told()}")
        return [e for e in self.events if e.type.endswith(verb) and e.extensions["name"] == name][-1]


def source_of(api: Api, sink: Recorder, *resources: dict[str, Any], say: Any = None, **spec: Any) -> ApiServerSource:
    """A source that tells a sink of these resources."""
    document = {"name": "source", "namespace": "default", "sink": {"uri": "http://unused"}, "resources": list(resources)}
    options = {"say": say} if say else {}
    return ApiServerSource(api, SourceSpec.model_validate({**document, **spec}), sink, **options)


def config_map(name: str, namespace: str, labels: dict[str, str] | None = None, **data: str) -> Object:
    """A ConfigMap with these labels and data."""
    return obj(CONFIG_MAP, name, namespace, labels=labels or {}, data=data)
