from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from graphnet.compilers.jax.profile import profile


def node_of(op_name: str) -> str:
    found = re.findall(r"node\d_(\w)", op_name)
    return found[-1] if found else ""


def _program(function: Callable[..., Any], *arguments: Any) -> tuple[Callable[[], Any], str]:
    compiled = jax.jit(function).lower(*arguments).compile()
    text = compiled.as_text()
    assert text is not None
    return lambda: compiled(*arguments).block_until_ready(), text


@pytest.mark.parametrize("loop", [False, True])
def test_kernels_of_a_real_program_add_up(loop: bool) -> None:
    def function(w: Any, x: Any) -> Any:
        def step(x: Any, _: Any) -> tuple[Any, None]:
            with jax.named_scope("node0_a"):
                x = x @ w
            with jax.named_scope("node1_b"):
                return jnp.tanh(x), None

        return jax.lax.scan(step, x, None, length=6)[0] if loop else step(step(x, None)[0], None)[0]

    matrix = np.full((768, 768), 1e-3, np.float32)
    run, text = _program(function, matrix, matrix)
    run()
    start = time.perf_counter()
    for _ in range(5):
        run()
    whole = (time.perf_counter() - start) / 5 * 1e6
    found = profile(run, text, node_of)
    assert {node for kernel in found for node in kernel.nodes} == {"a", "b"}
    heaviest = max(found, key=lambda kernel: kernel.total_us)
    assert heaviest.nodes == ("a",)
    # Loose: the machine is shared, and XLA's pool here has as many threads as it likes.
    assert 0.2 * whole < sum(kernel.total_us for kernel in found) < 5 * whole
