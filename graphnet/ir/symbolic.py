"""Arithmetic on dimensions (integers or expression text), on top of the canonical spelling of `graphnet.ir.dims`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from graphnet.errors import GraphFormatError
from graphnet.ir import dims
from graphnet.ir.expression import Atom, Expr
from graphnet.ir.graph import Dimension

Term = tuple[tuple[Atom, ...], int]
_MAX_DIVISION_STEPS = 16


def add(a: Dimension, b: Dimension) -> Dimension:
    """a + b."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return dims.simplify(f"({a})+({b})")


def sub(a: Dimension, b: Dimension) -> Dimension:
    """a - b."""
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    return dims.simplify(f"({a})-({b})")


def mul(a: Dimension, b: Dimension) -> Dimension:
    """a * b."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return dims.simplify(f"({a})*({b})")


def product(shape: tuple[Dimension, ...]) -> Dimension:
    """Product of all; 1 for none."""
    result: Dimension = 1
    for dim in shape:
        result = mul(result, dim)
    return result


def floordiv(a: Dimension, b: Dimension) -> Dimension:
    """a // b, rounded down. Raises GraphFormatError when b is 0."""
    if b == 0:
        raise GraphFormatError(f"dimension '{a}' divided by zero")
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    exact = exact_div(a, b)
    if exact is not None:
        return exact
    if not isinstance(b, int):
        return dims.simplify(f"({a})//({b})")
    # the constant is kept within 0..b-1 inside the division, so that (h-1)//2+1 and (h+1)//2 get one spelling
    constant = next((value for monomial, value in _terms(a) if not monomial), 0)
    inside = sub(a, constant - constant % b)
    return dims.simplify(f"({inside})//{b}+({constant // b})") if b > 0 else dims.simplify(f"({a})//({b})")


def ceildiv(a: Dimension, b: Dimension) -> Dimension:
    """a / b, rounded up."""
    return mul(floordiv(mul(a, -1), b), -1)


def mod(a: Dimension, b: Dimension) -> Dimension:
    """a - (a // b) * b, the sign of b as in Python."""
    return sub(a, mul(floordiv(a, b), b))


@lru_cache(maxsize=1 << 14)
def exact_div(a: Dimension, b: Dimension) -> Dimension | None:
    """a / b where that is an integer polynomial (a symbol is never 0), else None: long division without remainder."""
    if a == b:
        return 1
    divisor = _terms(b)
    if not divisor:
        return None
    quotient: Dimension = 0
    rest = a
    for _ in range(_MAX_DIVISION_STEPS):
        terms = _terms(rest)
        if not terms:
            return quotient
        step = _divide_term(terms[0], divisor[0])
        if step is None:
            return None
        quotient, rest = add(quotient, step), sub(rest, mul(step, b))
    return None


