"""The public names, the import time budget's cause (nothing heavy), and the snippet of the README."""

from __future__ import annotations

import json
import subprocess
import sys

import graphnet


def test_all_names_resolve() -> None:
    assert sorted(graphnet.__all__) == graphnet.__all__
    for name in graphnet.__all__:
        assert getattr(graphnet, name) is not None


def test_import_brings_in_nothing_heavy() -> None:
    code = "import sys, json, graphnet; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"torch", "jax", "onnx", "onnxruntime", "numpy", "pandas", "scipy", "sqlalchemy", "msgspec", "typer"}
    assert heavy.isdisjoint(json.loads(done.stdout))
