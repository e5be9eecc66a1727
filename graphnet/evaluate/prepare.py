"""From a job to work for a child: the graph read and rewritten, the job's key, the message that the child gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from graphnet.evaluate import code_files
from graphnet.evaluate.plan import Job, graph_digest, graph_passes, job_key, sidecar_of
from graphnet.evaluate.protocol import CodePlace, Work
from graphnet.evaluate.worker import describe
from graphnet.ir import fileio, finalize, sidecar
from graphnet.ir.graph import Graph
from graphnet.ir.names import name_nodes


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A job's graph, read and rewritten; or why that failed."""

    original: Graph
    states: tuple[Graph, ...]
    """Before the first pass that rewrites it and after each; empty when that failed."""
    digest: str
    """Of the original graph."""
    key: str
    structure_hash: str = ""
    error: str = ""


class Preparation:
    """Reads graphs; keeps the last one, since its next compiler comes next."""

    def __init__(self) -> None:
        self._loaded: tuple[Graph | str, Graph, str, str] | None = None

    def prepare(self, job: Job) -> Prepared:
        """Never raises: what is wrong with the graph or its passes is in `error`."""
        try:
            graph, digest, structure = self._load(job.graph)
        except Exception as error:
            name = job.graph if isinstance(job.graph, str) else job.graph.name
            missing = Graph(name=Path(name).name.split(".")[0])
            return Prepared(original=missing, states=(), digest="", key=job_key(job, name, ""), error=describe(error))
        key = job_key(job, f"{graph.graph_id} {graph.name}", digest)
        states: tuple[Graph, ...] = ()
        problem = ""
        try:
            states = _rewritten(graph, job.passes)
        except Exception as error:
            problem = f"passes {', '.join(job.passes)}: {describe(error)}"
        return Prepared(
            original=graph, states=states, digest=digest, key=key, structure_hash=structure, error=problem
        )  # fmt: skip

    def _load(self, source: Graph | str) -> tuple[Graph, str, str]:
        """Graph, digest and structure hash."""
        if self._loaded is None or self._loaded[0] is not source:
            if isinstance(source, Graph):
                graph = source
            else:
                graph = Graph.from_onnx(source) if source.endswith(".onnx") else fileio.load(source)
            finalize.check_types(graph)
            self._loaded = source, graph, graph_digest(graph), graph.stored_hash or graph.structure_hash()
        return self._loaded[1:]


def sizes(graph: Graph, asked: Mapping[str, int]) -> dict[str, int]:
    """Size of every symbol that can be bound; what was asked for stays, even where it cannot be bound."""
    return {**{name: dim.default for name, dim in graph.dims.items() if not dim.data_dependent}, **asked}


def work_of(job: Job, graph: Graph, original: Graph, reference: str) -> Work:
    """What the child is told; `graph` is `original` after its passes."""
    return Work(
        graph=encoded(graph), sidecar=sidecar_of(graph), target=job.target, dims=job.dims,
        seed=job.seed, budget_s=job.budget_s, tolerance=job.tolerance, profile=job.profile, reference=reference,
        output_names=original.outputs,
    )  # fmt: skip


def code_place(job: Job, prepared: Prepared) -> CodePlace | None:
    """Where the code of the kernels goes; None when it was not asked for."""
    if not job.code:
        return None
    name = prepared.original.name
    folder = code_files.folder_of(Path(job.code).absolute(), job.compiler, name, prepared.key)
    return CodePlace(folder=str(folder), job_key=prepared.key, graph=name, compiler=job.compiler)


def encoded(graph: Graph) -> bytes:
    """JSON, without the places of sidecars."""
    return msgspec.json.encode(sidecar.unlink(graph))


def _rewritten(graph: Graph, passes: Sequence[str]) -> tuple[Graph, ...]:
    graph, names = name_nodes(graph), graph_passes(passes)
    if not names:
        return (graph,)
    from graphnet.rewrite.passes import states  # a rewrite renews metadata, which imports much

    return tuple(states(graph, names))
