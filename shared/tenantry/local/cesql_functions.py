"""Casts, arithmetic and built-in functions of CESQL 1.0, over closures that read an event's attributes.

Invariant: whatever goes wrong here is an `EvaluationError`, which the filter turns into "no match"; the zero values that
CESQL returns beside an error can therefore never be seen, and are not made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Value = str | int | bool
Evaluate = Callable[[Mapping[str, str]], Value]

CAST_NAMES: dict[type, str] = {str: "String", int: "Integer", bool: "Boolean"}
_INTEGER = re.compile(r"[+-]?[0-9]{1,12}")


class EvaluationError(Exception):
    """This event cannot be judged by this expression: no match."""


@dataclass(frozen=True, slots=True)
class Function:
    """One built-in: the types of its parameters, how many may be left out, whether the last one repeats.

    ``static`` replaces ``apply`` where the argument must not be cast: it gets the argument's type and closure.
    """

    returns: type
    takes: tuple[type, ...]
    apply: Callable[..., Value] = bool
    optional: int = 0
    variadic: bool = False
    static: Callable[[type, Evaluate, Mapping[str, str]], Value] | None = None

    def parameters(self, count: int) -> tuple[type, ...] | None:
        """The types for so many arguments; None when it does not take so many."""
        if self.variadic and count >= len(self.takes) - 1:
            return self.takes[:-1] + self.takes[-1:] * (count - len(self.takes) + 1)
        return self.takes[:count] if len(self.takes) - self.optional <= count <= len(self.takes) else None


def in_range(value: int) -> int:
    """The value, if 32 bits hold it."""
    if not -(2**31) <= value < 2**31:
        raise EvaluationError("integer overflow")
    return value


def divide(x: int, y: int) -> int:
    """Quotient, rounded towards zero."""
    if y == 0:
        raise EvaluationError("division by zero")
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def remainder(x: int, y: int) -> int:
    """Remainder with the sign of ``x``."""
    return x - y * divide(x, y)


def to_integer(text: str) -> int:
    """A String as an Integer: a sign and decimal digits, within 32 bits."""
    if not _INTEGER.fullmatch(text):
        raise EvaluationError("not an integer")
    return in_range(int(text))


def to_boolean(text: str) -> bool:
    """A String as a Boolean: ``true`` or ``false`` in any case."""
    match text.lower():
        case "true":
            return True
        case "false":
            return False
    raise EvaluationError("not a boolean")


def _to_string(value: int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def cast(given: type, wanted: type, evaluate: Callable[[Mapping[str, str]], Any]) -> Evaluate:
    """The same closure, its value cast as CESQL 3.7 says."""
    if given is wanted:
        return evaluate
    convert: Callable[[Any], Value]  # the type of what it gets is `given`, by construction
    if wanted is str:
        convert = _to_string
    elif given is str:
        convert = to_integer if wanted is int else to_boolean
    else:
        convert = wanted  # between Integer and Boolean: 1 is true, 0 is false, everything else is true
    return lambda attributes: convert(evaluate(attributes))


def _can_cast(wanted: type, given: type, evaluate: Evaluate, attributes: Mapping[str, str]) -> bool:
    value = evaluate(attributes)  # a missing attribute errs, also here
    try:
        cast(given, wanted, lambda _: value)(attributes)
    except EvaluationError:
        return False
    return True


def _left(text: str, count: int) -> str:
    if count < 0:
        raise EvaluationError("negative length")
    return text[:count]


def _right(text: str, count: int) -> str:
    if count < 0:
        raise EvaluationError("negative length")
    return text[max(0, len(text) - count) :]


def _substring(text: str, position: int, length: int | None = None) -> str:
    if abs(position) > len(text) or (length is not None and length < 0):
        raise EvaluationError("out of range")
    if position == 0:
        return ""
    start = position - 1 if position > 0 else len(text) + position
    return text[start:] if length is None else text[start : start + length]


def _absolute(value: int) -> int:
    return in_range(abs(value))


FUNCTIONS: dict[str, Function] = {
    "LENGTH": Function(int, (str,), len),
    "CONCAT": Function(str, (str,), lambda *texts: "".join(texts), variadic=True),
    "CONCAT_WS": Function(str, (str, str), lambda between, *texts: between.join(texts), variadic=True),
    "LOWER": Function(str, (str,), str.lower),
    "UPPER": Function(str, (str,), str.upper),
    "TRIM": Function(str, (str,), str.strip),
    "LEFT": Function(str, (str, int), _left),
    "RIGHT": Function(str, (str, int), _right),
    "SUBSTRING": Function(str, (str, int, int), _substring, optional=1),
    "ABS": Function(int, (int,), _absolute),
    "INT": Function(int, (int,), int),
    "BOOL": Function(bool, (bool,), bool),
    "STRING": Function(str, (str,), str),
    "IS_INT": Function(bool, (str,), static=lambda *given: _can_cast(int, *given)),
    "IS_BOOL": Function(bool, (str,), static=lambda *given: _can_cast(bool, *given)),
}
