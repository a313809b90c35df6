"""What came of tests: for people, for programs, and for the pipelines that read JUnit's XML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that was not as expected, with the line of the file that says so."""

    file: str
    line: int
    step: str
    said: str
    more: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """For people."""
        return [f"{self.file}:{self.line}: {self.said}", *(f"  {each}" for each in self.more)]


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one test."""

    file: str
    line: int
    name: str
    seconds: float
    failures: Sequence[Failure] = ()
    said: Sequence[str] = field(default_factory=list)
    """What functions and broker complained about meanwhile."""

    @property
    def passed(self) -> bool:
        """Whether all was as expected."""
        return not self.failures

    def document(self) -> dict[str, Any]:
        """For programs."""
        failures = [
            {"file": each.file, "line": each.line, "step": each.step, "said": each.said, "more": list(each.more)}
            for each in self.failures
        ]
        return {
            "test": self.name,
            "file": self.file,
            "line": self.line,
            "passed": self.passed,
            "seconds": round(self.seconds, 3),
            "failures": failures,
            "said": list(self.said),
        }

    def lines(self) -> list[str]:
        """What differed, for people."""
        found: list[str] = []
        step = ""
        for each in self.failures:
            if each.step != step:
                found.append(f"{each.step}:")
                step = each.step
            found += [f"  {line}" for line in each.lines()]
        if self.failures and self.said:
            found += ["meanwhile:", *(f"  {each}" for each in self.said)]
        return found


def junit(results: Sequence[Result], seconds: float) -> str:
    """The results as JUnit's XML: a suite for each file."""
    failed = sum(not each.passed for each in results)
    root = Element("testsuites", name="tenantry", tests=str(len(results)), failures=str(failed), time=f"{seconds:.3f}")
    for file in dict.fromkeys(each.file for each in results):
        inside = [each for each in results if each.file == file]
        suite = SubElement(
            root,
            "testsuite",
            name=_clean(file),
            tests=str(len(inside)),
            failures=str(sum(not each.passed for each in inside)),
            errors="0",
            skipped="0",
            time=f"{sum(each.seconds for each in inside):.3f}",
        )
        for each in inside:
            case = SubElement(
                suite,
                "testcase",
                name=_clean(each.name),
                classname=_clean(file),
                file=_clean(file),
                line=str(each.line),
                time=f"{each.seconds:.3f}",
            )
            if each.failures:
                first = each.failures[0]
                SubElement(case, "failure", type="difference", message=_clean(first.said)).text = _clean("\n".join(each.lines()))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _clean(text: str) -> str:
    """Without what XML cannot hold."""
    return _NO_XML.sub("?", text)
