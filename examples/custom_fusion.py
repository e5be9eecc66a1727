"""An operator fusion of your own: the seven operators of RMSNorm become one RMSNormalization; what does it bring?

    python examples/custom_fusion.py                                  # torch on the subset `transformer`
    python examples/custom_fusion.py --compiler onnxruntime --rounds 10
    python examples/custom_fusion.py --broken                         # a pass with a mistake in it is refused

Language models such as Llama, T5 and Qwen arrive with `y = w (x / sqrt(mean(x^2) + eps))` spelled out: Pow, ReduceMean,
Add, Sqrt, Reciprocal, Mul, Mul. Graphs without that pattern stay as they are: their ratio shows the noise.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from scipy import stats

from graphnet import Graph, evaluate_compiler, load_graphs, register_pass
from graphnet.ir.graph import Attr, Node, Values

CHAIN = ("Pow", "ReduceMean", "Add", "Sqrt", "Reciprocal", "Mul", "Mul")


@register_pass("custom_fusion")
def fuse_rms_norm(graph: Graph) -> Graph:
    """Replace each spelled-out RMSNorm over the last axis by the operator RMSNormalization."""
    return _fuse(graph, epsilon_factor=1.0)


@register_pass("broken_fusion")
def fuse_with_a_mistake(graph: Graph) -> Graph:
    """The same with an epsilon that is a hundred times too large."""
    return _fuse(graph, epsilon_factor=100.0)


def _fuse(graph: Graph, epsilon_factor: float) -> Graph:
    uses = Counter(name for node in graph.nodes for name in node.inputs) + Counter(graph.outputs)
    reader = {name: node for node in graph.nodes for name in node.inputs}
    fused: dict[str, Node] = {}
    dropped: set[str] = set()
    for node in graph.nodes:
        chain = _chain(graph, node, reader, uses)
        if not chain:
            continue
        x, scale = node.inputs[0], next(name for name in chain[-1].inputs if name in graph.weights)
        attrs: dict[str, Attr] = {"axis": -1, "epsilon": _literal(graph, chain[2]) * epsilon_factor}
        fused[chain[-1].name] = Node(
            op="RMSNormalization",
            name=f"{chain[-1].name}.fused",
            inputs=(x, scale),
            outputs=chain[-1].outputs,
            attrs=attrs,
        )
        dropped.update(link.name for link in chain[:-1])
    nodes = tuple(fused.get(node.name, node) for node in graph.nodes if node.name not in dropped)
    produced = {name for node in nodes for name in node.outputs}
    values = {name: value for name, value in graph.values.items() if name in produced}
    return msgspec.structs.replace(graph, nodes=nodes, values=values)


def _chain(graph: Graph, first: Node, reader: Mapping[str, Node], uses: Mapping[str, int]) -> Sequence[Node]:
    """The seven nodes that begin with `first`, empty unless they are an RMSNorm that nobody else looks into."""
    if first.op != "Pow" or _literal(graph, first) != 2.0:
        return ()
    chain = [first]
    while len(chain) < len(CHAIN):
        value = chain[-1].outputs[0]
        follower = reader.get(value)
        if uses[value] != 1 or follower is None or follower.op != CHAIN[len(chain)]:
            return ()
        chain.append(follower)
    over_last_axis = _literal(graph, chain[1]) in (-1, len(graph.type_of(first.inputs[0]).shape) - 1)
    keeps_axis = chain[1].attrs.get("keepdims", 1) == 1
    scales = [name for name in chain[6].inputs if name in graph.weights and len(graph.weights[name].shape) == 1]
    return chain if over_last_axis and keeps_axis and first.inputs[0] in chain[5].inputs and scales else ()


def _literal(graph: Graph, node: Node) -> float:
    """The one number among the node's inputs; NaN where there is none."""
    for name in node.inputs:
        fill = graph.weights[name].fill if name in graph.weights else None
        if isinstance(fill, Values) and len(fill.data) == 1:
            return float(fill.data[0])
    return float("nan")


def speedups(compiler: str, graphs: Sequence[Graph], fusion: str, rounds: int, budget: float) -> np.ndarray:
    """[rounds, graphs]: time without the pass over time with it; the two take turns, so that drift hits both.

    NaN where one of the two was too unsteady to be a figure. Exits with the compiler's message when a pass is refused.
    """
    order, settings, ratios = random.Random(0), (["default"], ["default", fusion]), []
    for _ in range(rounds):
        times = {}
        for which in order.sample((0, 1), 2):
            table = evaluate_compiler(compiler, graphs, passes=settings[which], budget=budget)
            refused = table["message"][table["verdict"] == "error"]
            if not refused.empty:
                raise SystemExit("\n".join(refused))
            times[which] = table["end_to_end_time"].to_numpy()
        ratios.append(times[0] / times[1])
    return np.array(ratios)


def mean_with_interval(ratios: np.ndarray) -> str:
    """Geometric mean over graphs and rounds; Student's 95 % interval over the rounds."""
    logs = np.nanmean(np.log(ratios[~np.isnan(ratios).all(axis=1)]), axis=1)
    low, high = np.exp(stats.ttest_1samp(logs, 0.0).confidence_interval(0.95))
    return f"{np.exp(logs.mean()):.3f} [{low:.3f}, {high:.3f}] ({len(logs)} rounds)"


def main() -> None:
    """Time each graph without and with the fusion."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="torch")
    parser.add_argument("--graphs", default="transformer", help="a subset, a folder or a file")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds of timed runs per graph, setting and round")
    parser.add_argument("--rounds", type=int, default=5, help="at least 2, for the interval")
    parser.add_argument("--broken", action="store_true", help="use the pass with the mistake")
    options = parser.parse_args()
    graphs = load_graphs(options.graphs)
    changed = np.array([fuse_rms_norm(graph) != graph for graph in graphs])
    fusion = "broken_fusion" if options.broken else "custom_fusion"
    ratios = speedups(options.compiler, graphs, fusion, options.rounds, options.budget)
    timed = ~np.isnan(ratios).all(axis=0)
    for graph, column, touched, known in zip(graphs, ratios.T, changed, timed, strict=True):
        ratio = f"{np.nanmedian(column):6.3f}" if known else "never timed without and with it in one round"
        print(f"{graph.name:24} {ratio}{'  fused' if touched else ''}")
    for label, chosen in (("fused", timed & changed), ("untouched", timed & ~changed)):
        if chosen.any():
            mean = mean_with_interval(ratios[:, chosen])
            print(f"mean speed-up of {options.compiler} over {chosen.sum()} {label} graphs: {mean}")


if __name__ == "__main__":
    main()
