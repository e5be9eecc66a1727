"""Recommenders of Torch-RecHub on Criteo-like columns, with random weights."""

from __future__ import annotations

from functools import partial
from typing import Any

from graphnet.dataset.recipe import Recipe, floats, indices
from graphnet.ir.graph import Dim, Input

_DIMS = {"batch": Dim(min=1, max=8192, default=512)}
_ROWS = 10_000
_WIDTH = 16
_HISTORY = 50
_SPARSE = tuple(f"c{number}" for number in range(1, 27))
_DENSE = tuple(f"i{number}" for number in range(1, 14))
_MLP = {"dims": [256, 128], "dropout": 0.0, "activation": "relu"}
_USER = ("user_id", "gender", "age", "occupation", "city")
_ITEM = ("item_id", "category", "brand")

_CTR_INPUTS = (
    *(floats(name, "batch") for name in _DENSE),
    *(indices(name, _ROWS, "batch") for name in _SPARSE),
)
_TOWER_INPUTS = tuple(indices(name, _ROWS, "batch") for name in (*_USER, *_ITEM))
_DIN_INPUTS = (
    *(indices(name, _ROWS, "batch") for name in _USER),
    *(indices(name, _ROWS, "batch") for name in ("item_id", "category")),
    *(indices(f"history_{name}", _ROWS, "batch", _HISTORY) for name in ("item_id", "category")),
)


def _sparse(*names: str) -> list[Any]:
    from torch_rechub.basic.features import SparseFeature

    return [SparseFeature(name, vocab_size=_ROWS, embed_dim=_WIDTH) for name in names]


def _dense() -> list[Any]:
    from torch_rechub.basic.features import DenseFeature

    return [DenseFeature(name) for name in _DENSE]


def _history() -> list[Any]:
    from torch_rechub.basic.features import SequenceFeature

    return [
        SequenceFeature(f"history_{name}", _ROWS, _WIDTH, pooling="concat", shared_with=name)
        for name in ("item_id", "category")
    ]


def _deepfm() -> Any:
    from torch_rechub.models.ranking import DeepFM

    return DeepFM(_dense() + _sparse(*_SPARSE), _sparse(*_SPARSE), _MLP)


def _wide_deep() -> Any:
    from torch_rechub.models.ranking import WideDeep

    return WideDeep(_dense(), _sparse(*_SPARSE), _MLP)


def _dcn_v2() -> Any:
    from torch_rechub.models.ranking import DCNv2

    return DCNv2(_dense() + _sparse(*_SPARSE), n_cross_layers=3, mlp_params=_MLP)


def _autoint() -> Any:
    from torch_rechub.models.ranking import AutoInt

    return AutoInt(_sparse(*_SPARSE), _dense(), num_layers=3, num_heads=2, mlp_params=_MLP)


def _din() -> Any:
    from torch_rechub.models.ranking import DIN

    return DIN(
        _sparse(*_USER),
        _history(),
        _sparse("item_id", "category"),
        mlp_params={"dims": [256, 128]},
        attention_mlp_params={"dims": [64, 32]},
    )


def _dssm() -> Any:
    from torch_rechub.models.matching import DSSM

    return DSSM(_sparse(*_USER), _sparse(*_ITEM), {"dims": [256, 128, 64]}, {"dims": [256, 128, 64]})


def _mmoe() -> Any:
    from torch_rechub.models.multi_task import MMOE

    return MMOE(
        _sparse(*_SPARSE) + _dense(),
        ["classification", "classification"],
        n_expert=6,
        expert_params={"dims": [128, 64]},
        tower_params_list=[{"dims": [32]}, {"dims": [32]}],
    )


def _named(build: Any) -> Any:
    from graphnet.dataset.recipes import wrappers

    return wrappers.NamedFeatures(build())


_MODELS: tuple[tuple[int, str, str, Any, tuple[Input, ...]], ...] = (
    (1, "deepfm", "DeepFM", _deepfm, _CTR_INPUTS),
    (2, "wide_and_deep", "WideDeep", _wide_deep, _CTR_INPUTS),
    (3, "dcn_v2", "DCNv2", _dcn_v2, _CTR_INPUTS),
    (4, "autoint", "AutoInt", _autoint, _CTR_INPUTS),
    (5, "din", "DIN", _din, _DIN_INPUTS),
    (6, "two_tower", "DSSM", _dssm, _TOWER_INPUTS),
    (7, "mmoe", "MMOE", _mmoe, _CTR_INPUTS),
)

RECIPES = tuple(
    Recipe(
        graph_id=f"GN-2026-RS-{number:03d}",
        name=name,
        subset="recommender",
        package="torch-rechub",
        model=model,
        license="MIT",
        factory=partial(_named, build),
        inputs=inputs,
        dims=_DIMS,
        config={"table_rows": _ROWS, "embedding_width": _WIDTH},
    )
    for number, name, model, build, inputs in _MODELS
)
