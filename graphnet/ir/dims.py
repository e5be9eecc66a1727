"""Symbolic dimensions: parsing, evaluating and simplifying expressions such as `2*batch + 1` (never `eval`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from graphnet.errors import GraphBindError, GraphFormatError
from graphnet.ir.graph import Dimension, Shape

MAX_LENGTH = 512
"""Characters of an expression."""
MAX_DEPTH = 24
"""Nested parentheses and calls."""
MAX_TERMS = 64
"""Terms of an expanded sum: `(a+b)*(c+d)*...` must not grow without end."""
MAX_EXPONENT = 8
LIMIT = 2**63
"""Dimensions and literals are below this."""

_TOKEN = re.compile(r"\s*(?:(?P<int>\d+)|(?P<name>[A-Za-z_]\w*)|(?P<op>//|\*\*|[-+*%(),])|(?P<end>$))", re.ASCII)
SYMBOL = re.compile(r"[A-Za-z_]\w{0,127}", re.ASCII)
"""What a symbol's name looks like."""
_CALLS = {
    "min": "min", "Min": "min", "max": "max", "Max": "max", "Mod": "mod", "PythonMod": "mod", "ceildiv": "ceildiv",
    "CeilDiv": "ceildiv", "FloorDiv": "floordiv", "CleanDiv": "floordiv",
}  # fmt: skip


@dataclass(frozen=True, order=True)
class Atom:
    """A factor that is no integer: a symbol (no arguments), or min, max, floordiv, mod of expressions."""

    kind: str
    arguments: tuple[Expr, ...] = ()


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
            factors = [_print_atom(atom) for atom in monomial]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            elif len(factors) == 1 and coefficient == 1 and factors[0].startswith("("):
                factors = [factors[0][1:-1]]
            sign = "-" if coefficient < 0 else "+"
            text += (f" {sign} " if text else sign.replace("+", "")) + "*".join(factors)
        return text or "0"


@lru_cache(maxsize=1 << 16)
def parse(expr: str) -> Expr:
    """Parse integers, symbols, `+ - * // % **`, `min(...)`, `max(...)`, `ceildiv(a, b)` and parentheses.

    Also takes the spellings of torch.export (`Max`, `Min`, `Mod`, `FloorDiv`, `CeilDiv`). Raises GraphFormatError.
    """
    if len(expr) > MAX_LENGTH:
        raise GraphFormatError(f"dimension expression of {len(expr)} characters; at most {MAX_LENGTH} are allowed")
    return _Parser(expr).whole()


def evaluate(dim: Dimension, sizes: Mapping[str, int]) -> int:
    """The integer that `dim` is for these symbol sizes; it may be negative.

    Raises GraphBindError (a symbol without size, a division by zero, a result outside 64 bits), GraphFormatError.
    """
    if isinstance(dim, int):
        return dim
    try:
        value = _evaluate(parse(dim), sizes)
    except KeyError as error:
        raise GraphBindError(f"dimension '{dim}': no size for symbol {error}; give it one") from None
    except ZeroDivisionError:
        raise GraphBindError(f"dimension '{dim}' divides by zero at {dict(sizes)}") from None
    if not -LIMIT <= value < LIMIT:
        raise GraphBindError(f"dimension '{dim}' is {value}, outside 64 bits")
    return value


def symbols(dim: Dimension) -> set[str]:
    """Names of the symbols in `dim`. Raises GraphFormatError."""
    return set() if isinstance(dim, int) else set(symbol_order(dim))


@lru_cache(maxsize=1 << 16)
def symbol_order(expr: str) -> tuple[str, ...]:
    """Names of the symbols in an expression, in the order in which its text names them. Raises GraphFormatError."""
    found = set(_symbols(parse(expr)))
    return tuple(dict.fromkeys(name for name in SYMBOL.findall(expr) if name in found))


