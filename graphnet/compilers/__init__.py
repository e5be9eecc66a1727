"""Compilers: what one is (`base`), which are known (`registry`), then one file for each."""

from graphnet.compilers.base import (
    DEFAULT_PASS,
    FLUSH_SUBNORMALS,
    Coded,
    Compiler,
    Kernel,
    KernelCode,
    Option,
    Profiled,
    Program,
    Target,
    Tensors,
    check_target,
)
from graphnet.compilers.registry import BUILTIN, Entry, check_name, get, names, split, variants, versions

__all__ = [
    "BUILTIN",
    "DEFAULT_PASS",
    "FLUSH_SUBNORMALS",
    "Coded",
    "Compiler",
    "Entry",
    "Kernel",
    "KernelCode",
    "Option",
    "Profiled",
    "Program",
    "Target",
    "Tensors",
    "check_name",
    "check_target",
    "get",
    "names",
    "split",
    "variants",
    "versions",
]
