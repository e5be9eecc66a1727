"""Networks of diffusion pipelines from diffusers, at reduced width, with random weights."""

from __future__ import annotations

from functools import partial
from typing import Any

from graphnet.dataset.recipe import Recipe, floats, indices
from graphnet.ir.graph import Dim, Input, Uniform

_DIMS = {"batch": Dim(min=1, max=32, default=1)}
"""PyTorch's upsampling takes another path from batch 64 on."""


def _build(model: str, part: str = "", **config: Any) -> Any:
    from graphnet.frontends import torch_weightless

    torch_weightless.stub_torchvision()
    import diffusers

    built = getattr(diffusers, model)(**config)
    return getattr(built, part) if part else built


def _recipe(
    number: int,
    name: str,
    model: str,
    inputs: tuple[Input, ...],
    part: str = "",
    **config: Any,
) -> Recipe:
    return Recipe(
        graph_id=f"GN-2026-DF-{number:03d}",
        name=name,
        subset="diffusion",
        package="diffusers",
        model=f"{model}.{part}" if part else model,
        license="Apache-2.0",
        factory=partial(_build, model, part, **config),
        inputs=inputs,
        dims=_DIMS,
        config={key: value for key, value in config.items() if isinstance(value, int | float | str)},
    )


_STEP = floats("timestep", "batch", fill=Uniform(low=0.0, high=999.0))

RECIPES = (
    _recipe(
        1,
        "sd_unet",
        "UNet2DConditionModel",
        (
            floats("sample", "batch", 4, 32, 32),
            _STEP,
            floats("encoder_hidden_states", "batch", 77, 256),
        ),
        sample_size=32,
        block_out_channels=(64, 128, 256, 256),
        cross_attention_dim=256,
        attention_head_dim=8,
    ),
    _recipe(
        2,
        "vae_decoder",
        "AutoencoderKL",
        (floats("sample", "batch", 4, 16, 16),),
        part="decoder",
        in_channels=3,
        out_channels=3,
        latent_channels=4,
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        block_out_channels=(32, 64, 128, 128),
        layers_per_block=2,
    ),
    _recipe(
        3,
        "dit_small",
        "DiTTransformer2DModel",
        (floats("hidden_states", "batch", 4, 32, 32), _STEP, indices("class_labels", 1000, "batch")),
        num_attention_heads=6,
        attention_head_dim=64,
        num_layers=12,
        sample_size=32,
        num_embeds_ada_norm=1000,
    ),
    _recipe(
        4,
        "ddpm_unet",
        "UNet2DModel",
        (floats("sample", "batch", 3, 32, 32), _STEP),
        sample_size=32,
        block_out_channels=(64, 128, 128),
        down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
    ),
    _recipe(
        5,
        "sd3_mmdit",
        "SD3Transformer2DModel",
        (
            floats("hidden_states", "batch", 16, 32, 32),
            floats("encoder_hidden_states", "batch", 77, 256),
            floats("pooled_projections", "batch", 128),
            _STEP,
        ),
        sample_size=32,
        num_layers=6,
        attention_head_dim=64,
        num_attention_heads=6,
        joint_attention_dim=256,
        caption_projection_dim=384,
        pooled_projection_dim=128,
        pos_embed_max_size=32,
    ),
)
