"""CloudEvents SQL 1.0 as a filter."""

from __future__ import annotations

import contextlib
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.local.cesql import CesqlError, compile_expression
from tenantry.local.cesql_functions import EvaluationError, divide, remainder

EVENT = {"id": "1", "type": "t", "source": "/s", "kind": "Namespace", "sequence": "10", "flag": "TRUE", "name": "a_b%c"}


@pytest.mark.parametrize(
    "expression",
    [
        "TRUE",
        "not false",
        "kind = 'Namespace'",
        'kind = "Namespace"',
        "KIND = 'Namespace'",
        "kind != 'x' AND kind <> 'y'",
        "sequence = 10",
        "sequence = '10'",
        "sequence < 11 AND sequence >= 10 AND sequence > -1 AND sequence <= +10",
        "flag = TRUE",
        "flag AND TRUE",
        "TRUE XOR FALSE",
        "NOT (TRUE XOR TRUE)",
        "EXISTS id",
        "NOT EXISTS missing",
        "TRUE OR missing = 'x'",
        "NOT (FALSE AND missing = 'x')",
        "kind LIKE 'Name%'",
        "kind LIKE 'Na_espace'",
        "kind NOT LIKE 'name%'",
        r"name LIKE 'a\_b\%c'",
        r"kind NOT LIKE 'Na\_espace'",
        "sequence LIKE '1_'",
        "kind IN ('Pod', 'Namespace')",
        "kind NOT IN ('Pod')",
        "1 IN ('1', '2')",
        "kind IN (CONCAT('Name', 'space'))",
        "1 + 2 * 3 = 7",
        "(1 + 2) * 3 = 9",
        "10 - 3 - 2 = 5",
        "1-1 = 0",
        "-7 / 2 = -3",
        "-7 % 3 = -1",
        "7 % -3 = 1",
        "-2147483648 < 2147483647",
        "-sequence = -10",
        "LENGTH(kind) = 9",
        "CONCAT() = ''",
        "CONCAT('a', 1, TRUE) = 'a1true'",
        "CONCAT_WS('-', 'a', 'b') = 'a-b'",
        "lower(kind) = 'namespace' AND UPPER(kind) = 'NAMESPACE'",
        "TRIM('  a ') = 'a'",
        "LEFT(kind, 4) = 'Name' AND RIGHT(kind, 5) = 'space' AND RIGHT('ab', 5) = 'ab' AND LEFT('ab', 0) = ''",
        "SUBSTRING(kind, 5) = 'space' AND SUBSTRING(kind, -5, 3) = 'spa' AND SUBSTRING(kind, 0) = ''",
        "SUBSTRING(kind, 5, 100) = 'space'",
        "ABS(-3) = 3",
        "IS_INT(sequence) AND NOT IS_INT(kind) AND IS_BOOL(flag) AND NOT IS_BOOL(kind)",
        "INT('7') = 7 AND BOOL('false') = FALSE AND STRING(7) = '7'",
        "TRUE = 'true'",
        r"'it\'s' = " + '"it\'s"',
        "(FALSE AND TRUE) OR TRUE",
        "TRUE\n AND\tTRUE",
    ],
)
def test_matches(expression: str) -> None:
    """The expression holds for the sample event."""
    assert compile_expression(expression)(EVENT) is True


@pytest.mark.parametrize(
    "expression",
    [
        "missing = 'x'",
        "missing <> 'x'",
        "NOT (missing = 'x')",
        "missing IN ('x')",
        "missing NOT LIKE 'x'",
        "kind = 'namespace'",
        "kind < 5",
        "NOT (kind < 5)",
        "kind = TRUE",
        "1 / 0 = 0",
        "1 % 0 = 0",
        "2147483647 + 1 > 0",
        "ABS(-2147483648) > 0",
        "INT('99999999999') > 0 OR TRUE",
        "LEFT(kind, -1) = kind",
        "SUBSTRING(kind, 99) = ''",
        "SUBSTRING(kind, 1, -1) = ''",
        "IS_INT(missing) OR TRUE",
        "FALSE OR FALSE",
        "TRUE = 'TRUE' AND FALSE",
    ],
)
def test_errors_and_falsehoods_do_not_match(expression: str) -> None:
    """What is false, and what errs at run time, is no match; also behind NOT."""
    assert compile_expression(expression)(EVENT) is False


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("kind = ", "the expression ends too early"),
        ("ABC(", "the expression ends too early"),
        ("kind = = 'x'", "line 1, column 8: '=' is not expected here"),
        ("kind\n = 'x", "line 2, column 4"),
        ("kind ? 'x'", "line 1, column 6: '?' is not expected here"),
        ("FOO(kind) = 'x'", "line 1, column 1: there is no function FOO; known are ABS"),
        ("LENGTH() = 1", "LENGTH does not take 0 arguments"),
        ("LENGTH('a', 'b') = 1", "LENGTH does not take 2 arguments"),
        ("CONCAT_WS() = ''", "CONCAT_WS does not take 0 arguments"),
        ("kind LIKE 5", "line 1, column 11"),
        ("kind LIKE name", "line 1, column 11"),
        ("kind IN ()", "line 1, column 10"),
        ("sequence < 2147483648", "not a 32 bit integer"),
        ("sequence < 99999999999", "not a 32 bit integer"),
        ("kind", "gives String, only Boolean can match"),
        ("1 + 1", "gives Integer, only Boolean can match"),
        ("(kind = 'x'", "the expression ends too early"),
        ("kind = 'x')", "line 1, column 11"),
        ("EXISTS 'x'", "line 1, column 8"),
    ],
)
def test_refused_with_a_position(expression: str, message: str) -> None:
    """Syntax errors, unknown functions and what can never match are refused when loading."""
    with pytest.raises(CesqlError) as refused:
        compile_expression(expression)

    assert message in str(refused.value)


def test_mixed_logic_binds_to_the_right() -> None:
    """AND, OR and XOR are equal and bind to the right, as in the SDK that Knative uses."""
    assert compile_expression("FALSE AND FALSE OR TRUE")(EVENT) is False
    assert compile_expression("(FALSE AND FALSE) OR TRUE")(EVENT) is True


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1))
def test_division_rounds_towards_zero(x: int, y: int) -> None:
    """x = y * (x / y) + x % y, and the remainder has the sign of x."""
    if y == 0:
        with pytest.raises(EvaluationError):
            divide(x, y)
        return
    assert y * divide(x, y) + remainder(x, y) == x
    assert remainder(x, y) == 0 or (remainder(x, y) < 0) == (x < 0)


@given(st.text(max_size=60))
def test_any_text_is_compiled_or_refused(text: str) -> None:
    """No text makes the compiler fail in another way than by refusing it."""
    with contextlib.suppress(CesqlError):
        assert compile_expression(text)({}) in (True, False)


def test_the_grammar_library_is_loaded_only_when_needed() -> None:
    """Filters without CESQL do not import lark."""
    code = (
        "import sys; from tenantry.local.filters import parse_filters; parse_filters([{'exact': {'a': 'b'}}]);"
        "assert 'lark' not in sys.modules; parse_filters([{'cesql': 'TRUE'}]); assert 'lark' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
