"""Source models by name: `timm:resnet50`, `transformers:bert`, `model.onnx`, `package.module:factory`. No downloads."""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from graphnet.errors import CaptureError, UsageError
from graphnet.ir.graph import Constant, Dim, Domain, Graph, Input, Source, Uniform

if TYPE_CHECKING:
    from torch import nn

SEQUENCE = 128
AUDIO_SAMPLES = 16_000
LICENSES = {"timm": "Apache-2.0", "transformers": "Apache-2.0", "diffusers": "Apache-2.0", "torch-geometric": "MIT"}
_LEGAL = "timm:NAME, transformers:TYPE, transformers:CLASS, module:factory, or a path to a .onnx file"


class Entry(NamedTuple):
    """A source found by name: how to build it and what to feed it."""

    name: str
    domain: Domain
    factory: Callable[[], nn.Module]
    inputs: tuple[Input, ...]
    source: Source


def capture_source(source: str, *, batch: int = 1, max_batch: int = 64) -> Graph:
    """Capture the model that `source` names, with a symbolic batch (`batch` by default, up to `max_batch`).

    Raises UsageError for a name that is not known, CaptureError when it cannot be captured.
    """
    if source.endswith(".onnx"):
        from graphnet.frontends import onnx as onnx_files

        return onnx_files.capture(Path(source))
    scheme, colon, name = source.partition(":")
    if not (scheme and colon and name):
        raise UsageError(f"'{source}' names no source; use {_LEGAL}")
    if scheme not in ("timm", "transformers"):
        return _capture_user_factory(scheme, name, batch, max_batch)
    from graphnet.frontends import torch as torch_capture

    entry = timm_entry(name) if scheme == "timm" else transformers_entry(name)
    dims = {"batch": Dim(min=1, max=max(batch, max_batch), default=batch)}
    return torch_capture.capture_factory(
        entry.factory, entry.inputs, name=entry.name, domain=entry.domain, dims=dims, source=entry.source
    )


def timm_model(name: str, **options: Any) -> nn.Module:
    """A timm model with random weights. Raises UsageError."""
    from graphnet.frontends import torch_weightless

    torch_weightless.stub_torchvision()
    timm = _import("timm")
    if not timm.is_model(name):
        near = ", ".join(timm.list_models(f"*{name}*")[:5])
        raise UsageError(f"timm has no model '{name}'{'; near: ' + near if near else ''}")
    model: nn.Module = timm.create_model(name, pretrained=False, **options)
    return model


def timm_entry(name: str) -> Entry:
    """`timm:NAME` at the resolution of its default configuration."""
    from graphnet.frontends import torch_weightless

    with torch_weightless.without_parameter_storage():
        model: Any = timm_model(name)
    shape = model.default_cfg["input_size"]
    inputs = (Input(name="x", dtype="float32", shape=("batch", *shape)),)
    return Entry(name, "vision", partial(timm_model, name), inputs, provenance("timm", name))


def transformers_model(name: str, **config: Any) -> nn.Module:
    """A transformers model (`bert`: the base model of the type; `BertForMaskedLM`: the class) from a configuration.

    `config` overrides the defaults. Caches are off, so that outputs are tensors. Raises UsageError.
    """
    from graphnet.frontends import torch_weightless

    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    torch_weightless.stub_torchvision()
    transformers = _import("transformers")
    if name in transformers.CONFIG_MAPPING:
        made = transformers.CONFIG_MAPPING[name](**{"use_cache": False, **config})
        if type(made) not in transformers.MODEL_MAPPING:
            raise UsageError(f"transformers:{name} has no base model; name a class such as BertForMaskedLM")
        model: nn.Module = transformers.AutoModel.from_config(made)
        return model
    kind: Any = getattr(transformers, name, None)
    if getattr(kind, "config_class", None) is None:
        raise UsageError(f"transformers has no model type or model class '{name}'")
    built: nn.Module = kind(kind.config_class(**{"use_cache": False, **config}))
    return built


