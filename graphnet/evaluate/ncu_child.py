"""The program that runs under Nsight Compute: one graph on one compiler, one inference between two marks."""

from __future__ import annotations

import ctypes
import sys

import msgspec

from graphnet import compilers
from graphnet.compilers import Target
from graphnet.ir import tensors
from graphnet.ir.graph import Graph
from graphnet.ir.names import name_nodes

WARMUPS = 2


def main() -> None:
    """`ncu_child COMPILER GRAPH TARGET`: the target as JSON, options of a variant included.

    Counters are read of the third inference only.
    """
    name, file, target_text = sys.argv[1:]
    target = msgspec.json.decode(target_text, type=Target)
    compiler = compilers.get(compilers.split(name)[0])
    compiler.preload()
    compiler.configure(target)
    graph = name_nodes(Graph.load(file)).bind()
    program = compiler.compile(graph, tensors.weights(graph, 0), target)
    program.bind(tensors.inputs(graph, 0))
    for _ in range(WARMUPS):
        program.run()
    driver = ctypes.CDLL("libcuda.so.1")
    driver.cuProfilerStart()
    program.run()
    driver.cuProfilerStop()


if __name__ == "__main__":
    main()
