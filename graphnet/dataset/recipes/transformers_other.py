"""Vision, audio and science models of transformers, from configurations with random weights."""

from __future__ import annotations

from functools import partial
from typing import Any

from graphnet.dataset.recipe import BATCH, Recipe, floats, image, indices, ones
from graphnet.frontends import registry
from graphnet.ir.graph import Domain, Input

_WAVE = (floats("input_values", "batch", 16000),)
_SPEECH = {"num_hidden_layers": 6}


def _recipe(
    graph_id: str, name: str, subset: Domain, model: str, inputs: tuple[Input, ...], build: Any = None, **config: Any
) -> Recipe:
    return Recipe(
        graph_id=f"GN-2026-{graph_id}",
        name=name,
        subset=subset,
        package="transformers",
        model=model,
        license="Apache-2.0",
        factory=partial(build or registry.transformers_model, model, **config),
        inputs=inputs,
        dims=BATCH,
        config={key: value for key, value in config.items() if isinstance(value, int | float | str)},
    )


def _whisper_encoder(model: str, **config: Any) -> Any:
    return registry.transformers_model(model, **config).encoder


def _plain_weights(model: str, **config: Any) -> Any:
    """Without weight normalisation, which inference code folds away when it loads a checkpoint."""
    from graphnet.dataset.recipes import wrappers

    return wrappers.without_weight_norm(registry.transformers_model(model, **config))


RECIPES = (
    _recipe(
        "CV-019",
        "segformer_b0",
        "vision",
        "SegformerForSemanticSegmentation",
        (image(256, name="pixel_values"),),
        num_labels=150,
    ),
    _recipe(
        "CV-020",
        "yolos_tiny",
        "vision",
        "YolosForObjectDetection",
        (image(224, name="pixel_values"),),
        hidden_size=192,
        num_attention_heads=3,
        intermediate_size=768,
        image_size=(224, 224),
        use_mid_position_embeddings=False,
    ),
    _recipe("AU-001", "wav2vec2", "audio", "wav2vec2", _WAVE, build=_plain_weights, **_SPEECH),
    _recipe(
        "AU-002",
        "hubert_stable",
        "audio",
        "hubert",
        _WAVE,
        build=_plain_weights,
        feat_extract_norm="layer",
        do_stable_layer_norm=True,
        **_SPEECH,
    ),
    _recipe(
        "AU-003",
        "whisper_tiny_encoder",
        "audio",
        "whisper",
        (floats("input_features", "batch", 80, 1000),),
        build=_whisper_encoder,
        d_model=384,
        encoder_layers=4,
        encoder_attention_heads=6,
        encoder_ffn_dim=1536,
        max_source_positions=500,
    ),
    _recipe(
        "AU-004",
        "ast_tiny",
        "audio",
        "audio-spectrogram-transformer",
        (floats("input_values", "batch", 256, 128),),
        hidden_size=192,
        num_attention_heads=3,
        intermediate_size=768,
        max_length=256,
    ),
    _recipe(
        "AU-005",
        "hifigan_vocoder",
        "audio",
        "SpeechT5HifiGan",
        (floats("spectrogram", "batch", 20, 80),),
        build=_plain_weights,
    ),
    _recipe(
        "SC-001",
        "esm2_8m",
        "science",
        "esm",
        (indices("input_ids", 33, "batch", 128), ones("attention_mask", "batch", 128)),
        vocab_size=33,
        hidden_size=320,
        num_hidden_layers=6,
        num_attention_heads=20,
        intermediate_size=1280,
        position_embedding_type="rotary",
        token_dropout=False,
        pad_token_id=1,
        mask_token_id=32,
        emb_layer_norm_before=False,
    ),
)
