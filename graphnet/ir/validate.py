"""The invariants of a graph, each with an error that names the place: `validate`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import isfinite, prod
from typing import Any

from graphnet.errors import GraphBindError, GraphFormatError
from graphnet.ir import dims
from graphnet.ir.explain import member
from graphnet.ir.expression import LIMIT
from graphnet.ir.fills import DTYPES, ITEM_BYTES, check_fill
from graphnet.ir.graph import OPSET, Body, Bytes, File, FloatAttr, Graph, Input, Node, Shape, TensorAttr, Weight
from graphnet.ir.limits import max_bytes, too_big
from graphnet.ir.order import cycle, defined_at

MAX_NAME = 1024
"""Characters of a name."""
MAX_RANK = 64
MAX_DEPTH = 16
"""Nested graphs within nested graphs."""
MAX_ELEMENTS = 2**63
_GRAPH_ID = re.compile(r"GN-[0-9]{4}-[A-Z]{2,16}-[0-9]{1,9}")
_OPERATOR = re.compile(r"[A-Za-z_][A-Za-z0-9_.:\-]{0,255}")
_DOMAIN = re.compile(r"([A-Za-z_][A-Za-z0-9_.:\-]{0,255})?")
_INT64 = range(-(2**63), 2**63)


def validate(graph: Graph) -> None:
    """Check every invariant of the format, in linear time. Raises GraphFormatError for the first broken one."""
    _check_header(graph)
    checker = _Checker(graph)
    checker.graph(graph, "$", 0)
    unused = graph.dims.keys() - checker.used
    if unused:
        name = min(unused)
        raise GraphFormatError(f"symbol '{name}' is declared, but no shape uses it", where=member("$.dims", name))


def _check_header(graph: Graph) -> None:
    if graph.opset != OPSET:
        raise GraphFormatError(f"opset is {graph.opset}; graphs of this format have opset {OPSET}", where="$.opset")
    if graph.graph_id and not _GRAPH_ID.fullmatch(graph.graph_id):
        raise GraphFormatError(f"'{graph.graph_id[:80]}' is not like GN-2026-CV-001", where="$.graph_id")
    _check_name(graph.name, "$.name")
    if "/" in graph.name or "\\" in graph.name or graph.name in (".", ".."):
        raise GraphFormatError(f"'{graph.name}' would leave its folder as a file name", where="$.name")
    numbers = {
        "$.arithmetic_intensity": graph.arithmetic_intensity,
        "$.compute_intensity": graph.compute_intensity,
        "$.source.max_error": graph.source.max_error,
        **{member("$.source.config", key): value for key, value in graph.source.config.items()},
    }
    for where, number in numbers.items():
        if isinstance(number, float) and not isfinite(number):
            raise GraphFormatError(f"{number} is not finite", where=where)
    for name, dim in graph.dims.items():
        where = member("$.dims", name)
        if not dims.SYMBOL.fullmatch(name):
            raise GraphFormatError("a symbol is a letter or _, then up to 127 letters, digits or _", where=where)
        if not 0 <= dim.min <= dim.default <= dim.max < LIMIT:
            raise GraphFormatError(
                f"0 <= min <= default <= max < 2**63 does not hold: {dim.min}, {dim.default}, {dim.max}", where=where
            )


def _check_name(name: str, where: str) -> None:
    if not name:
        raise GraphFormatError("the name is empty", where=where)
    if len(name) > MAX_NAME:
        raise GraphFormatError(f"the name has {len(name)} characters; at most {MAX_NAME} are allowed", where=where)
    if not name.isprintable():
        raise GraphFormatError(f"the name {name[:80]!a} has control characters or lone surrogates", where=where)


def _check_stream(stream: int | None, where: str) -> None:
    if stream is not None and not 0 <= stream < 2**62:
        raise GraphFormatError(f"stream {stream} is not in 0 to 2**62 - 1", where=f"{where}.stream")


class _Checker:
    """Walks a graph and its bodies; `visible` holds the names that the current node may use."""

    def __init__(self, graph: Graph) -> None:
        self.dims = graph.dims
        self.sizes = {name: dim.default for name, dim in graph.dims.items()}
        self.used: set[str] = set()
        self.visible: set[str] = set()
        self.good_shapes: set[Shape] = set()
        self.good_operators: set[tuple[str, str]] = set()
        self.enclosing: list[Graph | Body] = []
        self.packed = 0
        """Bytes that all `bytes` fills so far decompress to."""

    def graph(self, graph: Graph | Body, where: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise GraphFormatError(f"graphs are nested deeper than {MAX_DEPTH}", where=where)
        self.enclosing.append(graph)
        own = self.inputs(graph, where, depth) + self.weights(graph, where, depth)
        own += self.nodes(graph, where, depth)
        self.values(graph, where)
        if not graph.outputs and depth == 0:
            raise GraphFormatError("the graph has no output", where=f"{where}.outputs")
        for index, name in enumerate(graph.outputs):
            if name not in self.visible:
                raise GraphFormatError(f"output '{name}' is not defined", where=f"{where}.outputs[{index}]")
        if len(set(graph.outputs)) != len(graph.outputs):
            twice = next(name for name in graph.outputs if graph.outputs.count(name) > 1)
            raise GraphFormatError(f"output '{twice}' is listed twice: use an Identity", where=f"{where}.outputs")
        self.visible.difference_update(own)
        self.enclosing.pop()

    def inputs(self, graph: Graph | Body, where: str, depth: int) -> list[str]:
        for index, item in enumerate(graph.inputs):
            place = f"{where}.inputs[{index}]"
            self.define(item.name, f"{place}.name")
            self.type(item.dtype, item.shape, place)
            _check_stream(item.stream, place)
            symbols = {name for dim in item.shape for name in dims.symbols(dim)}
            for name in symbols if depth == 0 else ():
                if self.dims[name].data_dependent:
                    raise GraphFormatError(f"data-dependent symbol '{name}' in an input", where=f"{place}.shape")
            if isinstance(item.fill, File):
                raise GraphFormatError("an input cannot have fill 'file'", where=f"{place}.fill")
            high = getattr(item.fill, "high", None)
            if isinstance(high, str):
                self.expression(high, f"{place}.fill.high")
            self.fill(item, None if symbols else item.shape, f"{place}.fill")  # type: ignore[arg-type]
        return [item.name for item in graph.inputs]

    def weights(self, graph: Graph | Body, where: str, depth: int) -> list[str]:
        for name, weight in graph.weights.items():
            place = member(f"{where}.weights", name)
            self.define(name, place)
            self.type(weight.dtype, weight.shape, place)
            _check_stream(weight.stream, place)
            if any(isinstance(dim, str) for dim in weight.shape):
                raise GraphFormatError("a weight's shape has no symbols", where=f"{place}.shape")
            if depth and isinstance(weight.fill, File):
                raise GraphFormatError("a weight of a nested graph cannot have fill 'file'", where=f"{place}.fill")
            self.fill(weight, weight.shape, f"{place}.fill")
        return list(graph.weights)

    def nodes(self, graph: Graph | Body, where: str, depth: int) -> list[str]:
        names: set[str] = set()
        defined: list[str] = []
        for index, node in enumerate(graph.nodes):
            if (node.domain, node.op) not in self.good_operators:
                self.operator(node, f"{where}.nodes[{index}]")
            if node.name:
                if node.name in names or len(node.name) > MAX_NAME or not node.name.isprintable():
                    place = f"{where}.nodes[{index}].name"
                    _check_name(node.name, place)
                    raise GraphFormatError(f"a node named '{node.name}' is there already", where=place)
                names.add(node.name)
            if not self.visible.issuperset(node.inputs):
                self.missing_input(node, f"{where}.nodes[{index}]")
            if node.attrs:
                self.attributes(node, f"{where}.nodes[{index}]", depth)
            outputs = [name for name in node.outputs if name]
            for name in outputs:
                if name not in graph.values or name in self.visible or len(name) > MAX_NAME or not name.isprintable():
                    self.bad_output(name, f"{where}.nodes[{index}].outputs[{node.outputs.index(name)}]")
                self.visible.add(name)
            if not outputs:
                raise GraphFormatError(f"node '{node.name}' ({node.op}) has no output", where=f"{where}.nodes[{index}]")
            defined += outputs
        return defined

    def values(self, graph: Graph | Body, where: str) -> None:
        for name, value in graph.values.items():
            if value.shape not in self.good_shapes or value.dtype not in DTYPES:
                self.type(value.dtype, value.shape, member(f"{where}.values", name))
        if len(graph.values) != sum(len(node.outputs) - node.outputs.count("") for node in graph.nodes):
            made = {name for node in graph.nodes for name in node.outputs if name}
            name = next(name for name in graph.values if name not in made)
            raise GraphFormatError(f"no node makes value '{name}'", where=member(f"{where}.values", name))

    def define(self, name: str, where: str) -> None:
        _check_name(name, where)
        if name in self.visible:
            raise GraphFormatError(f"'{name}' is defined twice", where=where)
        self.visible.add(name)

    def bad_output(self, name: str, where: str) -> None:
        _check_name(name, where)
        if name in self.visible:
            raise GraphFormatError(f"'{name}' is defined twice", where=where)
        raise GraphFormatError(f"'{name}' has no entry in values, which give dtype and shape", where=where)

    def operator(self, node: Node, where: str) -> None:
        if not _OPERATOR.fullmatch(node.op):
            raise GraphFormatError(f"{node.op[:80]!a} is no operator's name", where=f"{where}.op")
        if node.domain == "ai.onnx" or not _DOMAIN.fullmatch(node.domain):
            raise GraphFormatError(f"{node.domain[:80]!a}: ONNX's own domain is written ''", where=f"{where}.domain")
        self.good_operators.add((node.domain, node.op))

    def missing_input(self, node: Node, where: str) -> None:
        """Raise for the first input that is not defined here; an input left out (`""`) is fine."""
        for slot, name in enumerate(node.inputs):
            if not name or name in self.visible:
                continue
            place = f"{where}.inputs[{slot}]"
            for graph in reversed(self.enclosing):
                later = defined_at(graph, name)
                if later is None:
                    continue
                circle = cycle(graph.nodes)
                if circle:
                    raise GraphFormatError(f"cycle: {' -> '.join(circle)}", where=place)
                raise GraphFormatError(f"'{name}' is used before node {later} makes it: sort the nodes", where=place)
            raise GraphFormatError(f"dangling name: '{name}' is not defined", where=place)

    def attributes(self, node: Node, where: str, depth: int) -> None:
        for key, value in node.attrs.items():
            kind = type(value)
            if kind is int:
                good = value in _INT64
            elif kind is tuple:
                good = _is_good_tuple(value)  # type: ignore[arg-type]
            elif kind is str:
                good = _is_encodable(value)  # type: ignore[arg-type]
            elif kind is float:
                good = isfinite(value)  # type: ignore[arg-type]
            else:
                good = self.composite(value, f"{member(f'{where}.attrs', key)}", depth)
            if not good:
                cause = f"{str(value)[:80]!a} is no attribute: a finite number in 64 bits, text, or a list of one kind"
                raise GraphFormatError(cause, where=member(f"{where}.attrs", key))
            if not key.isidentifier() or len(key) > MAX_NAME:
                raise GraphFormatError(f"{key[:80]!a} is no attribute's name", where=f"{where}.attrs")

    def composite(self, value: Any, where: str, depth: int) -> bool:
        if isinstance(value, Body):
            self.graph(value, where, depth + 1)
        elif isinstance(value, TensorAttr):
            self.type(value.dtype, value.shape, where)
            self.fill(value, value.shape, f"{where}.fill")
        else:
            return isinstance(value, FloatAttr)
        return True

    def fill(self, item: Input | Weight | TensorAttr, shape: tuple[int, ...] | None, where: str) -> None:
        if isinstance(item.fill, Bytes):
            self.packed += prod(shape or ()) * ITEM_BYTES.get(item.dtype, 0)
            if self.packed > max_bytes():  # many small files' worth of bombs are a bomb
                raise GraphFormatError(too_big("content of all 'bytes' fills", max_bytes()), where=where)
        check_fill(item.fill, item.dtype, shape, self.sizes if isinstance(item, Input) else {}, where)

    def type(self, dtype: str, shape: Shape, where: str) -> None:
        if dtype not in DTYPES:
            raise GraphFormatError(f"'{dtype}' is no dtype; known: {', '.join(sorted(DTYPES))}", where=f"{where}.dtype")
        if shape in self.good_shapes:
            return
        if len(shape) > MAX_RANK:
            raise GraphFormatError(f"{len(shape)} dimensions; at most {MAX_RANK} are allowed", where=f"{where}.shape")
        count = 1
        for index, dim in enumerate(shape):
            place = f"{where}.shape[{index}]"
            size = dim if type(dim) is int else self.expression(dim, place)
            if size < 0:
                raise GraphFormatError(f"dimension {dim} is negative" + _at(dim, size), where=place)
            if size >= MAX_ELEMENTS:
                raise GraphFormatError(f"dimension {dim} does not fit 63 bits", where=place)
            count *= max(size, 1)  # an empty tensor, too, must not overflow in the products of its other dimensions
        if count >= MAX_ELEMENTS:
            raise GraphFormatError(f"{count} elements do not fit 63 bits", where=f"{where}.shape")
        self.good_shapes.add(shape)

    def expression(self, dim: Any, where: str) -> int:
        """The size of a symbolic dimension at the defaults."""
        if not isinstance(dim, str):
            raise GraphFormatError(f"dimension {dim!r} is neither int nor str", where=where)
        try:
            names = dims.symbols(dim)
            unknown = sorted(names - self.dims.keys())
            if unknown:
                raise GraphFormatError(f"symbol '{unknown[0]}' of '{dim}' is not declared in dims")
            size = dims.evaluate(dim, self.sizes)
        except GraphFormatError as error:
            raise GraphFormatError(error.cause, where=where) from None
        except GraphBindError as error:
            raise GraphFormatError(str(error), where=where) from None
        self.used |= names
        return size


def _at(dim: object, size: int) -> str:
    return "" if dim == size else f" at the default sizes: {size}"


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_good_tuple(items: Iterable[Any]) -> bool:
    kinds: Mapping[type, Any] = dict.fromkeys(map(type, items))
    if len(kinds) > 1:
        return False
    if int in kinds:
        return all(item in _INT64 for item in items)
    if float in kinds:
        return all(map(isfinite, items))
    return not kinds or (str in kinds and all(map(_is_encodable, items)))
