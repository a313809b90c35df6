"""Commands that take long say how far they are."""

from __future__ import annotations

import asyncio

import pytest

from tenantry.cli.progress import ReadProgress
from tenantry.testing import eventually


async def test_what_takes_long_is_told_with_what_was_read(capsys: pytest.CaptureFixture[str]) -> None:
    """The number grows; stdout stays for the result."""
    printed = ""

    def told(text: str) -> bool:
        nonlocal printed
        captured = capsys.readouterr()
        assert captured.out == ""
        printed += captured.err
        return text in printed

    async with ReadProgress("reading", every_s=0.01) as progress:
        keep = progress.counting(lambda each: {"kept": each["name"]})
        assert [keep({"name": each}) for each in "ab"] == [{"kept": "a"}, {"kept": "b"}]
        await eventually(lambda: asyncio.sleep(0, told("tenantry: reading, 2 objects so far\n")), what="told")
        for _ in range(1000):
            keep({"name": "c"})
        await eventually(lambda: asyncio.sleep(0, told("tenantry: reading, 1,002 objects so far\n")), what="told again")


async def test_what_is_over_at_once_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Also when it fails."""
    with pytest.raises(RuntimeError):
        async with ReadProgress("reading"):
            raise RuntimeError
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
