"""JAX rules of signal processing: Fourier transforms, windows, mel filters."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from graphnet.lower import spectral
from graphnet.lower.jax.ops import JAX, jax_dtype
from graphnet.lower.table import Ints, Static


def _signal(x: Array) -> Array:
    """[..., 1] as real, [..., 2] as complex numbers."""
    return x[..., 0] if x.shape[-1] == 1 else lax.complex(x[..., 0], x[..., 1])


def _pairs(x: Array) -> Array:
    return jnp.stack((jnp.real(x), jnp.imag(x)), -1)


@JAX.op("DFT")
def dft(
    input: Array, dft_length: Ints | None = None, axis: Ints | None = None, *, inverse: int = 0, onesided: int = 0
) -> Array:
    """Input [..., 1] (real) or [..., 2] (real and imaginary); the same at the output."""
    dim = (axis[0] if axis else -2) % input.ndim
    length = dft_length[0] if dft_length else None
    signal = _signal(input)
    if inverse:
        return jnp.fft.irfft(signal, length, dim)[..., None] if onesided else _pairs(jnp.fft.ifft(signal, length, dim))
    if onesided and input.shape[-1] == 1:
        return _pairs(jnp.fft.rfft(signal, length, dim))
    spectrum = jnp.fft.fft(signal, length, dim)
    return _pairs(lax.slice_in_dim(spectrum, 0, spectrum.shape[dim] // 2 + 1, axis=dim) if onesided else spectrum)


@JAX.op("STFT")
def stft(
    signal: Array,
    frame_step: Ints,
    window: Array | None = None,
    frame_length: Ints | None = None,
    *,
    onesided: int = 1,
) -> Array:
    """Signal [batch, length, 1 or 2] to [batch, frames, bins, 2]."""
    wave = _signal(signal)
    length = frame_length[0] if frame_length else (window.shape[0] if window is not None else wave.shape[1])
    starts = np.arange(0, wave.shape[1] - length + 1, frame_step[0])
    frames = wave[:, starts[:, None] + np.arange(length)]
    frames = frames if window is None else frames * window
    if onesided and signal.shape[-1] == 1:
        return _pairs(jnp.fft.rfft(frames))
    spectrum = jnp.fft.fft(frames)
    return _pairs(spectrum[..., : length // 2 + 1] if onesided else spectrum)


def _cosines(size: int, periodic: int, coefficients: tuple[float, ...], output_datatype: int) -> Array:
    return jnp.asarray(spectral.cosine_window(size, periodic, coefficients), jax_dtype(output_datatype))


@JAX.op("HannWindow")
def hann_window(size: Ints, *, output_datatype: int = 1, periodic: int = 1) -> Array:
    return _cosines(size[0], periodic, spectral.HANN, output_datatype)


@JAX.op("HammingWindow")
def hamming_window(size: Ints, *, output_datatype: int = 1, periodic: int = 1) -> Array:
    return _cosines(size[0], periodic, spectral.HAMMING, output_datatype)


@JAX.op("BlackmanWindow")
def blackman_window(size: Ints, *, output_datatype: int = 1, periodic: int = 1) -> Array:
    return _cosines(size[0], periodic, spectral.BLACKMAN, output_datatype)


@JAX.op("MelWeightMatrix")
def mel_weight_matrix(
    num_mel_bins: Ints,
    dft_length: Ints,
    sample_rate: Ints,
    lower_edge_hertz: Static,
    upper_edge_hertz: Static,
    *,
    output_datatype: int = 1,
) -> Array:
    weights = spectral.mel_filters(num_mel_bins[0], dft_length[0], sample_rate[0], lower_edge_hertz, upper_edge_hertz)
    return jnp.asarray(weights, jax_dtype(output_datatype))
