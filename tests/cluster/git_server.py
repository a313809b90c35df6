"""Git repositories over HTTP on loopback, for reading: Git's own CGI program behind a small server."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import aiohttp
import yaml
from aiohttp import web

from tenantry.model.kinds import Object

BRANCH = "main"
_ANSWER_S = 30.0
_AUTHOR = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "t"), ("EMAIL", "t@t"))}
_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **_AUTHOR,
}
"""Nothing of whoever runs the tests."""


class GitServer:
    """Serves what is committed into repositories below a folder, from ``async with`` to its end.

    With ``credentials`` it asks for them, and with ``context`` it speaks TLS.
    """

    def __init__(
        self, folder: Path, *, credentials: tuple[str, str] | None = None, context: ssl.SSLContext | None = None
    ) -> None:
        self._folder = folder
        self._credentials = aiohttp.encode_basic_auth(*credentials) if credentials else None
        self._context = context
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._context).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    def url(self, repository: str) -> str:
        """Where a repository is fetched from."""
        assert self._runner is not None
        scheme = "https" if self._context else "http"
        return f"{scheme}://127.0.0.1:{self._runner.addresses[0][1]}/{repository}"

    async def commit(self, repository: str, files: Mapping[str, Sequence[Object]]) -> str:
        """Make a commit with these files of YAML documents and no others, in a new repository if there is none; its hash."""
        place = self._folder / repository
        if not place.exists():
            place.mkdir(parents=True)
            await _git(place, "init", "--quiet", f"--initial-branch={BRANCH}")
        for each in place.iterdir():
            if each.name != ".git":
                shutil.rmtree(each) if each.is_dir() else each.unlink()
        for name, documents in files.items():
            file = place / name
            file.parent.mkdir(parents=True, exist_ok=True)
            plain = json.loads(json.dumps(documents))  # what is there twice is no alias
            file.write_text(yaml.safe_dump_all(plain), encoding="utf-8")
        await _git(place, "add", "--all")
        await _git(place, "commit", "--quiet", "--allow-empty", "--message=change")
        return (await _git(place, "rev-parse", "HEAD")).decode().strip()

    async def _serve(self, request: web.Request) -> web.Response:
        if self._credentials and request.headers.get("Authorization") != self._credentials:
            return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="git"'})
        environment = {
            **_ENVIRONMENT,
            "GIT_PROJECT_ROOT": str(self._folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": request.method,
            "PATH_INFO": request.path,
            "QUERY_STRING": request.query_string,
            "CONTENT_TYPE": request.headers.get("Content-Type", ""),
        }
        answer = await _git(self._folder, "http-backend", environment=environment, body=await request.read())
        head, _, body = answer.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().splitlines())
        status = int(fields.pop("Status", "200").split()[0])
        return web.Response(status=status, headers=fields, body=body)


async def _git(folder: Path, *arguments: str, environment: Mapping[str, str] = _ENVIRONMENT, body: bytes = b"") -> bytes:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        "git", *arguments, cwd=folder, env=dict(environment), stdin=pipe, stdout=pipe, stderr=pipe
    )
    try:
        answer, said = await asyncio.wait_for(process.communicate(body), _ANSWER_S)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, said.decode()
    return answer
