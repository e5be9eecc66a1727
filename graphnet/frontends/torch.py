"""Capture from PyTorch: a module, function or factory becomes a graph that is proven equal to its source."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
import torch
from torch import nn

from graphnet.errors import CaptureError, UsageError
from graphnet.frontends import check as gate
from graphnet.frontends import torch_export, torch_inputs, torch_recipes, torch_weightless
from graphnet.ir import finalize, fold, onnx_bridge, tensors
from graphnet.ir.graph import Constant, Dim, Domain, Fill, Graph, Input, Source, Weight

WeightMode = Literal["recipe", "statistics", "exact"]
CHECK_LIMIT = 1_500_000_000
"""Sources of more parameters are not run for comparison; their graphs say `checked: false`."""
OUTPUT_LIMIT = 1e6
"""A model whose outputs exceed this with recipe weights would say more about overflow than about a compiler."""


def capture(
    model: nn.Module | Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    name: str,
    domain: Domain = "other",
    graph_id: str = "",
    dims: Mapping[str, tuple[int, int] | Dim] | None = None,
    axes: Mapping[str, Mapping[int, str]] | None = None,
    weights: WeightMode = "statistics",
    fills: Mapping[str, Fill] | None = None,
    input_fills: Mapping[str, Fill] | None = None,
    source: Source | None = None,
    check: bool = True,
) -> Graph:
    """Capture a built module or a function called with example `args` and `kwargs`.

    `dims` names symbolic dimensions with their range, `{"batch": (1, 64)}`; `axes` places them,
    `{"x": {0: "batch"}}` (default: the first is axis 0 of every tensor). The default size is the example's.
    `weights`: `statistics` (each parameter becomes a normal recipe of its mean and spread), `recipe` (scales by layer
    kind, the values are never read) or `exact` (the elements themselves are stored). `fills` overrides the recipe of
    parameters whose dotted name matches an `fnmatch` pattern; `input_fills` the data of inputs by name.

    The graph keeps composite operators and BatchNormalization, and nothing is fused. Unless `check` is off it is run in
    ONNX Runtime against the source, at the default sizes and at a second set of sizes. Raises CaptureError when the
    model cannot be exported or a result differs; UsageError for wrong `dims` or `axes`.
    """
    module = model if isinstance(model, nn.Module) else _FunctionModule(model)
    module = copy.deepcopy(module).eval()
    kwargs = kwargs or {}
    ranges = {key: _as_dim(key, value) for key, value in (dims or {}).items()}
    call = torch_inputs.from_examples(module, args, kwargs, ranges, axes, input_fills or {})
    ranges = _defaults_from_examples(ranges, dims or {}, call)
    statistics = _stored_weights(module, weights, fills or {})
    skeleton = copy.deepcopy(module) if check else module
    graph = _trace(skeleton, call, ranges, statistics, Graph(name=name, domain=domain, graph_id=graph_id))
    label = source or Source(
        model=type(model).__name__ if isinstance(model, nn.Module) else getattr(model, "__name__", "")
    )
    return _finish(graph, call, module if check else None, label, "torch.export")


def capture_factory(
    factory: Callable[[], nn.Module],
    inputs: Sequence[Input],
    *,
    name: str,
    domain: Domain = "other",
    graph_id: str = "",
    dims: Mapping[str, Dim] | None = None,
    fills: Mapping[str, Fill] | None = None,
    source: Source | None = None,
    check: bool = True,
) -> Graph:
    """Capture the module that `factory` builds, without storage for its parameters; `inputs` are its keyword arguments.

    For the comparison (`check`) the module is built a second time for real, holding the graph's own recipe weights.
    Raises as `capture` does.
    """
    call = torch_inputs.declared(inputs)
    module = torch_weightless.build(factory, weightless=True)
    recipes = _stored_weights(module, "recipe", fills or {})
    count = sum(parameter.numel() for parameter in module.parameters())
    graph = _trace(module, call, dict(dims or {}), recipes, Graph(name=name, domain=domain, graph_id=graph_id))
    del module
    compared = check and count <= CHECK_LIMIT
    real = torch_weightless.build(factory, weightless=False) if compared else None
    return _finish(graph, call, real, source or Source(), "torch.export, weightless")


class _FunctionModule(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.forward = function


def _as_dim(name: str, value: tuple[int, int] | Dim) -> Dim:
    dim = value if isinstance(value, Dim) else Dim(min=value[0], max=value[1], default=value[0])
    if not 0 <= dim.min <= dim.default <= dim.max:
        raise UsageError(
            f"dimension '{name}' needs 0 <= min <= default <= max, got {dim.min}, {dim.default}, {dim.max}"
        )
    return dim


def _defaults_from_examples(
    ranges: Mapping[str, Dim], given: Mapping[str, tuple[int, int] | Dim], call: torch_inputs.Call
) -> dict[str, Dim]:
    sizes: dict[str, int] = {}
    examples = [leaf for leaf in call.leaves if isinstance(leaf, torch.Tensor)]
    for item, tensor in zip(call.inputs, examples, strict=True):
        sizes |= {dim: size for dim, size in zip(item.shape, tensor.shape, strict=True) if isinstance(dim, str)}
    result = {}
    for name, dim in ranges.items():
        if name not in sizes:
            raise UsageError(f"dimension '{name}' is not an axis of any input; give `axes`")
        if not isinstance(given[name], Dim):
            dim = msgspec.structs.replace(dim, default=min(max(sizes[name], dim.min), dim.max))
        result[name] = dim
    return result


def _stored_weights(module: nn.Module, mode: WeightMode, fills: Mapping[str, Fill]) -> dict[str, Weight]:
    """Weights by canonical dotted name, for every parameter and for the buffers that get a recipe."""
    stored: dict[str, Weight] = {}
    for name, parameter in module.named_parameters():
        if mode == "recipe":
            fill = torch_recipes.parameter_recipe(module, name, fills)
        elif mode == "statistics":
            fill = torch_recipes.override(name, fills) or torch_recipes.statistics_recipe(parameter)
        else:
            fill = torch_recipes.exact_recipe(parameter)
        stored[name] = Weight(
            dtype=torch_inputs.dtype_of(parameter), shape=tuple(parameter.shape), fill=fill, role="parameter"
        )
    for name, buffer in module.named_buffers():
        recipe = torch_recipes.buffer_recipe(module, name) if mode == "recipe" else None
        if recipe is not None:
            stored[name] = Weight(
                dtype=torch_inputs.dtype_of(buffer), shape=tuple(buffer.shape), fill=recipe, role="buffer"
            )
    return stored


def _trace(
    module: nn.Module, call: torch_inputs.Call, dims: dict[str, Dim], stored: Mapping[str, Weight], label: Graph
) -> Graph:
    names = torch_weightless.canonical_names(module)
    torch_weightless.fake_parameters(module)
    flat = torch_export.FlatModule(module, call.spec, call.leaves)
    examples = torch_inputs.make(call.inputs, torch_inputs.example_sizes(dims))
    axes = [{axis: dim for axis, dim in enumerate(item.shape) if isinstance(dim, str)} for item in call.inputs]
    model = torch_export.export(flat, examples, axes, dims)
    torch_export.rename_symbols(model, axes)
    moved = torch_export.detach_weights(model, stored, names)
    buffers = {name for name, _ in module.named_buffers(remove_duplicate=False)}
    proto = torch_export.to_proto(model, [item.name for item in call.inputs], flat.output_names)
    recipes = {name: stored[name] for name in moved}
    graph = onnx_bridge.from_onnx(
        proto,
        parameters=[name for name, weight in recipes.items() if weight.role == "parameter"],
        buffers=[name for name, weight in recipes.items() if weight.role == "buffer"],
        fills={name: weight.fill for name, weight in recipes.items()} | {item.name: item.fill for item in call.inputs},
        dims=dims,
        name=label.name,
        domain=label.domain,
        graph_id=label.graph_id,
        framework=f"PyTorch {torch.__version__.partition('+')[0]}",
    )
    return _mark_buffers(fold.clean(graph), buffers)


def _mark_buffers(graph: Graph, buffers: set[str]) -> Graph:
    """Role `buffer` for the exact buffers, which clean-up was told to be literals: their values may be folded."""
    weights = {
        name: msgspec.structs.replace(weight, role="buffer") if name in buffers else weight
        for name, weight in graph.weights.items()
    }
    return msgspec.structs.replace(graph, weights=weights)


def _finish(graph: Graph, call: torch_inputs.Call, module: nn.Module | None, source: Source, capture: str) -> Graph:
    config = dict(source.config)
    error: float | None = None
    if module is None:
        config["checked"] = False
    else:
        error, instability = _compare(graph, call, module)
        if instability is not None:
            config["float64_error"] = instability
    source = msgspec.structs.replace(
        source, capture=source.capture or capture, mode=source.mode or "inference", config=config, max_error=error
    )
    graph = finalize.finalize(msgspec.structs.replace(graph, source=source))
    graph.validate()
    return graph


def _compare(graph: Graph, call: torch_inputs.Call, module: nn.Module) -> tuple[float, float | None]:
    """Largest error over the checked sizes, and the source's own float32-to-float64 error at the default sizes."""
    weights = tensors.weights(graph, 0)
    load_weights(module, weights)
    flat = torch_export.FlatModule(module, call.spec, call.leaves).eval()
    runs = []
    for sizes in _checked_sizes(graph.dims):
        bound = graph.bind(**sizes) if sizes else graph
        feed = tensors.inputs(bound, 0)
        runs.append((bound, feed, _outputs(flat, graph, feed)))
    masked = _half_masked(graph, runs[0][1])
    masked_runs = [(runs[0][0], masked, _outputs(flat, graph, masked))] if masked else []
    instability = _instability(flat, graph, runs[0][1], runs[0][2])
    worst = max(
        gate.compare(bound, feed, _bound_weights(bound, weights), expected, instability=instability)
        for bound, feed, expected in runs
    )
    for bound, feed, expected in masked_runs:
        gate.compare(bound, feed, _bound_weights(bound, weights), expected, instability=instability)
    for name, array in zip(graph.outputs, runs[0][2], strict=True):
        if np.issubdtype(array.dtype, np.inexact) and not np.abs(array).max(initial=0.0) <= OUTPUT_LIMIT:
            raise CaptureError(
                f"{graph.name}: output '{name}' reaches {np.abs(array).max():.3g} with recipe weights;"
                " give `fills` of a smaller scale"
            )
    return _round_up(worst), None if instability is None else _round_up(max(instability, default=0.0))


