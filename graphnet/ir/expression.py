"""Integer expressions in canonical form: sums of products of symbols, floor divisions, remainders, minima, maxima."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from graphnet.errors import GraphBindError

MAX_TERMS = 64
"""Terms of an expanded sum: `(a+b)*(c+d)*...` must not grow without end."""
MAX_DEGREE = 64
"""Factors of a term."""
MAX_FACTOR = 2048
"""Characters of a factor's canonical text: `((a%7 + b)**6 % 7 + b)**6 ...` grows 21-fold with each nesting."""
LIMIT = 2**63
"""Dimensions and literals are below this."""


class TooComplex(Exception):
    """An expression passes one of the limits above."""


@dataclass(frozen=True, order=True)
class Atom:
    """A factor that is no integer: a symbol (no arguments), or min, max, floordiv, mod of expressions.

    Compared and hashed by its canonical text: walking the arguments would take time exponential in their depth.
    """

    text: str
    kind: str = field(compare=False)
    arguments: tuple[Expr, ...] = field(compare=False, default=())


Monomial = tuple[Atom, ...]


@dataclass(frozen=True, order=True)
class Expr:
    """A sum of (monomial, coefficient) in canonical order: equal expressions expand to equal objects."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @property
    def constant(self) -> int | None:
        """The value of an expression without symbols, else None."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    def __str__(self) -> str:
        text = ""
        for monomial, coefficient in self.terms:
            factors = [atom.text for atom in monomial]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            elif len(factors) == 1 and coefficient == 1 and factors[0].startswith("("):
                factors = [factors[0][1:-1]]
            sign = "-" if coefficient < 0 else "+"
            text += (f" {sign} " if text else sign.replace("+", "")) + "*".join(factors)
        return text or "0"


def _atom(text: str, kind: str, arguments: tuple[Expr, ...]) -> Atom:
    if len(text) > MAX_FACTOR:
        raise TooComplex(f"a factor expands to more than {MAX_FACTOR} characters")
    return Atom(text, kind, arguments)


def from_atom(atom: Atom) -> Expr:
    """A single factor."""
    return Expr((((atom,), 1),))


def constant(value: int) -> Expr:
    """An integer."""
    return Expr((((), value),)) if value else Expr()


def _from_terms(terms: Mapping[Monomial, int]) -> Expr:
    kept = [(monomial, coefficient) for monomial, coefficient in terms.items() if coefficient]
    if len(kept) > MAX_TERMS:
        raise TooComplex(f"it expands to more than {MAX_TERMS} terms")
    if any(abs(coefficient) >= LIMIT for _, coefficient in kept):
        raise TooComplex("a coefficient is not below 2**63")
    return Expr(tuple(sorted(kept, key=lambda term: (-len(term[0]), term))))


def add(left: Expr, right: Expr, sign: int = 1) -> Expr:
    """`left + sign * right`. Raises TooComplex."""
    terms = dict(left.terms)
    for monomial, coefficient in right.terms:
        terms[monomial] = terms.get(monomial, 0) + sign * coefficient
    return _from_terms(terms)


def _symbols_first(atom: Atom) -> tuple[bool, str]:
    return bool(atom.arguments), atom.text


def multiply(left: Expr, right: Expr) -> Expr:
    """The expanded product. Raises TooComplex."""
    if len(left.terms) * len(right.terms) > MAX_TERMS:
        raise TooComplex(f"it expands to more than {MAX_TERMS} terms")
    if left.terms and right.terms and len(left.terms[0][0]) + len(right.terms[0][0]) > MAX_DEGREE:
        raise TooComplex(f"a term has more than {MAX_DEGREE} factors")
    terms: dict[Monomial, int] = {}
    for left_monomial, left_coefficient in left.terms:
        for right_monomial, right_coefficient in right.terms:
            monomial = tuple(sorted(left_monomial + right_monomial, key=_symbols_first))
            terms[monomial] = terms.get(monomial, 0) + left_coefficient * right_coefficient
    return _from_terms(terms)


