"""Symbolic dimensions: parsing, evaluating and simplifying expressions such as `2*batch + 1` (never `eval`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from graphnet.errors import GraphBindError, GraphFormatError
from graphnet.ir.expression import (
    LIMIT,
    Expr,
    TooComplex,
    add,
    constant,
    divide,
    extreme,
    from_atom,
    multiply,
    substitute_symbols,
    symbols_of,
    value_at,
)
from graphnet.ir.expression import Atom as Atom
from graphnet.ir.graph import Dimension, Shape

MAX_LENGTH = 512
"""Characters of an expression."""
MAX_DEPTH = 24
"""Nested parentheses and calls."""
MAX_EXPONENT = 8

_TOKEN = re.compile(r"\s*(?:(?P<int>\d+)|(?P<name>[A-Za-z_]\w*)|(?P<op>//|\*\*|[-+*%(),])|(?P<end>$))", re.ASCII)
SYMBOL = re.compile(r"[A-Za-z_]\w{0,127}", re.ASCII)
"""What a symbol's name looks like."""
_CALLS = {
    "min": "min", "Min": "min", "max": "max", "Max": "max", "Mod": "mod", "PythonMod": "mod", "ceildiv": "ceildiv",
    "CeilDiv": "ceildiv", "FloorDiv": "floordiv", "CleanDiv": "floordiv",
}  # fmt: skip


@lru_cache(maxsize=1 << 16)
def parse(expr: str) -> Expr:
    """Parse integers, symbols, `+ - * // % **`, `min(...)`, `max(...)`, `ceildiv(a, b)` and parentheses.

    Also takes the spellings of torch.export (`Max`, `Min`, `Mod`, `FloorDiv`, `CeilDiv`). Raises GraphFormatError.
    """
    if len(expr) > MAX_LENGTH:
        raise GraphFormatError(f"dimension expression of {len(expr)} characters; at most {MAX_LENGTH} are allowed")
    parser = _Parser(expr)
    try:
        return parser.whole()
    except TooComplex as error:
        raise parser.fail(str(error)) from None


def evaluate(dim: Dimension, sizes: Mapping[str, int]) -> int:
    """The integer that `dim` is for these symbol sizes; it may be negative.

    Raises GraphBindError (a symbol without size, a division by zero, a result outside 64 bits), GraphFormatError.
    """
    if isinstance(dim, int):
        return dim
    try:
        value = value_at(parse(dim), sizes)
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
    found = set(symbols_of(parse(expr)))
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
    given = {name: constant(to) if isinstance(to, int) else parse(to) for name, to in replacements.items()}
    try:
        return to_dimension(substitute_symbols(parse(dim), given))
    except TooComplex as error:
        raise GraphFormatError(f"dimension '{dim}' with {dict(replacements)}: {error}") from None


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
            result = add(result, self.product(), sign)
        return result

    def product(self) -> Expr:
        result = self.unary()
        while self.token in ("*", "//", "%"):
            op = self.token
            self.advance()
            right = self.unary()
            if op == "*":
                result = multiply(result, right)
            else:
                result = self.divide("floordiv" if op == "//" else "mod", result, right)
        return result

    def unary(self) -> Expr:
        sign = 1
        while self.token in ("-", "+"):
            sign = -sign if self.token == "-" else sign
            self.advance()
        value = self.power()
        return value if sign > 0 else add(Expr(), value, -1)

    def power(self) -> Expr:
        base = self.primary()
        if self.token != "**":
            return base
        self.advance()
        if self.kind != "int" or len(self.token) > 1 or int(self.token) > MAX_EXPONENT:
            raise self.fail(f"an exponent is an integer from 0 to {MAX_EXPONENT}")
        exponent = int(self.token)
        self.advance()
        result = constant(1)
        for _ in range(exponent):
            result = multiply(result, base)
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
            return constant(int(token))
        if self.token == "(":
            return self.nested(lambda: self.call(token))
        if not SYMBOL.fullmatch(token):
            raise self.fail("a symbol has at most 128 characters")
        return from_atom(Atom(token, token))

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
            return extreme(kind, arguments)
        if len(arguments) != 2:
            raise self.fail(f"'{name}' takes 2 arguments")
        left, right = arguments
        if kind == "ceildiv":
            return add(Expr(), self.divide("floordiv", add(Expr(), left, -1), right), -1)
        return self.divide(kind, left, right)

    def divide(self, kind: str, left: Expr, right: Expr) -> Expr:
        if right.constant == 0:
            raise self.fail("division by zero")
        return divide(kind, left, right)