def _half_masked(graph: Graph, feed: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The inputs with every mask of ones (an integer or bool input that is 1 throughout) cleared in its second half.

    With ones alone a capture that lost the mask would pass. Empty where there is no mask.
    """
    masks = [
        item.name for item in graph.inputs
        if item.dtype in ("int64", "int32", "bool") and isinstance(item.fill, Constant) and item.fill.value == 1
    ]  # fmt: skip
    cleared = {name: feed[name].copy() for name in masks}
    for array in cleared.values():
        array[..., array.shape[-1] // 2 :] = 0
    return dict(feed) | cleared if cleared else {}


def _bound_weights(bound: Graph, known: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Weights of a bound graph: the captured graph's, and the literals that binding folded."""
    literals = {name: weight for name, weight in bound.weights.items() if name not in known}
    kept = {name: known[name] for name in bound.weights if name in known}
    return kept | tensors.weights(msgspec.structs.replace(bound, weights=literals), 0)


def _checked_sizes(dims: Mapping[str, Dim]) -> list[dict[str, int]]:
    default = {name: dim.default for name, dim in dims.items()}
    other = {
        name: dim.default + 1 if dim.default < dim.max else max(dim.min, dim.default - 1) for name, dim in dims.items()
    }
    return [default, other] if dims else [default]


def load_weights(module: nn.Module, weights: Mapping[str, np.ndarray]) -> None:
    """Copy arrays into the parameters and buffers of the same dotted name; literals of the graph have none."""
    owned = dict(module.named_parameters()) | dict(module.named_buffers())
    with torch.no_grad():
        for name, tensor in owned.items():
            if name in weights:
                tensor.copy_(torch_inputs.to_torch(weights[name]))


def _outputs(flat: nn.Module, graph: Graph, feed: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    arguments = [torch_inputs.to_torch(feed[item.name]) for item in graph.inputs]
    with torch.no_grad():
        return [torch_inputs.to_numpy(tensor) for tensor in flat(*arguments)]


def _instability(
    flat: nn.Module, graph: Graph, feed: Mapping[str, np.ndarray], expected: Sequence[np.ndarray]
) -> list[float] | None:
    """Error of each output between the source in float32 and in float64; None where it cannot run in float64."""
    wide = {name: array.astype(np.float64) if array.dtype == np.float32 else array for name, array in feed.items()}
    try:
        exact = _outputs(flat.double(), graph, wide)
    except (RuntimeError, TypeError, ValueError):
        return None
    return [
        gate.relative_error(want.astype(np.float64), got.astype(np.float64))
        if np.issubdtype(want.dtype, np.floating)
        else 0.0
        for want, got in zip(expected, exact, strict=True)
    ]


def _round_up(value: float) -> float:
    """The next power of ten: the same bytes from machines whose last bits differ."""
    return float(f"1e{math.ceil(math.log10(value))}") if value > 0 else 0.0
