"""Results of tests as JUnit's XML."""

from __future__ import annotations

from xml.etree import ElementTree

from tenantry.testing.cases.results import Failure, Result, junit


def test_pipelines_read_each_test_with_what_differed() -> None:
    """A suite for each file, a case for each test; a failure has its line, and what XML cannot hold is replaced."""
    failure = Failure("a.yaml", 7, "step 1, it joins", "Namespace a: x is '\x00<'; expected 'y'", ("more",))
    results = [Result("a.yaml", 1, "One & only", 1.5), Result("a.yaml", 5, "Two", 2.0, [failure], ["broker: 500"])]

    root = ElementTree.fromstring(junit([*results, Result("b.yaml", 1, "Three", 0.1)], 4.0))

    assert root.attrib == {"name": "tenantry", "tests": "3", "failures": "1", "time": "4.000"}
    assert [(each.get("name"), each.get("tests"), each.get("failures")) for each in root] == [
        ("a.yaml", "2", "1"),
        ("b.yaml", "1", "0"),
    ]
    cases = list(root.iter("testcase"))
    assert [(each.get("name"), each.get("file"), each.get("line")) for each in cases][:2] == [
        ("One & only", "a.yaml", "1"),
        ("Two", "a.yaml", "5"),
    ]
    (told,) = cases[1]
    assert told.get("message") == "Namespace a: x is '?<'; expected 'y'"
    assert (told.text or "").splitlines() == [
        "step 1, it joins:",
        "  a.yaml:7: Namespace a: x is '?<'; expected 'y'",
        "    more",
        "meanwhile:",
        "  broker: 500",
    ]
    assert list(cases[0]) == []
