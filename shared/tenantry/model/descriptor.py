"""What a function is, in one value: all that others have to know of it.

A function is one for people: its name is in logs, field managers, dead letters and events.  Where its units have duties of very
different strength they are deployed as one Service each, so that who steals the token of one has not the rights of the others
(decision 23).  A process knows its duty by `DUTY_VARIABLE`; without it, it has all duties of its function.
"""

from __future__ import annotations

from dataclasses import dataclass

DUTY_VARIABLE = "TENANTRY_DUTY"


@dataclass(frozen=True, slots=True)
class Service:
    """What runs apart: its name is that of its identity, its fence and its folder in ``knative/``."""

    name: str
    function: str
    duty: str = ""
    """Empty where the function has only one."""
    rights_folder: str = ""
    """In ``knative/``, where the rights come only with the system that needs them."""

    @property
    def rights_file(self) -> str:
        """Where the rights of its identity are."""
        return f"knative/{self.rights_folder or self.name}/rights.yaml"


@dataclass(frozen=True, slots=True)
class Command:
    """A command of ``tenantry`` that comes with a function; ``module`` has it under its name, with underscores."""

    name: str
    module: str
    about: str


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A function: its Services, of which the first is called like the function, and its commands."""

    services: tuple[Service, ...]
    commands: tuple[Command, ...] = ()

    @property
    def name(self) -> str:
        """The function's."""
        return self.services[0].function

    @property
    def duties(self) -> tuple[str, ...]:
        """None where it has only one."""
        return tuple(each.duty for each in self.services if each.duty)

    def service_of(self, duty: str) -> Service:
        """The Service of a duty; of all duties together the one that is called like the function.

        Raises:
            LookupError: the function has no such duty.
        """
        if not duty:
            return self.services[0]
        found = [each for each in self.services if each.duty == duty]
        if not found:
            raise LookupError(duty)
        return found[0]
