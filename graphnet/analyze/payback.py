"""After how many runs a compiler has earned back what its compilation took."""

from __future__ import annotations

import math


def payback_runs(compile_s: float, latency_s: float, base_compile_s: float, base_latency_s: float) -> int | None:
    """Smallest n with `compile_s + n * latency_s <= base_compile_s + n * base_latency_s`, all in seconds.

    0 where the compilation is not longer than the baseline's preparation; None where a run is not faster, so that
    nothing is ever earned back.
    """
    gain = base_latency_s - latency_s
    if gain <= 0:
        return None
    return max(0, math.ceil((compile_s - base_compile_s) / gain))
