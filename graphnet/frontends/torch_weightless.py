"""Weightless PyTorch modules: built without storage for parameters, traced with fake ones."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

SEED = 0
"""Builders that draw (rotary noise, random projections kept as buffers) draw from this seed."""


def stub_torchvision() -> None:
    """Let a torchvision without compiled operators be imported: timm and transformers only want its Python part.

    Its import registers shape rules for operators that a CPU-only PyTorch of another build lacks, and fails there.
    """
    sys.modules.setdefault("torchvision._meta_registrations", types.ModuleType("torchvision._meta_registrations"))


@contextmanager
def without_parameter_storage() -> Iterator[None]:
    """Inside, modules keep their parameters on the meta device; buffers stay real: graphs depend on their values."""
    register = nn.Module.register_parameter

    def register_meta(self: nn.Module, name: str, param: nn.Parameter | None) -> None:
        if param is not None and not param.is_meta:
            param = nn.Parameter(param.detach().to("meta"), requires_grad=param.requires_grad)
        register(self, name, param)

    nn.Module.register_parameter = register_meta  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module.register_parameter = register  # type: ignore[method-assign]


def build(factory: Callable[[], nn.Module], *, weightless: bool) -> nn.Module:
    """The module in inference mode, the same for the same factory.

    Falls back to real parameters where a builder needs their values (buffers derived from parameters end on `meta`).
    """
    if weightless:
        with torch.random.fork_rng(devices=[]), without_parameter_storage():
            torch.manual_seed(SEED)
            module = factory().eval()
        if not any(buffer.is_meta for buffer in module.buffers()):
            return module
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return factory().eval()


def fake_parameters(module: nn.Module) -> FakeTensorMode:
    """Replace every parameter of `module`, in place, by a fake one; ties between parameters stay ties."""
    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv())
    fakes: dict[int, nn.Parameter] = {}
    for owner in module.modules():
        for name, parameter in owner._parameters.items():
            if parameter is None:
                continue
            if id(parameter) not in fakes:
                with mode:
                    empty = torch.empty(parameter.shape, dtype=parameter.dtype)
                fakes[id(parameter)] = nn.Parameter(empty, requires_grad=False)
            owner._parameters[name] = fakes[id(parameter)]
    return mode


def canonical_names(module: nn.Module) -> dict[str, str]:
    """Every name of every parameter and buffer to the first name of the same tensor."""
    first: dict[int, str] = {}
    names: dict[str, str] = {}
    tensors = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    for name, tensor in tensors:
        names[name] = first.setdefault(id(tensor), name)
    return names
