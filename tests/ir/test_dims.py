"""Dimension expressions against a second evaluator that works on the generated tree instead of its text."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet.errors import GraphBindError, GraphFormatError
from graphnet.ir import dims

Meaning = Callable[[Mapping[str, int]], int]
Tree = tuple[str, Meaning]

SIZES = {"a": 5, "b": 4, "h": 7, "s0": 9, "batch": 2, "min": 1, "max": 5}


def leaf() -> st.SearchStrategy[Tree]:
    def symbol(name: str) -> Tree:
        return name, lambda sizes: sizes[name]

    def number(value: int) -> Tree:
        return str(value), lambda _: value

    return st.sampled_from(["a", "b"]).map(symbol) | st.integers(0, 9).map(number)


def grow(children: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    def combine(op: str, left: Tree, right: Tree) -> Tree:
        first, second = left[1], right[1]
        meanings: dict[str, Meaning] = {
            "+": lambda sizes: first(sizes) + second(sizes),
            "-": lambda sizes: first(sizes) - second(sizes),
            "*": lambda sizes: first(sizes) * second(sizes),
            "//": lambda sizes: first(sizes) // second(sizes),
            "%": lambda sizes: first(sizes) % second(sizes),
            "min": lambda sizes: min(first(sizes), second(sizes)),
            "Max": lambda sizes: max(first(sizes), second(sizes)),
            "ceildiv": lambda sizes: -(-first(sizes) // second(sizes)),
        }
        text = f"{op}({left[0]}, {right[0]})" if op.isalpha() else f"({left[0]}) {op} ({right[0]})"
        return text, meanings[op]

    return st.builds(combine, st.sampled_from(["+", "-", "*", "//", "%", "min", "Max", "ceildiv"]), children, children)


TREES = st.recursive(leaf(), grow, max_leaves=6)


def meaning(tree: Tree, sizes: Mapping[str, int]) -> int | None:
    try:
        return tree[1](sizes)
    except ZeroDivisionError:
        return None


@given(TREES, st.integers(0, 12), st.integers(0, 12))
def test_evaluate_and_simplify_keep_the_meaning(tree: Tree, a: int, b: int) -> None:
    sizes = {"a": a, "b": b}
    expected = meaning(tree, sizes)
    if expected is None:
        return
    try:
        dims.parse(tree[0])
    except GraphFormatError:  # a constant divisor that comes to zero, or too many terms
        return
    assert dims.evaluate(tree[0], sizes) == expected
    assert dims.evaluate(dims.simplify(tree[0]), sizes) == expected
    assert dims.evaluate(dims.substitute(tree[0], {"a": a}), {"b": b}) == expected
    moved = meaning(tree, {"a": 2 * a + 1, "b": b})
    if moved is not None:
        assert dims.evaluate(dims.substitute(tree[0], {"a": "2*c + 1", "b": "d"}), {"c": a, "d": b}) == moved


@given(TREES)
def test_simplify_is_a_fixed_point(tree: Tree) -> None:
    try:
        once = dims.simplify(tree[0])
    except GraphFormatError:
        return
    assert dims.simplify(once) == once


@pytest.mark.parametrize(
    ("text", "canonical", "value"),
    [
        ("2*s0 + 1", "2*s0 + 1", 19),
        ("s0//2", "s0//2", 4),
        ("Max(1, s0)", "max(1, s0)", 9),
        ("batch*12", "12*batch", 24),
        ("4*(h//4)", "4*(h//4)", 4),
        ("(8*h+3)//4", "2*h", 14),
        ("(8*h+3)%4", 3, 3),
        ("(h+1)//2*2", "2*((h + 1)//2)", 8),
        ("b*a - a*b + h", "h", 7),
        ("ceildiv(h, 2)", "-((-h)//2)", 4),
        ("min(3, max(a, 5), 7)", "min(3, max(5, a))", 3),
        ("(a+b)**2", "a*a + 2*a*b + b*b", 81),
        ("-h//2", "(-h)//2", -4),
        ("-(h//2)", "-(h//2)", -3),
        ("a*(h//2)", "a*(h//2)", 15),
        ("Mod(h, 4)", "h%4", 3),
        ("FloorDiv(h, a - 3)", "h//(a - 3)", 3),
        ("3-5", -2, -2),
        ("min(batch, max) + max(min, 3)", "max(3, min) + min(batch, max)", 5),
        ("min(min, min)", "min", 1),
    ],
)
def test_spelling_and_value(text: str, canonical: str | int, value: int) -> None:
    assert dims.simplify(text) == canonical
    assert dims.evaluate(text, SIZES) == value


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "empty"),
        ("a+", "ends too early"),
        ("(a", "expected ')'"),
        ("a)", "unexpected ')'"),
        ("foo(1)", "unknown function 'foo'"),
        ("a/2", "unexpected '/'"),
        ("1.5", "unexpected '.'"),
        ("a b", "unexpected 'b'"),
        ("9" * 20, "not below 2**63"),
        ("a**a", "exponent"),
        ("a//0", "division by zero"),
        ("Mod(a)", "takes 2 arguments"),
        ("(" * 40 + "a" + ")" * 40, "nested deeper than 24"),
        ("a+" * 400 + "a", "801 characters"),
        ("*".join(f"(a{i}+b{i})" for i in range(30)), "more than 64 terms"),
        ("é", "unexpected 'é'"),
        ("((((a%7 + b)**6%7 + b)**6%7 + b)**6%7 + b)**6", "more than 2048 characters"),
        ("((((a**8)**8)**8)**8)**8", "more than 64 factors"),
        ("4000000000*4000000000", "not below 2**63"),
        ("x" * 200, "at most 128 characters"),
    ],
)
def test_bad_expression(text: str, cause: str) -> None:
    with pytest.raises(GraphFormatError) as caught:
        dims.parse(text)
    assert cause in caught.value.cause


def test_evaluate_errors_name_the_symbol() -> None:
    with pytest.raises(GraphBindError, match="no size for symbol 'rows'"):
        dims.evaluate("2*rows", {"batch": 1})
    with pytest.raises(GraphBindError, match="divides by zero"):
        dims.evaluate("8//a", {"a": 0})
    with pytest.raises(GraphBindError, match="outside 64 bits"):
        dims.evaluate("a**4", {"a": 2**40})
    with pytest.raises(GraphBindError, match="divides by zero"):
        dims.substitute("8//(a - b)", {"a": "b"})


def test_shape_at() -> None:
    assert dims.shape_at(("batch", 3, "h//2"), {"batch": 2, "h": 7}) == (2, 3, 3)
    with pytest.raises(GraphBindError, match="negative"):
        dims.shape_at(("batch-3",), {"batch": 2})


def test_symbols() -> None:
    assert dims.symbols("b*min(a, 3) + min") == {"a", "b", "min"}
    assert dims.symbols(4) == set()
    assert dims.symbol_order("w*h + a//w") == ("w", "h", "a")
    assert dims.symbol_order("a - a + b") == ("b",)
