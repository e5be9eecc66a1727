from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.defs import OpSchema

from graphnet.errors import UnsupportedOp
from graphnet.ir.graph import OPSET, Body, Constant, Graph, Input, Node, Value, Values, Weight
from graphnet.lower.jax.ops_all import JAX
from graphnet.lower.table import ONNX_DTYPES, Context, Ints, Operand, OpTable, Scope, Static
from graphnet.lower.tensorflow.ops_all import TENSORFLOW
from graphnet.lower.torch.ops_all import TORCH

TABLES = (TORCH, JAX, TENSORFLOW)
RULES = [(table, op) for table in TABLES for domain, op in sorted(table.operators) if domain == ""]


def schema_of(op: str) -> OpSchema:
    return onnx.defs.get_schema(op, OPSET)


def default_of(attribute: OpSchema.Attribute) -> Any:
    if attribute.required:
        return inspect.Parameter.empty
    if not attribute.default_value.name:
        return None
    value = onnx.helper.get_attribute_value(attribute.default_value)
    if isinstance(value, bytes):
        return value.decode()
    return tuple(v.decode() if isinstance(v, bytes) else v for v in value) if isinstance(value, list) else value


@pytest.mark.parametrize(("table", "op"), RULES, ids=[f"{table.name}-{op}" for table, op in RULES])
def test_a_rule_has_the_signature_of_the_standard(table: OpTable, op: str) -> None:
    schema = schema_of(op)
    if op in table.simple:
        assert not schema.attributes
        assert len(schema.inputs) == schema.min_input == 1 or len(schema.inputs) == 2
        return
    parameters = inspect.signature(table.operators["", op]).parameters.values()
    positional = [p for p in parameters if p.kind is not p.KEYWORD_ONLY]
    assert [p.name for p in positional] == [item.name for item in schema.inputs]
    for parameter, item in zip(positional, schema.inputs, strict=True):
        variadic = item.option == OpSchema.FormalParameterOption.Variadic
        assert (parameter.kind is parameter.VAR_POSITIONAL) == variadic
        optional = item.option == OpSchema.FormalParameterOption.Optional
        assert (parameter.default is None) == optional
    keywords = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "context"}
    assert keywords == {name: default_of(attribute) for name, attribute in schema.attributes.items()}


def test_dtype_numbers_are_those_of_onnx() -> None:
    for number, name in ONNX_DTYPES.items():
        assert (
            onnx.TensorProto.DataType.Name(number).lower().replace("double", "float64").replace("float", "float32", 1)
        )
        if name not in ("string", "bfloat16", "int4", "uint4", "float4e2m1") and not name.startswith("float8"):
            assert str(onnx.helper.tensor_dtype_to_np_dtype(number)) == name


TABLE = OpTable("test", simple={"Neg": np.negative})


@TABLE.op("Add", "Sub")
def add(A: Operand, B: Operand) -> Any:
    return [A, B]


@TABLE.op("Reshape")
def reshape(data: Any, shape: Ints, *, allowzero: int = 0) -> Any:
    return data.reshape(shape)


@TABLE.op("Range")
def arange(start: Static, limit: Static, delta: Static) -> Any:
    return np.arange(start.item(), limit.item(), delta.item())


@TABLE.op("Split")
def split(input: Any, split: Ints | None = None, *, axis: int = 0, context: Context) -> Any:
    return tuple(np.split(input, len(context.node.outputs), axis))


@TABLE.op("If")
def if_(cond: Any, *, then_branch: Body, else_branch: Body, context: Context) -> Any:
    return context.body(then_branch if cond else else_branch)


@TABLE.op("Refuse")
def refuse(X: Any) -> Any:
    raise UnsupportedOp("it never works")


def scalar(value: float, role: Any = "constant", shape: tuple[int, ...] = ()) -> Weight:
    return Weight(dtype="float32", shape=shape, fill=Constant(value=value), role=role)


def run(
    *nodes: Node, outputs: tuple[str, ...] = ("y",), weights: dict[str, Weight] | None = None, **arrays: np.ndarray
) -> tuple[Any, ...]:
    weights = weights or {}
    known = {
        name: np.full(w.shape, w.fill.value, w.dtype) for name, w in weights.items() if isinstance(w.fill, Constant)
    }
    known |= {
        name: np.array(w.fill.data, w.dtype).reshape(w.shape)
        for name, w in weights.items()
        if isinstance(w.fill, Values)
    }
    inputs = tuple(Input(name=name, dtype="float32", shape=array.shape) for name, array in arrays.items())
    graph = Graph(name="g", inputs=inputs, outputs=outputs, weights=weights, nodes=nodes)
    return Scope(TABLE, graph, {**known, **arrays}, known, np.asarray).run()


