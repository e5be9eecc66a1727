"""Language models of transformers, from configurations with random weights."""

from __future__ import annotations

from functools import partial
from typing import Any

from graphnet.dataset.recipe import BATCH, Recipe, floats, image, indices, ones
from graphnet.frontends import registry
from graphnet.ir.graph import Dim, Dimension, Fill, Input, Normal

_SMALL: dict[str, Any] = {"hidden_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8, "vocab_size": 32000}
_LLAMA: dict[str, Any] = _SMALL | {"num_key_value_heads": 4, "intermediate_size": 1536}
_QWEN: dict[str, Any] = _SMALL | {"num_key_value_heads": 2, "intermediate_size": 1536, "head_dim": 64}
_CACHE_DIMS = BATCH | {"past": Dim(min=1, max=1000, default=127)}


def _text(vocabulary: int, length: int) -> tuple[Input, ...]:
    return (
        indices("input_ids", vocabulary, "batch", length),
        ones("attention_mask", "batch", length),
    )


def _causal(vocabulary: int, length: int) -> tuple[Input, ...]:
    return (indices("input_ids", vocabulary, "batch", length),)


def _cached(vocabulary: int, layers: int, heads: int, width: int, length: Dimension = "past") -> tuple[Input, ...]:
    """One new token after `length` cached ones (a number where grouped keys keep the export from being symbolic)."""
    past = [
        floats(f"past_{kind}_{layer}", "batch", heads, length, width)
        for layer in range(layers)
        for kind in ("key", "value")
    ]
    return (indices("input_ids", vocabulary, "batch", 1), *past)


def _cached_step(model: str, **config: Any) -> Any:
    from graphnet.dataset.recipes import wrappers

    return wrappers.CachedStep(registry.transformers_model(model, use_cache=True, **config))


def _recipe(
    number: int,
    name: str,
    model: str,
    inputs: tuple[Input, ...],
    dims: dict[str, Dim] = BATCH,
    build: Any = registry.transformers_model,
    fills: dict[str, Fill] | None = None,
    **config: Any,
) -> Recipe:
    return Recipe(
        graph_id=f"GN-2026-TR-{number:03d}",
        name=name,
        subset="transformer",
        package="transformers",
        model=model,
        license="Apache-2.0",
        factory=partial(build, model, **config),
        inputs=inputs,
        dims=dims,
        fills=fills or {},
        config={key: value for key, value in config.items() if isinstance(value, int | float | str)},
    )


RECIPES = (
    _recipe(1, "bert_base", "bert", _text(30522, 128)),
    _recipe(2, "distilbert", "distilbert", _text(30522, 128)),
    _recipe(3, "roberta_classifier", "RobertaForSequenceClassification", _text(50265, 64), max_position_embeddings=514),
    _recipe(4, "gpt2", "GPT2LMHeadModel", _causal(50257, 64)),
    _recipe(5, "gpt2_decode", "GPT2LMHeadModel", _cached(50257, 12, 12, 64), dims=_CACHE_DIMS, build=_cached_step),
    _recipe(
        6,
        "t5_small",
        "t5",
        (*_text(32128, 64), indices("decoder_input_ids", 32128, "batch", 32)),
        fills={"*.q.weight": Normal(std=0.00552)},  # T5 does not scale its scores; its initialisation does
    ),
    _recipe(7, "llama_small", "LlamaForCausalLM", _causal(32000, 64), **_LLAMA),
    _recipe(8, "llama_decode", "LlamaForCausalLM", _cached(32000, 8, 4, 64, 127), build=_cached_step, **_LLAMA),
    _recipe(9, "qwen3_small", "Qwen3ForCausalLM", _causal(32000, 64), **_QWEN),
    _recipe(
        10,
        "albert_base",
        "albert",
        _text(30000, 128),
        hidden_size=768,
        num_attention_heads=12,
        intermediate_size=3072,
    ),
    _recipe(11, "electra_small", "electra", _text(30522, 128)),
    _recipe(12, "opt_125m", "OPTForCausalLM", _causal(50272, 64)),
    _recipe(
        13,
        "bloom_small",
        "BloomForCausalLM",
        _causal(32000, 64),
        hidden_size=512,
        n_layer=6,
        n_head=8,
        vocab_size=32000,
    ),
    _recipe(
        14,
        "mixtral_small",
        "MixtralForCausalLM",
        _causal(32000, 32),
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=2,
        intermediate_size=512,
        num_local_experts=4,
        vocab_size=32000,
        experts_implementation="batched_mm",
    ),
    _recipe(
        15,
        "clip_vit_b32",
        "clip",
        (
            indices("input_ids", 49408, "batch", 77),
            image(224, name="pixel_values"),
            ones("attention_mask", "batch", 77),
        ),
    ),
    _recipe(
        16,
        "deberta_v2_small",
        "deberta-v2",
        _text(32000, 64),
        hidden_size=512,
        num_hidden_layers=6,
        num_attention_heads=8,
        intermediate_size=2048,
        vocab_size=32000,
        relative_attention=True,
        pos_att_type="p2c|c2p",
    ),
    _recipe(
        17,
        "bart_small",
        "BartForConditionalGeneration",
        (*_text(32000, 64), indices("decoder_input_ids", 32000, "batch", 32)),
        d_model=512,
        encoder_layers=4,
        decoder_layers=4,
        encoder_attention_heads=8,
        decoder_attention_heads=8,
        encoder_ffn_dim=2048,
        decoder_ffn_dim=2048,
        vocab_size=32000,
    ),
    _recipe(
        18,
        "mobilebert",
        "mobilebert",
        _text(30522, 64),
        fills={"*LayerNorm.weight": Normal(mean=0.75, std=0.03)},  # these norms only scale: 1 would double each sum
        num_hidden_layers=12,
    ),
)