def _divide_term(a: Term, b: Term) -> Dimension | None:
    rest = list(a[0])
    for factor in b[0]:
        if factor not in rest:
            return None
        rest.remove(factor)
    return None if a[1] % b[1] else dims.simplify(str(Expr(((tuple(rest), a[1] // b[1]),))))


def maximum(a: Dimension, b: Dimension) -> Dimension:
    """The larger of both, decided where their difference has a known sign."""
    return _extreme("max", a, b)


def minimum(a: Dimension, b: Dimension) -> Dimension:
    """The smaller of both, decided where their difference has a known sign."""
    return _extreme("min", a, b)


def sign(a: Dimension) -> int | None:
    """1, 0 or -1 where that is certain for all symbols >= 1, else None. A 0 or 1 bound counts as its outer side."""
    if isinstance(a, int):
        return (a > 0) - (a < 0)
    low, high = _bounds(a)
    if low is not None and low > 0:
        return 1
    return -1 if high is not None and high < 0 else None


def at_least(a: Dimension, bound: int) -> bool:
    """Whether a >= bound is certain for all symbols >= 1."""
    low = a if isinstance(a, int) else _bounds(a)[0]
    return low is not None and low >= bound


def _extreme(which: str, a: Dimension, b: Dimension) -> Dimension:
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b) if which == "max" else min(a, b)
    difference = sub(a, b)
    if at_least(difference, 0):
        return a if which == "max" else b
    if at_least(mul(difference, -1), 0):
        return b if which == "max" else a
    return dims.simplify(f"{which}({a},{b})")


def _terms(a: Dimension) -> tuple[Term, ...]:
    return dims.parse(str(a)).terms


def resolve(dim: Dimension, ranges: Mapping[str, tuple[int, int]]) -> Dimension:
    """`dim` with each `min` and `max` that the ranges of the symbols decide replaced by the argument it is."""
    if isinstance(dim, int):
        return dim
    total: Dimension = 0
    for monomial, value in _terms(dim):
        term: Dimension = value
        for atom in monomial:
            term = mul(term, _resolved(atom, ranges))
        total = add(total, term)
    return total


def _resolved(atom: Atom, ranges: Mapping[str, tuple[int, int]]) -> Dimension:
    arguments = [resolve(dims.to_dimension(argument), ranges) for argument in atom.arguments]
    if not arguments:
        return atom.kind
    if atom.kind == "floordiv":
        return floordiv(*arguments)
    if atom.kind == "mod":
        return mod(*arguments)
    result = arguments[0]
    for other in arguments[1:]:
        low, high = _bounds_within(sub(result, other), ranges)
        if low is not None and low >= 0:
            result = result if atom.kind == "max" else other
        elif high is not None and high <= 0:
            result = other if atom.kind == "max" else result
        else:
            result = dims.simplify(f"{atom.kind}({result},{other})")
    return result


@lru_cache(maxsize=1 << 14)
def _bounds(a: Dimension) -> tuple[int | None, int | None]:
    return _bounds_within(a, {})


def _bounds_within(a: Dimension, ranges: Mapping[str, tuple[int, int]]) -> tuple[int | None, int | None]:
    """A lower and an upper bound where symbols are in their range, or >= 1 (None: unbounded or unknown)."""
    low: int | None = 0
    high: int | None = 0
    for monomial, value in _terms(a):
        least = 1
        most: int | None = 1
        for atom in monomial:
            bottom, top = _atom_bounds(atom, ranges)
            if bottom is None:
                return None, None
            least = least * bottom
            most = None if most is None or top is None else most * top
        ends = [None if end is None else end * value for end in (least, most)]
        floor, ceiling = ends if value > 0 else ends[::-1]
        low = None if low is None or floor is None else low + floor
        high = None if high is None or ceiling is None else high + ceiling
    return low, high


def _atom_bounds(atom: Atom, ranges: Mapping[str, tuple[int, int]]) -> tuple[int | None, int | None]:
    """Bounds of a factor; None below for one that may be negative."""
    if not atom.arguments:
        return ranges.get(atom.kind, (1, None))
    bounds = [_bounds_within(dims.to_dimension(argument), ranges) for argument in atom.arguments]
    lows = [low for low, _ in bounds if low is not None]
    highs = [high for _, high in bounds]
    if atom.kind == "max":
        low = max(lows, default=None)
        high = None if None in highs else max(high for high in highs if high is not None)
    elif len(lows) < len(bounds):
        return None, None
    elif atom.kind == "min":
        low, high = min(lows), min((high for high in highs if high is not None), default=None)
    elif atom.kind == "floordiv" and lows[1] >= 1:
        low = lows[0] // highs[1] if highs[1] is not None else 0
        high = None if highs[0] is None else highs[0] // lows[1]
    elif atom.kind == "mod" and lows[1] >= 1:
        low, high = 0, None if highs[1] is None else highs[1] - 1
    else:
        return None, None
    return (low, high) if low is not None and low >= 0 else (None, None)
