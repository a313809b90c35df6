"""The kit that our tests use, and that yours can: a real control plane, functions under their own identity.

``tenantry.testing.plugin`` is a pytest plugin (an entry point: installing tenantry is enough).
"""

from tenantry.testing.awaiting import eventually

__all__ = ["eventually"]
