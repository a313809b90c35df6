"""The API adapter in front of a server that is busy, slow or forgetful: it waits, gives up in time, or begins anew."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from aiohttp import web

from tenantry.api import Api
from tenantry.api.errors import Expired, TooManyRequests, TransientError
from tenantry.model.kinds import NAMESPACE, Object


class Scripted:
    """An HTTP server that answers from a script: what a busy or dying server does on the wire."""

    def __init__(self) -> None:
        self.answers: list[web.Response | None] = []
        self.seen = 0

    async def handle(self, request: web.BaseRequest) -> web.Response:
        self.seen += 1
        answer = self.answers.pop(0) if self.answers else web.json_response({"metadata": {"name": "x"}})
        if answer is None:
            await asyncio.sleep(5)
            return web.Response()
        return answer


@pytest_asyncio.fixture(loop_scope="session")
async def scripted(tmp_path: Path) -> AsyncIterator[tuple[Scripted, Path]]:
    script = Scripted()
    runner = web.ServerRunner(web.Server(script.handle))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    kubeconfig = tmp_path / "scripted"
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    document = {"clusters": [cluster], "contexts": [context], "users": [{"name": "u", "user": {}}], "current-context": "x"}
    kubeconfig.write_text(yaml.safe_dump(document))
    yield script, kubeconfig
    await runner.cleanup()


def _too_many(seconds: int | str) -> web.Response:
    return web.Response(status=429, text=json.dumps({"message": "busy"}), headers={"Retry-After": str(seconds)})


async def test_429_is_waited_for(scripted: tuple[Scripted, Path]) -> None:
    """A 429 is answered by waiting as long as asked, and then by asking again; an endless one is an error."""
    script, kubeconfig = scripted
    async with await Api.connect(field_manager="tests-api", kubeconfig=kubeconfig) as client:
        script.answers = [_too_many(0), _too_many(1)]
        assert await client.get(NAMESPACE, "x") == {"metadata": {"name": "x"}}
        assert script.seen == 3
        script.answers = [_too_many(60)]
        with pytest.raises(TooManyRequests) as caught:
            await client.get(NAMESPACE, "x")
        assert caught.value.retry_after == 60
        script.answers = [_too_many(90)]
        with pytest.raises(TooManyRequests) as caught:
            async for _ in client.watch(NAMESPACE, resource_version="1"):
                pass
        assert caught.value.retry_after == 90
        script.answers = [_too_many(format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True))]
        with pytest.raises(TooManyRequests) as caught:
            await client.get(NAMESPACE, "x")
        assert 30 < caught.value.retry_after <= 90


async def test_every_request_has_a_timeout(scripted: tuple[Scripted, Path]) -> None:
    """A server that does not answer, and one that answers nonsense, are transient errors."""
    script, kubeconfig = scripted
    async with await Api.connect(field_manager="tests-api", kubeconfig=kubeconfig, timeout_s=0.2) as client:
        script.answers = [None]
        with pytest.raises(TransientError, match="timed out"):
            await client.get(NAMESPACE, "x")
        script.answers = [web.Response(status=502, text="<html>bad gateway</html>")]
        with pytest.raises(TransientError, match="bad gateway"):
            await client.get(NAMESPACE, "x")


async def test_an_expired_version_is_told(scripted: tuple[Scripted, Path]) -> None:
    """A version that is too old is Expired, as an answer and inside a watch; a list begins anew once."""
    script, kubeconfig = scripted
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    page: Object = {"metadata": {"resourceVersion": "7", "continue": "more"}, "items": []}
    async with await Api.connect(field_manager="tests-api", kubeconfig=kubeconfig) as client:
        script.answers = [web.json_response({"type": "ERROR", "object": gone})]
        with pytest.raises(Expired):
            async for _ in client.watch(NAMESPACE, resource_version="1"):
                pass
        last = {"metadata": {"resourceVersion": "9"}, "items": [{"metadata": {"name": "x"}}]}
        script.answers = [web.json_response(page), web.json_response(gone, status=410), web.json_response(last)]
        assert (await client.list(NAMESPACE)).resource_version == "9"


async def test_concurrency_is_bounded(scripted: tuple[Scripted, Path]) -> None:
    """No more requests are in flight than allowed."""
    script, kubeconfig = scripted
    script.answers = [None, None, None]
    async with await Api.connect(field_manager="tests-api", kubeconfig=kubeconfig, concurrency=2, timeout_s=0.3) as client:
        results = await asyncio.gather(*(client.get(NAMESPACE, "x") for _ in range(4)), return_exceptions=True)

    assert [isinstance(result, TransientError) for result in results[:2]] == [True, True]
    assert script.seen == 4
