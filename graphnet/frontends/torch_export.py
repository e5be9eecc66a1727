"""From a PyTorch module to an unoptimised ONNX model whose parameters are graph inputs: torch.export, torch.onnx."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from graphnet.errors import CaptureError, GraphFormatError
from graphnet.frontends import torch_translations
from graphnet.ir import dims as dimensions
from graphnet.ir.graph import OPSET, Dim

if TYPE_CHECKING:
    import onnx
    import onnx_ir

PREFIX = "module."
Axes = Mapping[int, str]
"""Axis number of an argument to the symbol that stands for its size."""


class FlatModule(nn.Module):
    """`module` called with a flat list of tensors, answering a flat tuple of the tensors among its outputs."""

    def __init__(self, module: nn.Module, spec: pytree.TreeSpec, leaves: Sequence[Any]) -> None:
        super().__init__()
        self.module = module
        self._spec, self._leaves = spec, list(leaves)
        self._names = _Names()

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Non-tensor leaves of the arguments are fixed at capture."""
        rest = iter(tensors)
        leaves = [next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in self._leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        result = self.module(*args, **kwargs)
        self._names.found = output_names(result)
        return tuple(leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor))

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs of the last call (see `output_names`)."""
        return self._names.found


class _Names:
    """A box that torch.export does not look into: it restores a module's own attributes after tracing."""

    def __init__(self) -> None:
        self.found: list[str] = []


def output_names(result: object) -> list[str]:
    """Names of the tensors in a module's result: `logits`, `states_0`; `output_0` where the structure has no keys."""
    named = dict(result) if isinstance(result, Mapping) else result
    paths, _ = pytree.tree_flatten_with_path(named)
    names = [
        "_".join(re.findall(r"\w+", pytree.keystr(path))) for path, leaf in paths if isinstance(leaf, torch.Tensor)
    ]
    if names == [""]:
        return ["output"]
    return [f"output_{name}" if name.isdigit() or not name else name for name in names]


def export(
    module: FlatModule, tensors: Sequence[torch.Tensor], axes: Sequence[Axes], dims: Mapping[str, Dim]
) -> onnx_ir.Model:
    """Trace `module` and translate it, with composite operators kept and no optimisation.

    `axes` gives the symbolic axes of each tensor. Raises CaptureError with the exporter's own reason.
    """
    symbols = {name: torch.export.Dim(name, min=dim.min, max=dim.max) for name, dim in dims.items()}
    dynamic = tuple({axis: symbols[name] for axis, name in item.items()} for item in axes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with torch.no_grad():
                program = torch.export.export(
                    module, tuple(tensors), dynamic_shapes=(dynamic,) if dims else None, strict=False
                )
            exported = torch.onnx.export(
                program,
                dynamo=True,
                optimize=False,
                opset_version=OPSET,
                verbose=False,
                custom_translation_table=torch_translations.table(),
            )
        except Exception as error:  # any: torch.export runs the user's own code and passes its errors through
            raise CaptureError(_reason(error)) from error
    if exported is None:
        raise CaptureError("torch.onnx.export gave no program")
    torch_translations.repair_splits(exported.model)
    return exported.model


def _reason(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:6])[:600]}"


def rename_symbols(model: onnx_ir.Model, axes: Sequence[Axes]) -> None:
    """Give the exporter's symbols (`s77`) the names of the caller's dimensions, in every shape of the model.

    Shapes that the dimension grammar cannot spell are dropped: inference at import finds them again.
    """
    names: dict[str, str] = {}
    for value, item in zip(model.graph.inputs, axes, strict=False):
        for axis, name in item.items():
            shape = value.shape
            found = None if shape is None else shape[axis]
            if isinstance(found, int):
                raise CaptureError(
                    f"dimension '{name}' was specialised to {found} by the model; leave it out of dims, or change the"
                    " model"
                )
            names[str(getattr(found, "value", found))] = name
    for value in _all_values(model):
        if value.shape is not None:
            _rename_shape(value, names)


def _rename_shape(value: onnx_ir.Value, names: Mapping[str, str]) -> None:
    import onnx_ir

    dims: list[int | str] = []
    for dim in value.shape or ():
        if isinstance(dim, int):
            dims.append(dim)
            continue
        text = re.sub(r"\b[A-Za-z_]\w*\b", lambda match: names.get(match[0], match[0]), str(dim.value))
        try:
            known = dimensions.symbols(text) <= set(names.values())
        except GraphFormatError:
            known = False
        if not known:
            value.shape = None
            return
        dims.append(text)
    value.shape = onnx_ir.Shape(dims)


def _all_values(model: onnx_ir.Model) -> list[onnx_ir.Value]:
    values = [*model.graph.inputs, *model.graph.initializers.values()]
    for node in model.graph.all_nodes():
        values.extend(node.outputs)
    return values


def detach_weights(model: onnx_ir.Model, recipes: Collection[str], canonical: Mapping[str, str]) -> list[str]:
    """Turn the initializers that get a recipe into graph inputs, so that no clean-up can look at their values.

    Initializers lose the wrapper's prefix; tied ones are merged into the first of their names. Returns the names moved.
    """
    moved: dict[str, onnx_ir.Value] = {}
    for key, value in list(model.graph.initializers.items()):
        name = canonical.get(key.removeprefix(PREFIX), key.removeprefix(PREFIX))
        if name not in recipes:
            value.name = name
            continue
        model.graph.initializers.pop(key)
        if name in moved:
            value.replace_all_uses_with(moved[name])
            continue
        value.const_value, value.name = None, name
        moved[name] = value
        model.graph.inputs.append(value)
    return list(moved)


def to_proto(model: onnx_ir.Model, inputs: Sequence[str], outputs: Sequence[str]) -> onnx.ModelProto:
    """Serialise with the caller's names for inputs and outputs; an output name that is taken gets `_output` added."""
    import onnx_ir

    _separate_outputs(model)
    results = set(model.graph.outputs)
    taken = {value.name for value in _all_values(model) if value not in results} | set(inputs)
    for value, name in zip(model.graph.inputs, inputs, strict=False):
        value.name = name
    for value, name in zip(model.graph.outputs, outputs, strict=True):
        while name in taken:
            name += "_output"
        taken.add(name)
        value.name = name
    return onnx_ir.to_proto(model)


def _separate_outputs(model: onnx_ir.Model) -> None:
    """Give outputs that are inputs, weights or other outputs a value of their own, as GraphIR names things once."""
    import onnx_ir

    seen: set[onnx_ir.Value] = set()
    for index, value in enumerate(model.graph.outputs):
        if value.producer() is None or value in seen:
            node = onnx_ir.Node("", "Identity", [value])
            node.outputs[0].shape, node.outputs[0].type = value.shape, value.type
            model.graph.append(node)
            model.graph.outputs[index] = node.outputs[0]
        seen.add(value)
