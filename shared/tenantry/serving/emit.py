"""Sending events to the broker that ``K_SINK`` names: the second level of a fan-out."""

from __future__ import annotations

import aiohttp

from tenantry.api.errors import TransientError
from tenantry.model.event import Event
from tenantry.serving.cloudevents import encode_binary

TIMEOUT_S = 15.0


class Emitter:
    """Posts events to one sink."""

    def __init__(self, sink: str) -> None:
        self._sink = sink
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S), trust_env=False)

    async def emit(self, event: Event) -> None:
        """Post one event.

        Raises:
            TransientError: the sink did not take it; the caller's event is tried again as a whole.
        """
        headers, body = encode_binary(event)
        try:
            async with self._session.post(
                self._sink, data=body, headers=headers, skip_auto_headers=("Content-Type",)
            ) as response:
                if response.status >= 300:
                    raise TransientError(f"the broker answered {response.status}")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise TransientError(f"the broker cannot be reached: {type(error).__name__}") from error

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()
