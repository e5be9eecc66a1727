"""How reading, validating, hashing and costing a graph grow with its size: 5,000, 50,000 and 500,000 nodes.

`python benchmarks/graph_scale.py [--nodes 5000,50000] [--repeat 3]` writes synthetic transformer-like graphs to a
temporary folder and runs each stage in a fresh process. Printed per stage: the median over `--repeat` processes of wall
and CPU seconds of the stage alone (imports are not timed), and the peak resident memory (MiB) of the whole process,
interpreter and loaded graph included. `all` is read (validation included), hash and cost in one process: its bound is
3 s and 1 GB at 50,000 nodes.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from graphnet.ir import fileio, structure, validate
from graphnet.ir.graph import Dim, Graph, Input, Node, Normal, Value, Values, Weight

STAGES = ("read", "validate", "hash", "cost", "all")
LAYER = 20
"""Nodes of one layer."""
WIDTH = 64


def synthetic(nodes: int) -> Graph:
    """A decoder-like stack: per layer 6 projections, reshapes, transposes, softmax, norm; each with its own weights."""
    make = _Builder()
    hidden = "x"
    for layer in range(nodes // LAYER):
        hidden = make.layer(hidden, layer)
    while len(make.nodes) < nodes:
        hidden = make.add("Relu", [hidden], ("batch", "time", WIDTH))
    return Graph(
        name=f"synthetic_{nodes}",
        domain="synthetic",
        dims={"batch": Dim(min=1, max=64, default=2), "time": Dim(min=1, max=512, default=16)},
        inputs=(Input(name="x", dtype="float32", shape=("batch", "time", WIDTH)),),
        outputs=(hidden,),
        weights=make.weights,
        nodes=tuple(make.nodes),
        values=make.values,
    )


class _Builder:
    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.weights: dict[str, Weight] = {}
        self.values: dict[str, Value] = {}

    def add(
        self, op: str, inputs: list[str], shape: tuple[int | str, ...], **attrs: int | float | tuple[int, ...]
    ) -> str:
        name = f"decoder.{op.lower()}_{len(self.nodes)}"
        self.nodes.append(Node(op=op, name=name, inputs=tuple(inputs), outputs=(f"{name}.out",), attrs=dict(attrs)))
        self.values[f"{name}.out"] = Value(dtype="float32", shape=shape)
        return f"{name}.out"

    def weight(self, name: str, *shape: int) -> str:
        self.weights[name] = Weight(dtype="float32", shape=shape, fill=Normal(std=0.02))
        return name

    def heads_shape(self, name: str, *data: int) -> str:
        self.weights[name] = Weight(dtype="int64", shape=(len(data),), fill=Values(data=data), role="constant")
        return name

    def layer(self, hidden: str, index: int) -> str:
        flat: tuple[int | str, ...] = ("batch", "time", WIDTH)
        split: tuple[int | str, ...] = ("batch", 4, "time", WIDTH // 4)
        at = f"layers.{index}"
        norm = [self.weight(f"{at}.norm.weight", WIDTH), self.weight(f"{at}.norm.bias", WIDTH)]
        normed = self.add("LayerNormalization", [hidden, *norm], flat, axis=-1, epsilon=1e-5)
        parts = []
        for part in "qkv":
            line = self.add("MatMul", [normed, self.weight(f"{at}.{part}.weight", WIDTH, WIDTH)], flat)
            target = self.heads_shape(f"{at}.{part}.shape", 0, -1, 4, WIDTH // 4)
            heads = self.add("Reshape", [line, target], ("batch", "time", 4, WIDTH // 4), allowzero=0)
            parts.append(self.add("Transpose", [heads], split, perm=(0, 2, 1, 3)))
        turned = self.add("Transpose", [parts[1]], ("batch", 4, WIDTH // 4, "time"), perm=(0, 1, 3, 2))
        scores = self.add("Softmax", [self.add("MatMul", [parts[0], turned], ("batch", 4, "time", "time"))],
                          ("batch", 4, "time", "time"), axis=-1)  # fmt: skip
        mixed = self.add("Transpose", [self.add("MatMul", [scores, parts[2]], split)],
                         ("batch", "time", 4, WIDTH // 4), perm=(0, 2, 1, 3))  # fmt: skip
        joined = self.add("Reshape", [mixed, self.heads_shape(f"{at}.o.shape", 0, -1, WIDTH)], flat, allowzero=0)
        out = self.add("MatMul", [joined, self.weight(f"{at}.o.weight", WIDTH, WIDTH)], flat)
        added = self.add("Add", [out, hidden], flat)
        grown = self.add("MatMul", [added, self.weight(f"{at}.up.weight", WIDTH, WIDTH)], flat)
        small = self.add(
            "MatMul", [self.add("Gelu", [grown], flat), self.weight(f"{at}.down.weight", WIDTH, WIDTH)], flat
        )
        return self.add("Add", [small, added], flat)


def run_stage(stage: str, path: Path) -> dict[str, float]:
    """One stage, measured in this process."""
    for module in ("tensors", "cost"):
        if importlib.util.find_spec(f"graphnet.ir.{module}"):
            importlib.import_module(f"graphnet.ir.{module}")
    graph = None if stage in ("read", "all") else fileio.load(path)
    wall, cpu = time.perf_counter(), time.process_time()
    if graph is None:
        graph = fileio.load(path)
    if stage == "validate":
        validate.validate(graph)
    if stage in ("hash", "all"):
        structure.structure_hash(graph)
    if stage in ("cost", "all"):
        graph.cost()
    spent = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return {**spent, "peak_mib": int(peak.group(1)) / 1024 if peak else float("nan")}


def measure(stage: str, path: Path, repeat: int) -> dict[str, float]:
    """Medians over `repeat` fresh processes."""
    command = [sys.executable, __file__, "--stage", stage, "--file", str(path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    rows = [json.loads(subprocess.check_output(command, env=environment)) for _ in range(repeat)]
    return {key: statistics.median(row[key] for row in rows) for key in rows[0]}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", default="5000,50000,500000")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--stage", choices=STAGES)
    parser.add_argument("--file", type=Path)
    given = parser.parse_args()
    if given.stage:
        print(json.dumps(run_stage(given.stage, given.file)))
        return
    stages = STAGES if importlib.util.find_spec("graphnet.ir.cost") else ("read", "validate", "hash")
    print(f"{'nodes':>8} {'MiB file':>9} {'stage':>9} {'wall s':>8} {'CPU s':>8} {'us/node':>8} {'peak MiB':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for nodes in map(int, given.nodes.split(",")):
            path = Path(folder) / f"{nodes}.json"
            fileio.save(synthetic(nodes), path)
            size = path.stat().st_size / 2**20
            for stage in stages:
                row = measure(stage, path, given.repeat)
                figures = (
                    f"{row['wall']:>8.3f} {row['cpu']:>8.3f} {row['cpu'] / nodes * 1e6:>8.2f} {row['peak_mib']:>9.0f}"
                )
                print(f"{nodes:>8} {size:>9.1f} {stage:>9} {figures}")


if __name__ == "__main__":
    main()