def divide(kind: str, left: Expr, right: Expr) -> Expr:
    """floor(left / right) or left mod right, as Python defines them; terms that divide evenly are taken out."""
    divisor = right.constant
    whole = Expr()
    if divisor is not None:
        even = {monomial: value // divisor for monomial, value in left.terms if value % divisor == 0}
        whole, left = _from_terms(even), _from_terms({m: value for m, value in left.terms if m not in even})
        if left.constant is not None:
            if kind == "mod":
                return constant(left.constant % divisor)
            return add(whole, constant(left.constant // divisor))
    elif left == right and kind == "mod":
        return Expr()
    operator = "//" if kind == "floordiv" else "%"
    rest = from_atom(_atom(f"({_wrapped(left)}{operator}{_wrapped(right)})", kind, (left, right)))
    return rest if kind == "mod" else add(whole, rest)


def extreme(kind: str, arguments: Iterable[Expr]) -> Expr:
    """`min` or `max`, flattened, with constants merged. Raises TooComplex."""
    pick = min if kind == "min" else max
    flat: list[Expr] = []
    for argument in arguments:
        atom = argument.terms[0][0][0] if len(argument.terms) == 1 and argument.terms[0][0] else None
        same = atom is not None and atom.arguments and atom.kind == kind and argument == from_atom(atom)
        flat += atom.arguments if atom is not None and same else [argument]
    constants = [value for argument in flat if (value := argument.constant) is not None]
    others = sorted({argument for argument in flat if argument.constant is None})
    if not others:
        return constant(pick(constants))
    if constants:
        others.insert(0, constant(pick(constants)))
    if len(others) == 1:
        return others[0]
    return from_atom(_atom(f"{kind}({', '.join(map(str, others))})", kind, tuple(others)))


def value_at(expr: Expr, sizes: Mapping[str, int]) -> int:
    """The value at these symbol sizes. Raises KeyError, ZeroDivisionError."""
    total = 0
    for monomial, coefficient in expr.terms:
        value = coefficient
        for atom in monomial:
            value *= _evaluate_atom(atom, sizes)
        total += value
    return total


def _evaluate_atom(atom: Atom, sizes: Mapping[str, int]) -> int:
    if not atom.arguments:
        return int(sizes[atom.kind])
    values = [value_at(argument, sizes) for argument in atom.arguments]
    if atom.kind == "min":
        return min(values)
    if atom.kind == "max":
        return max(values)
    return values[0] // values[1] if atom.kind == "floordiv" else values[0] % values[1]


def substitute_symbols(expr: Expr, given: Mapping[str, Expr]) -> Expr:
    """Symbols replaced by expressions. Raises TooComplex, GraphBindError (a divisor that becomes 0)."""
    total = Expr()
    for monomial, coefficient in expr.terms:
        value = constant(coefficient)
        for atom in monomial:
            value = multiply(value, _substitute_atom(atom, given))
        total = add(total, value)
    return total


def _substitute_atom(atom: Atom, given: Mapping[str, Expr]) -> Expr:
    if not atom.arguments:
        return given.get(atom.kind, from_atom(atom))
    arguments = [substitute_symbols(argument, given) for argument in atom.arguments]
    if atom.kind in ("min", "max"):
        return extreme(atom.kind, arguments)
    if arguments[1].constant == 0:
        raise GraphBindError(f"dimension '{atom.text}' divides by zero")
    return divide(atom.kind, *arguments)


def symbols_of(expr: Expr) -> Iterable[str]:
    """Names of the symbols; may repeat."""
    for monomial, _ in expr.terms:
        for atom in monomial:
            if not atom.arguments:
                yield atom.kind
            for argument in atom.arguments:
                yield from symbols_of(argument)


def _wrapped(expr: Expr) -> str:
    text = str(expr)
    return text if text.isidentifier() or text.isdecimal() else f"({text})"
