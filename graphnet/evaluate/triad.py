"""Compiled loops that reach what a core does at best: the STREAM triad a = b + s c, and chains of multiply-adds."""

from __future__ import annotations

import ctypes
import hashlib
import os
import secrets
import shutil
import subprocess
from pathlib import Path

import numpy as np

SOURCE = r"""
#include <stddef.h>
#if defined(__AVX512F__) || defined(__AVX__) || defined(__SSE2__)
#include <immintrin.h>
#endif

/* The barrier keeps the compiler from merging passes. Stores are ordinary ones. */
void triad(double *restrict a, const double *restrict b, const double *restrict c, double s, size_t n, size_t passes) {
    for (size_t pass = 0; pass < passes; pass++) {
        for (size_t i = 0; i < n; i++) a[i] = b[i] + s * c[i];
        __asm__ volatile("" ::: "memory");
    }
}

/* Stores past the caches: a line that is written whole need not be read first. 0 where the machine has none. */
int triad_streaming(double *restrict a, const double *restrict b, const double *restrict c, double s, size_t n,
                    size_t passes) {
    for (size_t pass = 0; pass < passes; pass++) {
#if defined(__AVX512F__)
        __m512d factor = _mm512_set1_pd(s);
        for (size_t i = 0; i < n; i += 8)
            _mm512_stream_pd(a + i, _mm512_add_pd(_mm512_load_pd(b + i), _mm512_mul_pd(factor, _mm512_load_pd(c + i))));
#elif defined(__AVX__)
        __m256d factor = _mm256_set1_pd(s);
        for (size_t i = 0; i < n; i += 4)
            _mm256_stream_pd(a + i, _mm256_add_pd(_mm256_load_pd(b + i), _mm256_mul_pd(factor, _mm256_load_pd(c + i))));
#elif defined(__SSE2__)
        __m128d factor = _mm_set1_pd(s);
        for (size_t i = 0; i < n; i += 2)
            _mm_stream_pd(a + i, _mm_add_pd(_mm_load_pd(b + i), _mm_mul_pd(factor, _mm_load_pd(c + i))));
#else
        return 0;
#endif
#if defined(__SSE2__)
        _mm_sfence();
#endif
    }
    return 1;
}

#if defined(__AVX512F__)
#define VECTOR 64
#elif defined(__AVX__)
#define VECTOR 32
#else
#define VECTOR 16
#endif
#define CHAINS 12

/* Chains of x = x / 2 + 1 / 2 that do not wait for each other: more of them than multiply-adds are in flight, and no
   more than there are registers. Returns the operations of a pass, which a sum keeps from being left out. */
#define CHAINS_OF(type)                                                                                    \
    int chains_##type(size_t passes, type *kept) {                                                         \
        typedef type wide __attribute__((vector_size(VECTOR)));                                            \
        wide x[CHAINS], half = (wide){0} + (type)0.5, sum = {0};                                           \
        for (int i = 0; i < CHAINS; i++) x[i] = half * (type)i;                                            \
        for (size_t pass = 0; pass < passes; pass++)                                                       \
            for (int i = 0; i < CHAINS; i++) x[i] = x[i] * half + half;                                    \
        for (int i = 0; i < CHAINS; i++) sum += x[i];                                                      \
        *kept = sum[0];                                                                                    \
        return 2 * CHAINS * (int)(VECTOR / sizeof(type));                                                  \
    }
CHAINS_OF(float)
CHAINS_OF(double)
"""
"""Arrays are 64-byte aligned, n is a multiple of 8."""
COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-O3", "-march=native", "-funroll-loops", "-shared", "-fPIC", "-std=gnu11")
SCALE = 3.0
CHAINS, SETTLED = 12, 64
"""Each chain converges to 1 and is there after fewer passes than these."""


C_TYPES: dict[str, type[ctypes.c_float] | type[ctypes.c_double]] = {
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}


class Triad:
    """The compiled loops. Calls release the interpreter's lock."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._chains = {"float32": library.chains_float, "float64": library.chains_double}
        for dtype, chains in self._chains.items():
            chains.argtypes, chains.restype = (ctypes.c_size_t, ctypes.POINTER(C_TYPES[dtype])), ctypes.c_int
        self._plain, self._streaming = library.triad, library.triad_streaming
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        for function in (self._plain, self._streaming):
            function.argtypes = (pointer, pointer, pointer, ctypes.c_double, size, size)
        self._plain.restype, self._streaming.restype = None, ctypes.c_int

    def run(self, arrays: tuple[np.ndarray, ...], passes: int, *, streaming: bool = False) -> bool:
        """`a = b + SCALE c` so many times, `arrays` being (a, b, c) of float64. False: no streaming stores here."""
        a, b, c = arrays
        function = self._streaming if streaming else self._plain
        return bool(function(a.ctypes.data, b.ctypes.data, c.ctypes.data, SCALE, a.size, passes))

    def multiply_add(self, dtype: str, passes: int) -> int:
        """Multiply-adds that wait for no memory and little for each other; returns the FLOPs of one pass.

        `dtype` is `float32` or `float64`. Raises ArithmeticError if the loop did not compute what it should.
        """
        kept = C_TYPES[dtype]()
        count = int(self._chains[dtype](passes, ctypes.byref(kept)))
        if passes >= SETTLED and kept.value != CHAINS:
            raise ArithmeticError(f"chains of {dtype} ended at {kept.value}, not at {CHAINS}")
        return count


def load(folder: Path) -> Triad | None:
    """The loop from the library in `folder`, compiled if need be; None without a C compiler that can."""
    compiler = next((path for name in COMPILERS if (path := shutil.which(name))), None)
    if compiler is None:
        return None
    parts = "\0".join((SOURCE, compiler, *FLAGS, _processor()))
    library = folder / f"triad-{hashlib.sha256(parts.encode()).hexdigest()[:16]}.so"
    if not library.exists() and not _compile(compiler, library):
        return None
    try:
        return Triad(ctypes.CDLL(str(library)))
    except OSError:  # built on another system and copied here
        return None


def _compile(compiler: str, library: Path) -> bool:
    temporary = library.with_name(f".{library.name}.{secrets.token_hex(8)}.tmp")
    command = [compiler, *FLAGS, "-x", "c", "-", "-o", str(temporary)]
    try:
        done = subprocess.run(command, input=SOURCE.encode(), capture_output=True, timeout=60)
        if done.returncode == 0:
            os.replace(temporary, library)
        return done.returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        temporary.unlink(missing_ok=True)


def _processor() -> str:
    """What `-march=native` depends on, so that a cache folder shared by machines has a library for each."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")
