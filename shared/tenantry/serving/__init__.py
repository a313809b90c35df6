"""The HTTP entry used by every function: CloudEvents in, verdicts out; configuration, logs, telemetry."""

from tenantry.serving.function import Function, Settings

__all__ = ["Function", "Settings"]
