"""A map as one HTML page that needs nothing else: data, style and script are in it.

The page draws only what is open, so ten thousand namespaces are as fast as ten.  Texts that repeat are written once.  Whatever
the cluster says is text: it becomes no markup, neither here nor in the script.  `tenantry console` serves the same page with
more in it (`More`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import Any

from tenantry.cli.standing.draw import concerns, summary
from tenantry.model.map import Map, Node, ToldProblem

_HERE = "tenantry.cli.standing"
_PLACE = re.compile("@([A-Z]+)@")


@dataclass(frozen=True, slots=True)
class More:
    """What a page has besides a map: its policy, style, markup before the search and among the sections, and script."""

    policy: str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
    style: str = ""
    head: str = ""
    sections: str = ""
    script: str = ""


class _Table:
    """Texts, each with its number."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))


def page_of(map_: Map, at: datetime) -> str:
    """The page."""
    return filled(data_text(page_data(map_, at)), More())


def filled(data: str, more: More) -> str:
    """The page around the text of its data."""
    template = files(_HERE).joinpath("page.html").read_text(encoding="utf-8")
    script = files(_HERE).joinpath("page.js").read_text(encoding="utf-8") + more.script
    parts = {
        "POLICY": more.policy,
        "STYLE": more.style,
        "HEAD": more.head,
        "SECTIONS": more.sections,
        "DATA": data,
        "SCRIPT": script,
    }
    return _PLACE.sub(lambda found: parts[found[1]], template)


def data_text(data: dict[str, Any]) -> str:
    """Data as JSON that can stand in an element of a page: nothing in it ends the element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def page_data(map_: Map, at: datetime) -> dict[str, Any]:
    """A map as the script of the page reads it."""
    texts, subjects = _Table(), _Table()
    texts.number("")  # so that 0 is nothing
    numbers = {id(each): number for number, each in enumerate(map_.problems)}
    groups = [_node(each, texts, subjects, numbers) for each in map_.groups]
    return {
        "at": f"{at:%Y-%m-%d %H:%M:%S} UTC",
        "summary": summary(map_),
        "unread": sorted(map_.unread.items()),
        "missing": list(map_.missing),
        "problems": [_problem(each, at) for each in map_.problems],
        "groups": groups,
        "texts": list(texts.texts),
        "subjects": list(subjects.texts),
    }


def _problem(problem: ToldProblem, at: datetime) -> dict[str, Any]:
    return {
        "about": problem.about,
        "reason": problem.reason,
        "told": problem.told,
        "fix": problem.fix,
        "warns": problem.warns,
        "concerns": concerns(problem, at),
    }


def _node(node: Node, texts: _Table, subjects: _Table, numbers: dict[int, int]) -> list[Any]:
    """Kind, name, namespace, note, role, by, subjects, problems, children, as the script reads them, without empty ends."""
    made: list[Any] = [
        texts.number(node.kind),
        node.name,
        node.namespace or 0,
        node.note or 0,
        texts.number(node.role),
        texts.number(node.by),
        [subjects.number(each) for each in node.subjects] or 0,
        [numbers[id(each)] for each in node.problems] or 0,
        [_node(each, texts, subjects, numbers) for each in node.children] or 0,
    ]
    while made[-1] == 0:
        made.pop()
    return made
