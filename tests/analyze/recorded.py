"""Code that compilers emitted for relu(x w + b) of float32[96, 96], as recorded from them on a Zen 4 CPU."""

from __future__ import annotations

from pathlib import Path

from graphnet.compilers import listing

DATA = Path(__file__).parent / "data"
IREE = "main$async_dispatch_0_matmul_like_96x96x96_f32"


def code(name: str) -> str:
    """The kernel's listing: of `tvm`, `iree`, `inductor` or `xla` (its addition and maximum only)."""
    if name == "xla":
        parts = listing.from_disassembly((DATA / "xla_add_maximum.dis").read_text())
        return listing.gather(parts, "broadcast_maximum_fusion")
    file, entry = {
        "tvm": ("tvm_matmul.s", "fused_matmul_add_relu_compute_"),
        "iree": ("iree_matmul.s", IREE),
        "inductor": ("inductor_relu.s", "kernel"),
    }[name]
    return listing.gather(listing.functions((DATA / file).read_text()), entry)
