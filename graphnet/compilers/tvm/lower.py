"""From an imported module to one of scheduled kernels: TVM's passes, the user's, and which nodes each kernel covers."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import tvm
from tvm import relax, tirx

from graphnet.compilers import DEFAULT_PASS, Target
from graphnet.compilers.tvm.contract import legalizations
from graphnet.compilers.tvm.fold import fold_constants
from graphnet.compilers.tvm.nodes import Nodes, bound_nodes, covered
from graphnet.compilers.tvm.schedule import schedule_module
from graphnet.compilers.tvm.target import registers
from graphnet.compilers.tvm.tune import seconds, tune
from graphnet.errors import UsageError

_UNSAFE = frozenset({"FastMathTransform", "ToMixedPrecision"})
"""Passes that change float32 arithmetic."""
_NOT_CPU = frozenset({"MetaScheduleApplyDatabase", "VMBuiltinLower"})


@dataclass
class Lowered:
    """A module of kernels and a `main` that calls them in order."""

    module: tvm.IRModule
    nodes: Nodes = field(default_factory=list)
    """GraphIR nodes of each call of a kernel, in the order of the calls."""
    rules: Counter[str] = field(default_factory=Counter)
    """Number of kernels by the rule that scheduled them."""
    details: dict[str, Any] = field(default_factory=dict)
    """What a search did, for the record."""


@cache
def known_passes() -> tuple[str, ...]:
    """Names of TVM's graph passes that need no arguments."""
    found = []
    for name in dir(relax.transform):
        if name[0].isupper() and name not in _NOT_CPU and not isinstance(getattr(relax.transform, name), type):
            try:
                made = getattr(relax.transform, name)()
            except Exception:  # it needs arguments
                continue
            if isinstance(made, tvm.transform.Pass):
                found.append(name)
    return tuple(found)


def check_passes(target: Target) -> None:
    """Raises UsageError for a pass that changes float32 arithmetic where that is forbidden."""
    unsafe = _UNSAFE & set(target.passes)
    if unsafe and target.precision == "float32":
        raise UsageError(f"tvm: pass {min(unsafe)} changes float32 arithmetic, which this run forbids")


def lower(module: tvm.IRModule, names: Mapping[str, str], target: Target, machine: tvm.target.Target) -> Lowered:
    """All that precedes the build. `names` tells the node of a binding."""
    before, after = _split(target.passes)
    with machine:
        for name in before:
            module = _apply(name, module)
        is_ours = machine.kind.name == "llvm" and target.options.get("schedule", "ours") != "none"
        lowered = _ours(module, names, target, machine) if is_ours else _theirs(module, names, machine)
        for name in after:
            lowered.module = _apply(name, lowered.module)
    return lowered


def _ours(module: tvm.IRModule, names: Mapping[str, str], target: Target, machine: tvm.target.Target) -> Lowered:
    steps = [
        relax.transform.FoldBatchnormToConv2D(),
        relax.transform.DecomposeOpsForInference(),
        relax.transform.CanonicalizeBindings(),
        fold_constants,
        *_pipeline(machine).library_dispatch_passes(machine),
        relax.transform.LegalizeOps(legalizations(registers(machine))),
    ]
    for step in steps:
        module = step(module)
    lowered = _fused(module, names, [relax.transform.AnnotateTIROpPattern(), relax.transform.FoldConstant()])
    if limit := seconds(target.options):
        tuned = tune(lowered.module, machine, target.threads, limit)
        lowered.details.update(tuned.details)
        for variable in lowered.module.get_global_vars():
            if variable.name_hint in tuned.functions:
                lowered.module[variable] = tuned.functions[variable.name_hint]
                lowered.rules["tuned"] += 1
    lowered.module = schedule_module(lowered.module, registers(machine), lowered.rules)
    return lowered


def _theirs(module: tvm.IRModule, names: Mapping[str, str], machine: tvm.target.Target) -> Lowered:
    """TVM's default pipeline for the target, up to the kernels."""
    for step in _pipeline(machine).library_dispatch_passes(machine):
        module = step(module)
    passes = _pipeline(machine).legalize_passes(machine)
    if machine.kind.name != "llvm":
        for step in passes:
            module = step(module)
        return Lowered(module)
    position = next(index for index, step in enumerate(passes) if step.info.name == "FuseOps")
    lowered = _fused(module, names, passes[:position])
    lowered.rules["default"] = sum(isinstance(found, tirx.PrimFunc) for _, found in lowered.module.functions_items())
    return lowered


def _fused(module: tvm.IRModule, names: Mapping[str, str], steps: list[Any]) -> Lowered:
    for step in steps:
        module = step(module)
    owners = bound_nodes(module, names)
    fused = relax.transform.FuseOps()(module)
    nodes = covered(module, owners, fused)
    return Lowered(relax.transform.FuseTIR()(fused), nodes)


def _pipeline(machine: tvm.target.Target) -> Any:
    """TVM's module of the passes of its default pipeline for a kind of target."""
    folder = {"llvm": "cpu_generic", "cuda": "cuda"}.get(machine.kind.name, "gpu_generic")
    return importlib.import_module(f"tvm.relax.backend.{folder}.pipeline")


def finish(machine: tvm.target.Target) -> tvm.transform.Pass:
    """The passes between scheduled kernels and the virtual machine's code."""
    passes = [*_pipeline(machine).dataflow_lower_passes(machine), *_pipeline(machine).finalize_passes(machine)]
    return tvm.transform.Sequential(passes)


def _split(passes: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if DEFAULT_PASS not in passes:
        return passes, ()
    place = passes.index(DEFAULT_PASS)
    return passes[:place], passes[place + 1 :]


def _apply(name: str, module: tvm.IRModule) -> tvm.IRModule:
    done = _pass(name)(module)
    if not isinstance(done, tvm.IRModule):
        raise UsageError(f"tvm: pass '{name}' returned {type(done).__name__}, not an IRModule")
    return done


def _pass(name: str) -> Callable[[tvm.IRModule], Any]:
    if ":" not in name:
        found: Callable[[tvm.IRModule], Any] = getattr(relax.transform, name)()
        return found
    module_name, _, attribute = name.partition(":")
    try:
        function = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"tvm: pass '{name}' cannot be imported: {error}") from error
    if isinstance(function, tvm.transform.Pass):
        return lambda module: function(module)
    return lambda module: _called(function, module)


def _called(function: Callable[..., Any], module: tvm.IRModule) -> Any:
    """A function of a module, or one that makes a pass."""
    try:
        made = function()
    except TypeError:
        return function(module)
    return made(module) if isinstance(made, tvm.transform.Pass) else function(module)
