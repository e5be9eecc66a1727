"""Image models of timm, with random weights."""

from __future__ import annotations

from functools import partial

from graphnet.dataset.recipe import BATCH, Recipe, image
from graphnet.frontends import registry
from graphnet.ir.graph import Normal

_MODELS = (
    # number, name, timm model, resolution
    (1, "resnet50", "resnet50", 224),
    (2, "resnet18", "resnet18", 224),
    (3, "mobilenetv3", "mobilenetv3_large_100", 224),
    (4, "efficientnet_b0", "efficientnet_b0", 224),
    (5, "vgg11_bn", "vgg11_bn", 224),
    (6, "densenet121", "densenet121", 224),
    (7, "convnext_tiny", "convnext_tiny", 224),
    (8, "regnety_008", "regnety_008", 224),
    (9, "vit_base", "vit_base_patch16_224", 224),
    (10, "deit_tiny", "deit_tiny_patch16_224", 224),
    (11, "swin_tiny", "swin_tiny_patch4_window7_224", 224),
    (12, "mixer_s16", "mixer_s16_224", 224),
    (13, "inception_v3", "inception_v3", 299),
    (14, "ghostnet", "ghostnet_100", 224),
    (15, "mobilevit_s", "mobilevit_s", 256),
    (16, "levit_128s", "levit_128s", 224),
    (17, "res2net50", "res2net50_26w_4s", 224),
    (18, "poolformer_s12", "poolformer_s12", 224),
)

_GAINS = {"mobilenetv3": 1.3, "efficientnet_b0": 1.5, "inception_v3": 1.4}
"""Means of the normalisation weights that keep signals alive through long chains of activations without shortcuts."""


RECIPES = tuple(
    Recipe(
        graph_id=f"GN-2026-CV-{number:03d}",
        name=name,
        subset="vision",
        package="timm",
        model=model,
        license="Apache-2.0",
        factory=partial(registry.timm_model, model),
        inputs=(image(size),),
        dims=BATCH,
        fills={"*bn*.weight": Normal(mean=_GAINS[name], std=0.05)} if name in _GAINS else {},
    )
    for number, name, model, size in _MODELS
)
