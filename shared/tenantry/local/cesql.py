"""CloudEvents SQL (CESQL 1.0) as a filter: text in, predicate over context attributes out.

The text is parsed once, by a LALR grammar of the ``lark`` library (imported only then), and compiled to closures whose
types are known: an attribute is a String, every operator and function says what it takes and gives.  So casts are
chosen at load, and what can never match is refused there, with its line and column: syntax, unknown functions, a wrong
number of arguments, a result that is no Boolean, an integer beyond 32 bits.

Invariant: an expression that errs at run time (missing attribute, failed cast, division by zero, overflow, argument
out of range) is no match, as CESQL 3.2 and its fail-fast mode say for filters.  ``AND`` and ``OR`` look at the right
side only when they must, so ``EXISTS a AND a = 'x'`` never errs.

What is supported: the whole grammar of CESQL 1.0 and its functions ``LENGTH CONCAT CONCAT_WS LOWER UPPER TRIM LEFT
RIGHT SUBSTRING ABS IS_BOOL IS_INT BOOL INT STRING``, keywords, functions and attributes in any case.  From high to low:
``NOT`` and unary ``-``; ``LIKE``, ``IN``; ``* / %``; ``+ -``; comparisons; ``AND OR XOR``, which are equal and bind to
the right as in the Go SDK that Knative uses: parenthesise mixed ones.  Not supported: functions of the user's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from operator import eq, ge, gt, le, lt, ne
from typing import TYPE_CHECKING, Any, NamedTuple

from tenantry.local.cesql_functions import (
    CAST_NAMES,
    FUNCTIONS,
    Evaluate,
    EvaluationError,
    Value,
    cast,
    divide,
    in_range,
    remainder,
)

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

Attributes = Mapping[str, str]

GRAMMAR = r"""
?start: logic
?logic: comparison | comparison LOGIC logic                           -> logical
?comparison: sum | comparison COMPARE sum                             -> compare
?sum: product | sum (PLUS | MINUS) product                            -> arithmetic
?product: match | product (STAR | SLASH | PERCENT) match              -> arithmetic
?match: unary
    | match LIKE STRING                                               -> like
    | match NOT LIKE STRING                                           -> not_like
    | match IN "(" logic ("," logic)* ")"                             -> in
    | match NOT IN "(" logic ("," logic)* ")"                         -> not_in
?unary: atom | NOT unary                                              -> not
    | MINUS unary                                                     -> negative
?atom: "(" logic ")" | EXISTS (NAME | DIGITS)                         -> exists
    | FUNCTION "(" (logic ("," logic)*)? ")"                          -> call
    | STRING                                                          -> string
    | PLUS? DIGITS                                                    -> integer
    | (TRUE | FALSE)                                                  -> boolean
    | NAME                                                            -> attribute

