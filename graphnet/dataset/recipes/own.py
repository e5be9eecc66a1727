"""Networks implemented here (`nets_*.py`), where no installed package has one that exports."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from graphnet.dataset.recipe import BATCH, Recipe, floats, image, indices
from graphnet.ir.graph import Dim, Domain, Input, Uniform

_UNIT = Uniform(low=0.0, high=1.0)
_ATOMS = {"atoms": Dim(min=2, max=2000, default=256), "edges": Dim(min=2, max=100_000, default=4096)}
_EDGES = indices("edge_index", "atoms", 2, "edges")


def _build(module: str, network: str, **options: Any) -> Any:
    return getattr(import_module(f"graphnet.dataset.recipes.{module}"), network)(**options)


def _recipe(
    graph_id: str,
    name: str,
    subset: Domain,
    module: str,
    network: str,
    inputs: tuple[Input, ...],
    dims: dict[str, Dim] = BATCH,
    **options: Any,
) -> Recipe:
    return Recipe(
        graph_id=f"GN-2026-{graph_id}",
        name=name,
        subset=subset,
        package="own implementation",
        model=network,
        license="Apache-2.0",
        factory=partial(_build, module, network, **options),
        inputs=inputs,
        dims=dims,
        config={key: value for key, value in options.items() if isinstance(value, int | float | str)},
    )


RECIPES = (
    _recipe("CV-021", "unet", "vision", "nets_other", "UNet", (image(128),)),
    _recipe("AU-006", "conv_tasnet", "audio", "nets_other", "ConvTasNet", (floats("wave", "batch", 8000),)),
    _recipe("AU-007", "wavenet", "audio", "nets_other", "TemporalConvolution", (floats("wave", "batch", 4096),)),
    _recipe(
        "RS-008",
        "dlrm",
        "recommender",
        "nets_other",
        "DLRM",
        (floats("dense", "batch", 13), indices("sparse", 20_000, 26, "batch", 4)),
        dims={"batch": Dim(min=1, max=4096, default=256)},
    ),
    _recipe("SC-002", "fno_2d", "science", "nets_science", "FourierNeuralOperator", (floats("x", "batch", 3, 64, 64),)),
    _recipe(
        "SC-003",
        "pinn_burgers",
        "science",
        "nets_science",
        "BurgersResidual",
        (floats("x", 2048, 1, fill=Uniform(low=-1.0, high=1.0)), floats("t", 2048, 1, fill=_UNIT)),
        dims={},
    ),
    _recipe(
        "SC-004",
        "deeponet",
        "science",
        "nets_science",
        "DeepONet",
        (floats("function", "batch", 100), floats("points", "points", 2, fill=_UNIT)),
        dims={"batch": Dim(min=1, max=512, default=64), "points": Dim(min=1, max=20_000, default=1000)},
    ),
    _recipe(
        "SC-005",
        "schnet",
        "science",
        "nets_science",
        "SchNet",
        (indices("numbers", 100, "atoms"), floats("positions", "atoms", 3), _EDGES),
        dims=_ATOMS,
    ),
    _recipe(
        "SC-006",
        "egnn",
        "science",
        "nets_science",
        "EquivariantNetwork",
        (floats("features", "atoms", 16), floats("positions", "atoms", 3), _EDGES),
        dims=_ATOMS,
    ),
    _recipe(
        "SC-007",
        "protein_pair_block",
        "science",
        "nets_science",
        "pair_stack",
        (floats("input", "batch", 64, 64, 64),),
        dims={"batch": Dim(min=1, max=16, default=1)},
    ),
)