def node(op: str, *inputs: str, outputs: tuple[str, ...] = ("y",), **attrs: Any) -> Node:
    return Node(op=op, name=f"the_{op}", inputs=inputs, outputs=outputs, attrs=attrs)


X = np.ones((2, 3), np.float32)


def test_a_one_element_constant_arrives_as_a_number() -> None:
    (y,) = run(node("Add", "x", "c"), weights={"c": scalar(2.0)}, x=X)
    assert y[1] == 2.0
    assert type(y[1]) is float
    (y,) = run(node("Add", "c", "x"), weights={"c": scalar(2.0, shape=(1, 1))}, x=X)
    assert type(y[0]) is float


@pytest.mark.parametrize("role", ["parameter", "buffer"])
def test_a_one_element_weight_stays_an_array(role: str) -> None:
    (y,) = run(node("Add", "x", "c"), weights={"c": scalar(2.0, role)}, x=X)
    assert isinstance(y[1], np.ndarray)


def test_a_constant_of_higher_rank_stays_an_array_since_it_decides_the_shape() -> None:
    (y,) = run(node("Add", "x", "c"), weights={"c": scalar(2.0, shape=(1, 1, 1))}, x=X)
    assert y[1].shape == (1, 1, 1)


def test_two_constants_stay_arrays() -> None:
    (y,) = run(node("Add", "c", "d"), weights={"c": scalar(2.0), "d": scalar(3.0)})
    assert isinstance(y[0], np.ndarray)
    assert isinstance(y[1], np.ndarray)


def test_compile_time_inputs() -> None:
    shape = Weight(dtype="int64", shape=(2,), fill=Values(data=(3, 2)), role="constant")
    (y,) = run(node("Reshape", "x", "s"), weights={"s": shape}, x=X)
    assert y.shape == (3, 2)
    assert TABLE.compile_time_inputs(node("Reshape", "x", "s")) == (1,)
    assert TABLE.compile_time_inputs(node("Range", "a", "b", "c")) == (0, 1, 2)
    with pytest.raises(UnsupportedOp, match=r"test: input 1 \('s'\) of Reshape must be known .*node 'the_Reshape'"):
        run(node("Reshape", "x", "s"), x=X, s=np.array([3, 2]))


def test_several_outputs_and_skipped_ones() -> None:
    (y,) = run(node("Split", "x", outputs=("", "y"), axis=0), x=X)
    assert y.shape == (1, 3)


def test_an_unknown_operator_names_itself_and_its_node() -> None:
    with pytest.raises(UnsupportedOp, match=r"test: no lowering for ai\.onnx::Foo \(node 'the_Foo'\)"):
        run(node("Foo", "x"), x=X)
    strange = Node(op="Foo", name="n", domain="com.acme")
    with pytest.raises(UnsupportedOp, match=r"com\.acme::Foo"):
        TABLE.entry(strange)


def test_a_refusal_inside_a_rule_gets_the_node() -> None:
    with pytest.raises(UnsupportedOp, match=r"test: ai\.onnx::Refuse: it never works \(node 'the_Refuse'\)"):
        run(node("Refuse", "x"), x=X)


def test_a_body_sees_outer_names_and_its_own_weights() -> None:
    then = Body(outputs=("z",), weights={"c": scalar(5.0)}, nodes=(node("Add", "x", "c", outputs=("z",)),))
    other = Body(outputs=("x",))
    (y,) = run(node("If", "cond", then_branch=then, else_branch=other), x=X, cond=np.array(1.0))
    assert y[0] is X
    assert y[1] == 5.0
    (y,) = run(node("If", "cond", then_branch=then, else_branch=other), x=X, cond=np.array(0.0))
    np.testing.assert_array_equal(y, X)


def test_registering_twice_is_an_error() -> None:
    with pytest.raises(ValueError, match="Add is registered twice"):
        TABLE.op("Add")(add)


def test_types_are_found_in_enclosing_graphs() -> None:
    outer = Graph(
        name="g", inputs=(Input(name="x", dtype="int64", shape=(2,)),), values={"v": Value(dtype="bool", shape=())}
    )
    inner = Scope(TABLE, Body(), {}, {}, np.asarray, Scope(TABLE, outer, {}, {}, np.asarray))
    assert inner.type_of("x") == Value(dtype="int64", shape=(2,))
    assert inner.type_of("v").dtype == "bool"
    with pytest.raises(KeyError):
        inner.type_of("nowhere")
