"""A headless Chromium, driven by the DevTools protocol over its WebSocket: what people see of a page, and what their keys do."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from times import START_S

from tenantry.testing import eventually

CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), "")
NEEDS_CHROMIUM = pytest.mark.skipif(not CHROMIUM, reason="needs Chromium: install chromium, then run `make whole ARGS=-k page`")
CONTRAST = """(() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (each) => {
    for (let at = each; at; at = at.parentElement) {
      const found = parse(getComputedStyle(at).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const bad = new Set();
  for (const each of document.body.querySelectorAll('*')) {
    if (![...each.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim())) continue;
    if (['SCRIPT', 'STYLE', 'NOSCRIPT'].includes(each.tagName)) continue;
    const [a, b] = [light(parse(getComputedStyle(each).color)), light(ground(each))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) bad.add(`${each.className || each.tagName}: ${each.textContent.slice(0, 30)}`);
  }
  return [...bad];
})()"""
"""The texts of a page that do not stand out from their ground as WCAG AA wants."""
PROBLEM_EVENTS = ("Runtime.exceptionThrown", "Log.entryAdded")


class Page:
    """One tab."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self.problems: list[Any] = []
        """What the browser complained of: exceptions of the script, and what its policy stopped."""
        self.requests: list[str] = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for message in self._socket:
            found = json.loads(message.data)
            if (waiting := self._answers.pop(found.get("id", 0), None)) is not None:
                waiting.set_result(found)
            elif found.get("method") in PROBLEM_EVENTS:
                self.problems.append(found["params"])
            elif found.get("method") == "Network.requestWillBeSent":
                self.requests.append(found["params"]["request"]["url"])

    async def ask(self, method: str, **parameters: Any) -> Any:
        """One command of the protocol."""
        number = next(self._numbers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        answer = await asyncio.wait_for(self._answers[number], START_S)
        assert "error" not in answer, answer
        return answer["result"]

    async def run(self, script: str) -> Any:
        """The value of an expression."""
        result = await self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def see(self, *, width: int, height: int = 900, dark: bool = False) -> None:
        """The size of the window, and the colours that its user likes."""
        await self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        await self.ask("Emulation.setEmulatedMedia", features=features)

    async def open(self, where: Path | str) -> int:
        """Open a file or address; the milliseconds from its beginning until it said that it is ready."""
        url = where if isinstance(where, str) else where.as_uri()
        await self.ask("Page.navigate", url=url)

        async def ready() -> Any:
            return await self.run(f"location.href === {json.dumps(url)} && document.documentElement?.dataset.ready || ''")

        return int(await eventually(ready, within=START_S, what="the page is ready"))

    async def press(self, key: str, times: int = 1) -> None:
        """A key, as the keyboard sends it."""
        codes = {
            "Tab": 9,
            "Enter": 13,
            " ": 32,
            "ArrowLeft": 37,
            "ArrowUp": 38,
            "ArrowRight": 39,
            "ArrowDown": 40,
            "Home": 36,
            "End": 35,
            "Escape": 27,
            "e": 69,
        }
        for _ in range(times):
            for kind in ("keyDown", "keyUp"):
                text = {"text": "\r" if key == "Enter" else key} if kind == "keyDown" and key in ("Enter", " ", "e") else {}
                await self.ask("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=codes[key], **text)

    async def type(self, text: str) -> None:
        """Letters into what has the focus."""
        await self.ask("Input.insertText", text=text)

    async def picture(self, path: Path, *, whole: bool = True) -> Path:
        """A screenshot."""
        taken = await self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(taken["data"]))
        return path

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        await self._socket.close()


async def shown(page: Page, script: str, holds: Any = bool) -> Any:
    """The value of an expression as soon as something holds for it."""
    return await eventually(lambda: page.run(script), holds, what=script)


async def search(page: Page, text: str, holds: Any = bool) -> str:
    """Type into the search of a map; what it says of what was found, as soon as something holds for that."""
    await page.run("document.getElementById('query').focus(); document.getElementById('query').value = ''")
    await page.type(text)
    return str(await shown(page, "document.getElementById('found').textContent", holds))


@contextlib.asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[Page]:
    """A browser with one tab, a profile of its own, and nothing of the network."""
    process = await asyncio.create_subprocess_exec(
        *(CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--force-color-profile=srgb"),
        *(f"--user-data-dir={folder / 'profile'}", "--remote-debugging-port=0", "about:blank"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "HOME": str(folder)},
        start_new_session=True,
    )
    try:
        port = await eventually(lambda: _port(folder / "profile" / "DevToolsActivePort"), within=START_S, what="Chromium listens")
        async with aiohttp.ClientSession(trust_env=False) as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as response:
                (tab, *_) = [each for each in await response.json() if each["type"] == "page"]
            page = Page(await session.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0))
            try:
                for domain in ("Page", "Runtime", "Log", "Network"):
                    await page.ask(f"{domain}.enable")
                yield page
            finally:
                await page.close()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _port(file: Path) -> str:
    return file.read_text().splitlines()[0] if file.exists() and file.read_text().strip() else ""
