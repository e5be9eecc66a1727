"""Every compiler that generates code shows it, under the names that its profile has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphnet import compilers
from graphnet.analyze import assembly
from graphnet.compilers import Coded, Profiled, Target
from graphnet.compilers.inductor.code import to_assembly
from graphnet.ir import tensors
from tests.compilers.test_iree import layer

TARGET = Target(threads=1)
LIBRARY = {"jax": ("ynnpack", "Eigen"), "tensorflow": ("Eigen", "oneDNN"), "inductor": ("ATen", "MKL", "oneDNN")}
"""What multiplies the matrices; the others have code of their own for that."""


def _program(name: str) -> Any:
    compiler, graph = compilers.get(name), layer(64)
    compiler.preload()
    compiler.configure(TARGET)
    program = compiler.compile(graph, tensors.weights(graph, 0), TARGET)
    program.bind(tensors.inputs(graph, 0))
    program.run()
    return program


def _spent(program: Any) -> dict[str, tuple[str, ...]]:
    """Kernels of the profile that cover nodes of the graph."""
    return {kernel.name: kernel.nodes for kernel in program.kernels() if kernel.nodes}


@pytest.mark.parametrize("name", ["tvm", "iree", "jax", "tensorflow", "inductor"])
def test_code_joins_the_profile_and_has_loops(name: str) -> None:
    program = _program(name)
    assert isinstance(program, Coded)
    assert isinstance(program, Profiled)
    spent, found = _spent(program), {code.name: code for code in program.code()}
    assert set(found) == set(spent), "a kernel without code, or code without a kernel"
    product = next(kernel for kernel, nodes in spent.items() if "product" in nodes or found[kernel].library)
    if name in LIBRARY:
        assert found[product].library in LIBRARY[name]
        assert not found[product].assembly
    else:
        assert "vfmadd" in found[product].assembly
        assert "define " in found[product].ir
    rectified = next(found[kernel] for kernel, nodes in spent.items() if "act" in nodes)
    loop = assembly.hottest(assembly.parse(rectified.assembly))
    assert loop is not None
    assert assembly.mix(loop.instructions, loop.framed).vector_floats > 0


def test_tinygrad_s_kernels_are_disassembled() -> None:
    """The product, its bias and the rectifier are one kernel; the copy of the result is the other."""
    program = _program("tinygrad")
    found = {code.name: code for code in program.code()}
    assert set(found) <= {kernel.name for kernel in program.kernels()}
    (product,) = [found[name] for name, nodes in _spent(program).items() if "product" in nodes]
    loop = assembly.hottest(assembly.parse(product.assembly))
    assert loop is not None
    assert assembly.mix(loop.instructions, loop.framed).vector_floats > 0


def test_inductor_s_command_keeps_every_flag_but_those_of_linking() -> None:
    command = "g++ /c/k.main.cpp -D A -O3 -ffp-contract=off -include /p.h -shared -fPIC -I/x -o /c/k.so -ltorch -L/lib"
    kept = "g++ /t/kernel.cpp -D A -O3 -ffp-contract=off -fPIC -I/x -g0 -S -o /t/kernel.s"
    assert to_assembly(command, Path("/t/kernel.cpp"), Path("/t/kernel.s")) == kept.split()
