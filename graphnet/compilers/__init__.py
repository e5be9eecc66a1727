"""Compilers: what one is (`base`), which are known (`registry`), then one file for each."""

from graphnet.compilers.base import (
    DEFAULT_PASS,
    FLUSH_SUBNORMALS,
    Accounting,
    CachePolicy,
    Caching,
    Compiler,
    Kernel,
    Option,
    Profiled,
    Program,
    Target,
    Tensors,
    cache_policy,
    check_target,
)
from graphnet.compilers.registry import BUILTIN, Entry, check_name, get, names, split, variants, versions

__all__ = [
    "BUILTIN",
    "DEFAULT_PASS",
    "FLUSH_SUBNORMALS",
    "Accounting",
    "CachePolicy",
    "Caching",
    "Compiler",
    "Entry",
    "Kernel",
    "Option",
    "Profiled",
    "Program",
    "Target",
    "Tensors",
    "cache_policy",
    "check_name",
    "check_target",
    "get",
    "names",
    "split",
    "variants",
    "versions",
]
