"""The page of the console: that of `tenantry map` with what follows the cluster, and a policy that lets it do nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

from tenantry.cli.standing.page import More, filled

_HERE = "tenantry.kit.console"
_ELEMENT = {
    "script-src": re.compile(r"<script>(.*?)</script>", re.DOTALL),
    "style-src": re.compile(r"<style>(.*?)</style>", re.DOTALL),
}


@cache
def _more() -> More:
    def text(name: str) -> str:
        return files(_HERE).joinpath(name).read_text(encoding="utf-8")

    head, _, sections = text("console.html").partition("<!-- sections -->\n")
    bare = More(style=text("console.css"), head=head, sections=sections, script=text("console.js"))
    return More(_policy(filled("{}", bare)), bare.style, bare.head, bare.sections, bare.script)


def _policy(markup: str) -> str:
    """Only this script and this style, by their digests, and requests to where the page came from."""
    allowed = [f"{name} {' '.join(map(_digest, found.findall(markup)))}" for name, found in _ELEMENT.items()]
    return "; ".join(["default-src 'none'", *allowed, "connect-src 'self'", "base-uri 'none'", "form-action 'none'"])


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def policy() -> str:
    """The policy as a header."""
    return f"{_more().policy}; frame-ancestors 'none'"


def page(data: str) -> str:
    """The page with a map."""
    return filled(data, _more())
