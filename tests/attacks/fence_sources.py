"""What the thief tries who has the identity that makes the AccessIndex."""

from __future__ import annotations

from typing import Any

from fence_capabilities import TAKES_ALONG
from thieves import Attack, Theft, apply, create, delete, patch, replace

from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT, SHOWN_MARK, SOURCE_GRANT, SOURCES_SHOWN, TENANCY_PROFILE
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, Object
from tenantry.testing.objects import obj

HOME = "fence-sources"
MARKS = {"app.kubernetes.io/part-of": "tenantry", "app.kubernetes.io/name": "scope-binding"}
ENTRIES = {"complete": True, "read": {"GitRepository/a/b": "team=two"}}
TWO = {"namespaceSelectors": [{"matchLabels": {"team": "two"}}]}
GRANT = obj(SOURCE_GRANT, "g", HOME, spec={"sourceRef": {"kind": "Bucket", "name": "b"}, "accessFrom": TWO})


def _index(**metadata: Any) -> Object:
    return obj(ACCESS_INDEX, DEFAULT, metadata=metadata, spec=ENTRIES)


def _list(name: str = SOURCES_SHOWN, **metadata: Any) -> Object:
    return obj(CONFIG_MAP, name, HOME, metadata=metadata, data={"read": "GitRepository/a/b", "write": ""})


THEFT = Theft(
    function="scope-binding-sources",
    check="a-43",
    scene=[
        (NAMESPACE, obj(NAMESPACE, HOME)),
        (SOURCE_GRANT, GRANT),
        (ACCESS_INDEX, obj(ACCESS_INDEX, DEFAULT, spec={})),
        (TENANCY_PROFILE, obj(TENANCY_PROFILE, DEFAULT)),
        (CONFIG_MAP, _list()),
        (CONFIG_MAP, _list("settings")),
    ],
    needs=[
        replace(ACCESS_INDEX, _index()),
        apply(ACCESS_INDEX, obj(ACCESS_INDEX, DEFAULT, status={}), "status"),
        apply(SOURCE_GRANT, obj(SOURCE_GRANT, "g", HOME, status={}), "status"),
        apply(CONFIG_MAP, _list(labels={SHOWN_MARK: "true"})),
        delete(CONFIG_MAP, SOURCES_SHOWN, HOME),
    ],
    attacks=[
        Attack("the end of the index", delete(ACCESS_INDEX, DEFAULT), "cannot"),
        Attack("a grant of its own", create(SOURCE_GRANT, {**GRANT, "metadata": {"name": "mine", "namespace": HOME}}), "cannot"),
        Attack("a wider grant", patch(SOURCE_GRANT, "g", HOME, ("add", "/spec/access", ["Read", "Write"])), "cannot"),
        Attack("the end of a grant", delete(SOURCE_GRANT, "g", HOME), "cannot"),
        Attack("another profile", patch(TENANCY_PROFILE, DEFAULT, "", ("add", "/spec/mode", "Audit")), "cannot"),
        Attack("a namespace", create(NAMESPACE, obj(NAMESPACE, "fence-mine")), "cannot"),
        Attack("another ConfigMap", apply(CONFIG_MAP, _list("settings")), "cannot"),
        Attack("a ConfigMap of its own", create(CONFIG_MAP, _list("mine")), "cannot"),
        Attack("the end of another ConfigMap", delete(CONFIG_MAP, "settings", HOME), "cannot"),
        Attack("further labels of a list", apply(CONFIG_MAP, _list(labels={"team": "x"})), "may not write the labels team"),
        Attack("further labels", create(ACCESS_INDEX, _index(labels={**MARKS, "team": "x"})), "may not write the labels team"),
        Attack("other marks", replace(ACCESS_INDEX, _index(labels=MARKS)), "may not write the labels app.kubernetes.io"),
        Attack("annotations", replace(ACCESS_INDEX, _index(annotations={"team": "x"})), "may not write the annotations team"),
        Attack(
            "a finalizer that holds the index",
            replace(ACCESS_INDEX, _index(finalizers=["example.com/held"])),
            "may not write the finalizers example.com/held",
        ),
        Attack(
            "an owner that takes the index along",
            replace(ACCESS_INDEX, _index(ownerReferences=[TAKES_ALONG])),
            "nobody's property",
        ),
    ],
)
