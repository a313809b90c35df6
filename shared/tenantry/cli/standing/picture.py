"""A map as one SVG picture: a card for each owner with its namespaces, and what is in them as far as there is room.

It is for a report: what is too much for a picture is counted on the card, and the page and the tree have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from xml.sax.saxutils import escape

from tenantry.cli.standing.draw import node_text, summary
from tenantry.cli.standing.glyphs import UNICODE, cut, printable
from tenantry.model.kinds import NAMESPACE
from tenantry.model.map import Map, Node
from tenantry.model.map.nodes import GROUPS

WIDTH, COLUMNS, GAP, PAD = 1280, 3, 16, 12
LINE, HEAD = 18, 24
LETTERS_OF_LINE = 54
MANY = 300
"""Namespaces beyond which a card says only how much is in each."""
LINES_OF_NAMESPACE, LINES_OF_CARD = 8, 48

_TITLE = "Tenantry: who is where, and what is wrong"
_STYLE = """
  text { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1b1f24; white-space: pre; }
  .paper { fill: #fff; } .card { fill: #f6f8fa; stroke: #d0d7de; } .wrong { stroke: #a40e26; stroke-width: 2; }
  .title { font-size: 14px; font-weight: 600; } .head { font-size: 20px; font-weight: 600; }
  .soft { fill: #57606a; } .error { fill: #a40e26; font-weight: 600; } .warning { fill: #7d4e00; font-weight: 600; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .paper { fill: #0d1117; } .card { fill: #161b22; stroke: #3d444d; } .wrong { stroke: #ff9a92; }
    .soft { fill: #9ea7b3; } .error { fill: #ff9a92; } .warning { fill: #eac54f; }
  }
"""

Row = tuple[str, str]
"""A text, and its class."""


def picture_of(map_: Map, at: datetime) -> str:
    """The picture."""
    cards = [(node, list(_card(node, many=map_.namespaces > MANY))) for node in _owners(map_)]
    top = [
        (_TITLE, "head"),
        (summary(map_), ""),
        (f"As it was at {at:%Y-%m-%d %H:%M:%S} UTC", "soft"),
    ]
    if map_.unread:
        top.append(("NOT ALL OF THE CLUSTER: what could not be read is missing", "error"))
        top += [(f"{what}: {why}", "error") for what, why in sorted(map_.unread.items())]
    if map_.missing:
        top.append((f"OLDER INSTALLATION: the cluster does not serve {', '.join(map_.missing)}", "warning"))
    drawn = [_text(PAD, 30 + number * 22, cut(text, 160, UNICODE), kind) for number, (text, kind) in enumerate(top)]
    begin = 30 + len(top) * 22
    wide = (WIDTH - 2 * PAD - (COLUMNS - 1) * GAP) / COLUMNS
    bottoms = [float(begin)] * COLUMNS
    for node, rows in cards:
        column = bottoms.index(min(bottoms))
        x, y = PAD + column * (wide + GAP), bottoms[column]
        drawn.append(_drawn_card(node, rows, x, y, wide))
        bottoms[column] = y + HEAD + len(rows) * LINE + 2 * PAD + GAP
    height = int(max(bottoms)) + PAD
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
        f"<title>{_TITLE}</title><desc>{escape(summary(map_))}</desc><style>{_STYLE}</style>"
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>{"".join(drawn)}</svg>\n'
    )


def _owners(map_: Map) -> Iterator[Node]:
    """What has a card: projects, Paas and tenants each, and the other groups."""
    for group in map_.groups:
        if group.name in GROUPS.values():
            yield from group.children
        else:
            yield group


def _card(node: Node, *, many: bool) -> Iterator[Row]:
    rows = [*_marks(node, ""), *(row for child in node.children for row in _rows(child, many=many))]
    yield from rows[:LINES_OF_CARD]
    if len(rows) > LINES_OF_CARD:
        yield f"… and {len(rows) - LINES_OF_CARD} more lines", "soft"


def _rows(node: Node, depth: int = 0, *, many: bool) -> Iterator[Row]:
    indent = "  " * depth
    is_namespace = node.kind == NAMESPACE.kind
    inside = f" ({len(node.children)} inside)" if many and is_namespace and node.children else ""
    yield f"{indent}{node_text(node)}{inside}", "" if is_namespace else "soft"
    yield from _marks(node, indent)
    if many:
        return
    below = [row for child in node.children for row in _rows(child, depth + 1, many=many)]
    yield from below[:LINES_OF_NAMESPACE]
    if len(below) > LINES_OF_NAMESPACE:
        yield f"{indent}  … and {len(below) - LINES_OF_NAMESPACE} more", "soft"


def _marks(node: Node, indent: str) -> Iterator[Row]:
    for each in node.problems:
        yield f"{indent}{'⚠' if each.warns else '✗'} {each.reason}", "warning" if each.warns else "error"


def _drawn_card(node: Node, rows: list[Row], x: float, y: float, wide: float) -> str:
    wrong = any(not each.warns for below in node.walk() for each in below.problems)
    tall = HEAD + len(rows) * LINE + 2 * PAD
    box = f'<rect class="card{" wrong" if wrong else ""}" x="{x:.0f}" y="{y:.0f}" width="{wide:.0f}" height="{tall}" rx="6"/>'
    lines = [_text(x + PAD, y + PAD + 12, cut(node.title, 44, UNICODE), "title")]
    lines += [
        _text(x + PAD, y + PAD + HEAD + 10 + number * LINE, cut(text, LETTERS_OF_LINE, UNICODE), kind)
        for number, (text, kind) in enumerate(rows)
    ]
    about = f"{node.title}: {node.note}" if node.note else node.title
    return f"<g><title>{escape(printable(about, UNICODE))}</title>{box}{''.join(lines)}</g>"


def _text(x: float, y: float, text: str, kind: str) -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.0f}" y="{y:.0f}"{named}>{escape(printable(text, UNICODE))}</text>'