def shape_at(shape: Shape, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """All dimensions evaluated. Raises GraphBindError, also for a negative dimension."""
    result = tuple(dim if isinstance(dim, int) else evaluate(dim, sizes) for dim in shape)
    for dim, size in zip(shape, result, strict=True):
        if size < 0:
            raise GraphBindError(f"dimension '{dim}' of {list(shape)} is {size} at {dict(sizes)}: negative")
    return result


def substitute(dim: Dimension, replacements: Mapping[str, Dimension]) -> Dimension:
    """`dim` with symbols replaced by sizes or expressions, simplified; an int when no symbol is left."""
    if isinstance(dim, int):
        return dim
    given = {name: _constant(to) if isinstance(to, int) else parse(to) for name, to in replacements.items()}
    return to_dimension(_substitute(parse(dim), given))


def simplify(dim: Dimension) -> Dimension:
    """The canonical spelling: expressions equal as polynomials get equal strings; an int where constant."""
    return dim if isinstance(dim, int) else to_dimension(parse(dim))


def to_dimension(expr: Expr) -> Dimension:
    """An expression as it stands in a shape."""
    return str(expr) if expr.constant is None else expr.constant


class _Parser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, text: str) -> None:
        self.text, self.position, self.depth = text, 0, 0
        self.kind, self.token = "", ""
        self.advance()

    def fail(self, cause: str) -> GraphFormatError:
        return GraphFormatError(f"bad dimension expression '{self.text}': {cause}")

    def advance(self) -> None:
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            rest = self.text[self.position :].lstrip()
            raise self.fail(f"unexpected {rest[:1]!r}; legal are integers, symbols, + - * // % ** ( ) min max ceildiv")
        self.kind, self.token = match.lastgroup or "", match.group().strip()
        self.position = match.end()

    def take(self, token: str) -> None:
        if self.token != token:
            raise self.fail(f"expected '{token}', got '{self.token or 'the end'}'")
        self.advance()

    def whole(self) -> Expr:
        result = self.sum()
        if self.kind != "end":
            raise self.fail(f"unexpected '{self.token}'")
        return result

    def sum(self) -> Expr:
        result = self.product()
        while self.token in ("+", "-"):
            sign = 1 if self.token == "+" else -1
            self.advance()
            result = self.checked(_add(result, self.product(), sign))
        return result

    def product(self) -> Expr:
        result = self.unary()
        while self.token in ("*", "//", "%"):
            op = self.token
            self.advance()
            right = self.unary()
            if op == "*":
                self.guard_product(result, right)
                result = self.checked(_multiply(result, right))
            else:
                result = self.divide("floordiv" if op == "//" else "mod", result, right)
        return result

    def unary(self) -> Expr:
        sign = 1
        while self.token in ("-", "+"):
            sign = -sign if self.token == "-" else sign
            self.advance()
        value = self.power()
        return value if sign > 0 else _add(Expr(), value, -1)

    def power(self) -> Expr:
        base = self.primary()
        if self.token != "**":
            return base
        self.advance()
        if self.kind != "int" or len(self.token) > 1 or int(self.token) > MAX_EXPONENT:
            raise self.fail(f"an exponent is an integer from 0 to {MAX_EXPONENT}")
        exponent = int(self.token)
        self.advance()
        result = _constant(1)
        for _ in range(exponent):
            self.guard_product(result, base)
            result = self.checked(_multiply(result, base))
        return result

    def primary(self) -> Expr:
        kind, token = self.kind, self.token
        if kind == "end":
            raise self.fail("it ends too early" if self.text.strip() else "it is empty")
        if token == "(":
            return self.nested(self.parenthesised)
        if kind == "op":
            raise self.fail(f"unexpected '{token}'")
        self.advance()
        if kind == "int":
            if len(token) > 19 or int(token) >= LIMIT:
                raise self.fail(f"integer {token[:24]} is not below 2**63")
            return _constant(int(token))
        if self.token == "(":
            return self.nested(lambda: self.call(token))
        if not SYMBOL.fullmatch(token):
            raise self.fail("a symbol has at most 128 characters")
        return Expr((((Atom(token),), 1),))

    def parenthesised(self) -> Expr:
        self.take("(")
        result = self.sum()
        self.take(")")
        return result

    def nested(self, rule: Callable[[], Expr]) -> Expr:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail(f"nested deeper than {MAX_DEPTH}")
        result = rule()
        self.depth -= 1
        return result

    def call(self, name: str) -> Expr:
        if name not in _CALLS:
            raise self.fail(f"unknown function '{name}'; known: {', '.join(sorted(_CALLS))}")
        self.take("(")
        arguments = [self.sum()]
        while self.token == ",":
            self.advance()
            arguments.append(self.sum())
        self.take(")")
        kind = _CALLS[name]
        if kind in ("min", "max"):
            return _extreme(kind, arguments)
        if len(arguments) != 2:
            raise self.fail(f"'{name}' takes 2 arguments")
        left, right = arguments
        if kind == "ceildiv":
            return _add(Expr(), self.divide("floordiv", _add(Expr(), left, -1), right), -1)
        return self.divide(kind, left, right)

    def divide(self, kind: str, left: Expr, right: Expr) -> Expr:
        if right.constant == 0:
            raise self.fail("division by zero")
        return self.checked(_divide(kind, left, right))

    def guard_product(self, left: Expr, right: Expr) -> None:
        if len(left.terms) * len(right.terms) > MAX_TERMS:
            raise self.fail(f"it expands to more than {MAX_TERMS} terms")

    def checked(self, result: Expr) -> Expr:
        if len(result.terms) > MAX_TERMS:
            raise self.fail(f"it expands to more than {MAX_TERMS} terms")
        if any(abs(coefficient) >= LIMIT for _, coefficient in result.terms):
            raise self.fail("a coefficient is not below 2**63")
        return result


