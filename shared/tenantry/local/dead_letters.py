"""Where events end that no subscriber took: an HTTP sink, which is how everything runs, or a file with one JSON line each.

A dead letter is the event itself plus three extensions, as the brokers of Knative write them: ``knativeerrordest`` (who
failed), ``knativeerrorcode`` (the last status; 500 when there was no answer) and ``knativeerrordata`` (base64 of the
answer's body, cut so that it has at most 1024 characters).  The file is for tests that look at whole events: it grows, and a line
of it is the structured form with the data.  It is readable by its owner only: events can hold Secrets.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tenantry.local.delivery import ERROR_BODY_LIMIT, NO_ANSWER, delay, is_retried, is_success
from tenantry.local.sinks import NoAnswer, Poster
from tenantry.local.specs import DeliverySpec
from tenantry.model.event import Event
from tenantry.serving.cloudevents import encode_binary, encode_structured


def dead_letter(event: Event, destination: str, status: int, body: bytes) -> Event:
    """The event with the reason of its failure."""
    reason = {"knativeerrordest": destination, "knativeerrorcode": str(500 if status == NO_ANSWER else status)}
    if body:
        reason["knativeerrordata"] = base64.b64encode(body[:ERROR_BODY_LIMIT]).decode("ascii")
    return replace(event, extensions={**event.extensions, **reason})


class DeadLetters:
    """One dead-letter sink: a ``file:`` address or an HTTP one."""

    def __init__(self, address: str, poster: Poster) -> None:
        scheme, _, path, *_ = urlsplit(address)
        self.address = address
        self.path = Path(unquote(path)) if scheme == "file" else None
        self._poster = poster
        self._lock = asyncio.Lock()

    async def take(self, letter: Event, spec: DeliverySpec, headers: Mapping[str, str]) -> str:
        """Store or send the dead letter; returns why that failed, or an empty string.

        HTTP is tried as often, and with the same delays, as the delivery that failed.
        """
        if self.path is not None:
            try:
                async with self._lock:
                    await asyncio.to_thread(_append, self.path, encode_structured(letter)[1] + b"\n")
            except OSError as error:
                return f"cannot write {self.path}: {error.strerror}"
            return ""
        encoded, body = encode_binary(letter)
        encoded.update(headers)
        problem = ""
        for retry in range(spec.retry + 1):
            retry_after = None
            try:
                answer = await self._poster.post(self.address, encoded, body, spec.timeout)
                status, problem = answer.status, f"{self.address} answered {answer.status}"
                retry_after = answer.headers.get("Retry-After")
            except NoAnswer as error:
                status, problem = NO_ANSWER, str(error)
            if is_success(status):
                return ""
            if not is_retried(status):
                break
            if retry < spec.retry:
                await asyncio.sleep(delay(spec, retry, status, retry_after))
        return problem


def _append(path: Path, line: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "ab") as file:
        file.write(line)