LOGIC.3: /(AND|OR|XOR)(?![A-Za-z0-9_])/i
NOT.3: /NOT(?![A-Za-z0-9_])/i
LIKE.3: /LIKE(?![A-Za-z0-9_])/i
IN.3: /IN(?![A-Za-z0-9_])/i
EXISTS.3: /EXISTS(?![A-Za-z0-9_])/i
TRUE.3: /TRUE(?![A-Za-z0-9_])/i
FALSE.3: /FALSE(?![A-Za-z0-9_])/i
FUNCTION.2: /[A-Za-z][A-Za-z_]*(?=\s*\()/
NAME: /[0-9]*[A-Za-z][A-Za-z0-9]*/
DIGITS: /[0-9]+(?![A-Za-z])/
STRING: /'(\\.|[^'\\])*'|"(\\.|[^"\\])*"/s
COMPARE: "!=" | "<>" | ">=" | "<=" | "=" | "<" | ">"
PLUS: "+"
MINUS: "-"
STAR: "*"
SLASH: "/"
PERCENT: "%"
%ignore /[ \t\r\n]+/
"""

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": eq, "!=": ne, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge,
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": divide,
    "%": remainder,
}
_LIKE_PARTS = re.compile(r"\\([%_])|([%_])|(.)", re.DOTALL)


class CesqlError(ValueError):
    """The expression is not CESQL, or can never match; the message has line, column and the reason."""


class _Node(NamedTuple):
    type: type
    evaluate: Evaluate
    literal: Value | None = None


def compile_expression(text: str) -> Callable[[Attributes], bool]:
    """The predicate of a CESQL expression; raises `CesqlError`.  The predicate itself never raises."""
    from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        at_end = isinstance(error, UnexpectedEOF) or (isinstance(error, UnexpectedToken) and error.token.type == "$END")
        if at_end:
            raise CesqlError("the expression ends too early") from None
        found = text[error.pos_in_stream or 0 :][:1]
        if isinstance(error, UnexpectedToken) and not isinstance(error, UnexpectedCharacters):
            found = str(error.token)
        raise _refusal(error, f"{found!r} is not expected here") from None
    root = _compile(tree)
    if root.type is not bool:
        raise CesqlError(f"the expression gives {CAST_NAMES[root.type]}, only Boolean can match")
    evaluate = root.evaluate

    def matches(attributes: Attributes) -> bool:
        try:
            return bool(evaluate(attributes))
        except EvaluationError:
            return False

    return matches


@lru_cache(maxsize=1)
def _parser() -> Lark:
    from lark import Lark

    return Lark(GRAMMAR, parser="lalr", propagate_positions=True)


def _refusal(where: Any, reason: str) -> CesqlError:
    return CesqlError(f"line {where.line}, column {where.column}: {reason}")


def _compile(tree: Tree[Token]) -> _Node:
    return _COMPILERS[str(tree.data)](tree.children)


def _string(children: list[Any]) -> _Node:
    return _constant(_unquote(children[0]))


def _integer(children: list[Any]) -> _Node:
    token = children[-1]
    value = int(token)
    if value > 2**31:  # 2**31 itself is right behind a minus; `_as` looks at the rest
        raise _refusal(token, f"{token} is not a 32 bit integer")
    return _constant(value)


def _boolean(children: list[Any]) -> _Node:
    return _constant(children[0].upper() == "TRUE")


def _constant(value: Value) -> _Node:
    return _Node(type(value), lambda _: value, value)


def _attribute(children: list[Any]) -> _Node:
    name = _name(children[0])

    def evaluate(attributes: Attributes) -> Value:
        try:
            return attributes[name]
        except KeyError:
            raise EvaluationError(f"no attribute {name}") from None

    return _Node(str, evaluate)


def _exists(children: list[Any]) -> _Node:
    name = _name(children[-1])
    return _Node(bool, lambda attributes: name in attributes)


def _name(token: Token) -> str:
    return token.lower()  # as the Go SDK and CESQL's test kit: identifiers in any case, attributes in lower case


def _logical(children: list[Any]) -> _Node:
    left, right = (_as(bool, child) for child in (children[0], children[2]))
    match children[1].upper():
        case "AND":
            return _Node(bool, lambda attributes: left(attributes) and right(attributes))
        case "OR":
            return _Node(bool, lambda attributes: left(attributes) or right(attributes))
        case _:
            return _Node(bool, lambda attributes: left(attributes) != right(attributes))


def _compare(children: list[Any]) -> _Node:
    compare = _COMPARISONS[children[1]]
    # `=` takes three types: the right side's decides (CESQL 3.7); order is for integers alone.
    target = _compile(children[2]).type if compare in (eq, ne) else int
    left, right = _as(target, children[0]), _as(target, children[2])
    return _Node(bool, lambda attributes: compare(left(attributes), right(attributes)))


def _arithmetic(children: list[Any]) -> _Node:
    operate = _ARITHMETIC[children[1]]
    left, right = _as(int, children[0]), _as(int, children[2])
    return _Node(int, lambda attributes: in_range(operate(int(left(attributes)), int(right(attributes)))))


def _negative(children: list[Any]) -> _Node:
    operand = _compile(children[-1])
    if operand.type is int and operand.literal is not None:
        return _constant(-int(operand.literal))
    value = cast(operand.type, int, operand.evaluate)
    return _Node(int, lambda attributes: in_range(-int(value(attributes))))


def _not(children: list[Any]) -> _Node:
    return _negated(_Node(bool, _as(bool, children[-1])))


def _negated(node: _Node) -> _Node:
    return _Node(bool, lambda attributes: not node.evaluate(attributes))


def _like(children: list[Any]) -> _Node:
    value = _as(str, children[0])
    pattern = re.compile(_LIKE_PARTS.sub(_like_part, _unquote(children[-1])), re.DOTALL)
    return _Node(bool, lambda attributes: pattern.fullmatch(str(value(attributes))) is not None)


def _like_part(part: re.Match[str]) -> str:
    if part[2]:
        return ".*" if part[2] == "%" else "."
    return re.escape(part[1] or part[3])


def _in(children: list[Any]) -> _Node:
    node = _compile(children[0])
    members = [_as(node.type, child) for child in children[1:] if not hasattr(child, "type")]
    value = cast(node.type, node.type, node.evaluate)

    def evaluate(attributes: Attributes) -> bool:
        wanted = value(attributes)
        return any(member(attributes) == wanted for member in members)

    return _Node(bool, evaluate)


def _call(children: list[Any]) -> _Node:
    token, *arguments = children
    function = FUNCTIONS.get(token.upper())
    if function is None:
        raise _refusal(token, f"there is no function {token}; known are {', '.join(sorted(FUNCTIONS))}")
    types = function.parameters(len(arguments))
    if types is None:
        raise _refusal(token, f"{token.upper()} does not take {len(arguments)} arguments")
    nodes = [_compile(argument) for argument in arguments]
    if function.static is not None:
        return _Node(function.returns, partial(function.static, nodes[0].type, nodes[0].evaluate))
    values = [cast(node.type, wanted, node.evaluate) for node, wanted in zip(nodes, types, strict=True)]
    apply = function.apply
    return _Node(function.returns, lambda attributes: apply(*(value(attributes) for value in values)))


def _as(wanted: type, tree: Tree[Token]) -> Evaluate:
    node = _compile(tree)
    if node.type is int and node.literal == 2**31:
        raise _refusal(tree.meta, f"{node.literal} is not a 32 bit integer")
    return cast(node.type, wanted, node.evaluate)


def _unquote(token: str) -> str:
    return token[1:-1].replace("\\" + token[0], token[0])


_COMPILERS: dict[str, Callable[[list[Any]], _Node]] = {
    "logical": _logical,
    "compare": _compare,
    "arithmetic": _arithmetic,
    "like": _like,
    "not_like": lambda children: _negated(_like(children)),
    "in": _in,
    "not_in": lambda children: _negated(_in(children)),
    "not": _not,
    "negative": _negative,
    "exists": _exists,
    "call": _call,
    "string": _string,
    "integer": _integer,
    "boolean": _boolean,
    "attribute": _attribute,
}