def transformers_entry(name: str) -> Entry:
    """`transformers:NAME` with its default configuration and inputs by modality."""
    from graphnet.frontends import torch_weightless

    with torch_weightless.without_parameter_storage():
        model = transformers_model(name)
    inputs = modality_inputs(model)
    domain: Domain = "transformer"
    if any(item.name == "pixel_values" for item in inputs) and len(inputs) == 1:
        domain = "vision"
    elif any(item.name in ("input_values", "input_features") for item in inputs):
        domain = "audio"
    label = name.lower().replace("-", "_")
    return Entry(label, domain, partial(transformers_model, name), inputs, provenance("transformers", name))


def modality_inputs(model: Any, *, sequence: int = SEQUENCE) -> tuple[Input, ...]:
    """Inputs of a transformers model, by the names of its `forward`: text, images, waveforms or spectrograms.

    Raises CaptureError for a model that takes none of them.
    """
    accepted = inspect.signature(model.forward).parameters
    config = model.config
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    length = min(sequence, int(getattr(text, "max_position_embeddings", None) or sequence))
    found: list[Input] = []
    if "input_ids" in accepted and getattr(text, "vocab_size", None):
        found += [_tokens("input_ids", text.vocab_size, length), _mask("attention_mask", length)]
        if "decoder_input_ids" in accepted:
            found.append(_tokens("decoder_input_ids", text.vocab_size, length))
    if "pixel_values" in accepted:
        found.append(_pixels(config))
    if not found and "input_values" in accepted:
        found.append(Input(name="input_values", dtype="float32", shape=("batch", AUDIO_SAMPLES)))
    if not found and "input_features" in accepted:
        frames = 2 * int(getattr(config, "max_source_positions", 1500))
        bins = int(getattr(config, "num_mel_bins", 80))
        found.append(Input(name="input_features", dtype="float32", shape=("batch", bins, frames)))
    if not found:
        raise CaptureError(
            f"{type(model).__name__} takes {', '.join(list(accepted)[:6])}: no input builder for that;"
            " call graphnet.capture with example arguments"
        )
    return tuple(item for item in found if item.name in accepted)


def provenance(package: str, model: str, **config: int | float | str | bool) -> Source:
    """Source metadata with the package's installed version."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        label = f"{package} {version(package)}"
    except PackageNotFoundError:
        label = package
    return Source(package=label, model=model, license=LICENSES.get(package, ""), config=config)


def _tokens(name: str, vocabulary: int, length: int) -> Input:
    return Input(name=name, dtype="int64", shape=("batch", length), fill=Uniform(low=0, high=vocabulary - 1))


def _mask(name: str, length: int) -> Input:
    return Input(name=name, dtype="int64", shape=("batch", length), fill=Constant(value=1))


def _pixels(config: Any) -> Input:
    vision = getattr(config, "vision_config", config)
    size = getattr(vision, "image_size", None) or 224
    height, width = (size, size) if isinstance(size, int) else (size[0], size[1])
    channels = getattr(vision, "num_channels", 3)
    return Input(name="pixel_values", dtype="float32", shape=("batch", channels, height, width))


def _capture_user_factory(module: str, attribute: str, batch: int, max_batch: int) -> Graph:
    """`module:factory`: a callable of no arguments that returns `(model, args)` or `(model, args, kwargs)`."""
    from graphnet.frontends import torch as torch_capture

    factory = getattr(_import(module), attribute, None)
    if not callable(factory):
        raise UsageError(f"module '{module}' has no callable '{attribute}'")
    made = factory()
    if not isinstance(made, Sequence) or not 2 <= len(made) <= 3:
        raise UsageError(f"{module}:{attribute} must return (model, args) or (model, args, kwargs)")
    model, args, kwargs = made[0], made[1], made[2] if len(made) == 3 else {}
    dims = {"batch": Dim(min=1, max=max(batch, max_batch), default=batch)}
    graph = torch_capture.capture(model, args, kwargs, name=attribute, dims=dims)
    return msgspec.structs.replace(graph, source=msgspec.structs.replace(graph.source, package=module))


def _import(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise UsageError(f"package '{error.name}' is not installed (needed for '{module}:...'); install it") from error
