"""A server's TLS on loopback, with an authority of its own that lasts a day: whoever trusts it trusts nothing else."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta

import trustme


def loopback_context() -> tuple[ssl.SSLContext, str]:
    """A server's TLS context for 127.0.0.1, and the certificate (PEM) that its clients must trust."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    expiry = datetime.now(UTC) + timedelta(days=1)
    authority.issue_cert("127.0.0.1", not_after=expiry).configure_cert(context)
    context.set_alpn_protocols(["http/1.1"])
    return context, authority.cert_pem.bytes().decode()
