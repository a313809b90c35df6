"""An API server in tests that only read: it has a few objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from engine_units import Stub

from tenantry.api import Api, Keep, Listing
from tenantry.engine.reader import Reader
from tenantry.model.kinds import Key, Kind, Object, key_of, labels_of


class Served(Stub):
    """Finds its objects by name, and lists them by namespace, label and name; notes what is read by name."""

    def __init__(self, *objects: Object) -> None:
        self.objects = {key_of(each): each for each in objects}
        self.asked: list[Key] = []

    @property
    def api(self) -> Api:
        """This, in place of a client."""
        return cast(Api, self)

    def reader(self, causes: Iterable[Key] = ()) -> Reader:
        """A reader of its own for each run."""
        return Reader(self.api, causes)

    def found(self, key: Key) -> Object | None:
        """What a read finds under a key."""
        return self.objects.get(key)

    async def is_foreign(self, kind: Kind) -> bool:
        """Its CRDs are ours."""
        del kind
        return False

    async def get(self, kind: Kind, name: str, namespace: str = "", *, whole: bool = False) -> Object | None:
        del whole
        self.asked.append(Key(kind.api_version, kind.kind, namespace, name))
        return self.found(self.asked[-1])

    async def list(
        self,
        kind: Kind,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        *,
        keep: Keep | None = None,
        **_: Any,
    ) -> Listing:
        wanted = [label.partition("=") for label in label_selector.split(",") if label]
        name = field_selector.removeprefix("metadata.name=")
        found = [
            each
            for key, obj in self.objects.items()
            if key.kind == kind.kind
            and namespace in ("", key.namespace)
            and name in ("", key.name)
            and all(label in labels_of(obj) and value in ("", labels_of(obj)[label]) for label, _, value in wanted)
            and (each := self.found(key)) is not None
        ]
        return Listing([keep(each) for each in found] if keep else found, self.version)

    @property
    def version(self) -> str:
        """The resourceVersion of its lists: that of what was written last."""
        versions = (str(each["metadata"].get("resourceVersion", "")) for each in self.objects.values())
        return str(max((int(each) for each in versions if each.isdecimal()), default=1))
