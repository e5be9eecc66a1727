"""Arithmetic on constants done by NumPy before lowering, where TVM would build a kernel for each operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from tvm import relax


def _reshaped(call: relax.Call, array: np.ndarray) -> np.ndarray:
    return array.reshape([int(dim) for dim in call.ty.shape])


def _transposed(call: relax.Call, array: np.ndarray) -> np.ndarray:
    axes = call.attrs.axes
    return array.transpose([int(axis) for axis in axes] if axes else None)


_RULES: dict[str, Callable[..., np.ndarray]] = {
    "relax.add": lambda _, a, b: a + b,
    "relax.subtract": lambda _, a, b: a - b,
    "relax.multiply": lambda _, a, b: a * b,
    "relax.divide": lambda _, a, b: a / b,
    "relax.sqrt": lambda _, a: np.sqrt(a),
    "relax.rsqrt": lambda _, a: 1 / np.sqrt(a),
    "relax.negative": lambda _, a: -a,
    "relax.expand_dims": _reshaped,
    "relax.reshape": _reshaped,
    "relax.squeeze": _reshaped,
    "relax.permute_dims": _transposed,
}


def fold_constants(module: tvm.IRModule) -> tvm.IRModule:
    """`main` with calls on float32 constants alone replaced by their results."""
    folder = _Folder()
    main = folder.visit_expr(module["main"])
    module = tvm.IRModule(dict(module.functions_items()), attrs=module.attrs)
    module["main"] = main
    return relax.transform.DeadCodeElimination()(module)


@relax.expr_functor.mutator
class _Folder(relax.PyExprMutator):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self._known: dict[Any, relax.Expr] = {}

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        if isinstance(binding.value, relax.Call):
            folded = self._folded(binding.value)
            if folded is not None:
                self._known[binding.var] = folded
        super().visit_var_binding_(binding)

    def _folded(self, call: relax.Call) -> relax.Expr | None:
        name = call.op.name if isinstance(call.op, tvm.ir.Op) else ""
        rule = _RULES.get(name)
        if rule is None:
            return None
        arguments = [self._known.get(item, item) for item in call.args if not isinstance(item, relax.ShapeExpr)]
        if not _is_float(call):
            return None
        arrays = [_array(item) for item in arguments]
        if any(array is None for array in arrays):
            return None
        with np.errstate(all="ignore"):
            found = rule(call, *arrays)
        return relax.const(np.ascontiguousarray(found, np.float32))

    def visit_dataflow_var_(self, variable: relax.Var) -> relax.Expr:
        known = self._known.get(variable)
        return known if known is not None else super().visit_dataflow_var_(variable)


def _array(expression: relax.Expr) -> np.ndarray | None:
    """The float32 value of a constant, None for anything else."""
    if isinstance(expression, tvm.tirx.FloatImm):
        return np.asarray(expression.value, np.float32)
    if isinstance(expression, tvm.ir.GenericConst) and _is_float(expression):
        found: np.ndarray = expression.value.numpy()
        return found
    return None


def _is_float(expression: relax.Expr) -> bool:
    found = expression.ty
    return isinstance(found, relax.TensorType) and str(found.dtype) == "float32" and found.shape is not None