def _constant(value: int) -> Expr:
    return Expr((((), value),)) if value else Expr()


def _from_terms(terms: Mapping[Monomial, int]) -> Expr:
    kept = [(monomial, coefficient) for monomial, coefficient in terms.items() if coefficient]
    return Expr(tuple(sorted(kept, key=lambda term: (-len(term[0]), term))))


def _add(left: Expr, right: Expr, sign: int = 1) -> Expr:
    terms = dict(left.terms)
    for monomial, coefficient in right.terms:
        terms[monomial] = terms.get(monomial, 0) + sign * coefficient
    return _from_terms(terms)


def _multiply(left: Expr, right: Expr) -> Expr:
    terms: dict[Monomial, int] = {}
    for left_monomial, left_coefficient in left.terms:
        for right_monomial, right_coefficient in right.terms:
            monomial = tuple(sorted(left_monomial + right_monomial))
            terms[monomial] = terms.get(monomial, 0) + left_coefficient * right_coefficient
    return _from_terms(terms)


def _divide(kind: str, left: Expr, right: Expr) -> Expr:
    """floor(left / right) or left mod right, as Python defines them; terms that divide evenly are taken out."""
    divisor = right.constant
    whole = Expr()
    if divisor is not None:
        even = {monomial: value // divisor for monomial, value in left.terms if value % divisor == 0}
        whole, left = _from_terms(even), _from_terms({m: value for m, value in left.terms if m not in even})
        if left.constant is not None:
            if kind == "mod":
                return _constant(left.constant % divisor)
            return _add(whole, _constant(left.constant // divisor))
    elif left == right and kind == "mod":
        return Expr()
    rest = Expr((((Atom(kind, (left, right)),), 1),))
    return rest if kind == "mod" else _add(whole, rest)


def _extreme(kind: str, arguments: Iterable[Expr]) -> Expr:
    pick = min if kind == "min" else max
    flat: list[Expr] = []
    for argument in arguments:
        atom = argument.terms[0][0][0] if len(argument.terms) == 1 and argument.terms[0][0] else None
        same = atom is not None and atom.kind == kind and argument == Expr((((atom,), 1),))
        flat += atom.arguments if atom is not None and same else [argument]
    constants = [value for argument in flat if (value := argument.constant) is not None]
    others = sorted({argument for argument in flat if argument.constant is None})
    if not others:
        return _constant(pick(constants))
    if constants:
        others.insert(0, _constant(pick(constants)))
    return others[0] if len(others) == 1 else Expr((((Atom(kind, tuple(others)),), 1),))


def _evaluate(expr: Expr, sizes: Mapping[str, int]) -> int:
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
    values = [_evaluate(argument, sizes) for argument in atom.arguments]
    if atom.kind == "min":
        return min(values)
    if atom.kind == "max":
        return max(values)
    return values[0] // values[1] if atom.kind == "floordiv" else values[0] % values[1]


def _substitute(expr: Expr, given: Mapping[str, Expr]) -> Expr:
    total = Expr()
    for monomial, coefficient in expr.terms:
        value = _constant(coefficient)
        for atom in monomial:
            value = _multiply(value, _substitute_atom(atom, given))
        total = _add(total, value)
    return total


def _substitute_atom(atom: Atom, given: Mapping[str, Expr]) -> Expr:
    if not atom.arguments:
        return given.get(atom.kind, Expr((((atom,), 1),)))
    arguments = [_substitute(argument, given) for argument in atom.arguments]
    if atom.kind in ("min", "max"):
        return _extreme(atom.kind, arguments)
    if arguments[1].constant == 0:
        raise GraphBindError(f"dimension '{_print_atom(atom)}' divides by zero")
    return _divide(atom.kind, *arguments)


def _symbols(expr: Expr) -> Iterable[str]:
    for monomial, _ in expr.terms:
        for atom in monomial:
            if not atom.arguments:
                yield atom.kind
            for argument in atom.arguments:
                yield from _symbols(argument)


def _print_atom(atom: Atom) -> str:
    if not atom.arguments:
        return atom.kind
    if atom.kind in ("min", "max"):
        return f"{atom.kind}({', '.join(map(str, atom.arguments))})"
    left, right = (_wrapped(argument) for argument in atom.arguments)
    return f"({left}{'//' if atom.kind == 'floordiv' else '%'}{right})"


def _wrapped(expr: Expr) -> str:
    text = str(expr)
    return text if text.isidentifier() or text.isdecimal() else f"({text})"
