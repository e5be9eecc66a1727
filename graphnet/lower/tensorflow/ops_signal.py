"""TensorFlow rules of signal processing: Fourier transforms, windows, mel filters."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from tensorflow import Tensor

from graphnet.lower import spectral
from graphnet.lower.table import Ints, Static
from graphnet.lower.tensorflow.layout import moved
from graphnet.lower.tensorflow.ops import TENSORFLOW, tensorflow_dtype


def _signal(x: Tensor) -> Tensor:
    """[..., 1] or [..., 2] as complex numbers."""
    real = x[..., 0]
    return tf.complex(real, tf.zeros_like(real) if x.shape[-1] == 1 else x[..., 1])


def _pairs(x: Tensor) -> Tensor:
    return tf.stack((tf.math.real(x), tf.math.imag(x)), -1)


def _fit(x: Tensor, length: int) -> Tensor:
    """The last axis cut or filled up with zeros to `length`."""
    size = x.shape[-1]
    if size >= length:
        return x[..., :length]
    return tf.pad(x, [(0, 0)] * (len(x.shape) - 1) + [(0, length - size)])


@TENSORFLOW.op("DFT")
def dft(
    input: Tensor, dft_length: Ints | None = None, axis: Ints | None = None, *, inverse: int = 0, onesided: int = 0
) -> Tensor:
    """Input [..., 1] (real) or [..., 2] (real and imaginary); the same at the output."""
    dim, rank = (axis[0] if axis else -2) % len(input.shape), len(input.shape) - 1
    last = list(range(rank))
    last[dim], last[-1] = last[-1], last[dim]
    signal = moved(_signal(input), tuple(last))
    if inverse and onesided:
        length = dft_length[0] if dft_length else 2 * (signal.shape[-1] - 1)
        return moved(tf.signal.irfft(_fit(signal, length // 2 + 1), [length]), tuple(last))[..., None]
    length = dft_length[0] if dft_length else signal.shape[-1]
    signal = _fit(signal, length)
    if onesided and input.shape[-1] == 1:
        spectrum = tf.signal.rfft(tf.math.real(signal))
    else:
        spectrum = tf.signal.ifft(signal) if inverse else tf.signal.fft(signal)
        spectrum = spectrum[..., : length // 2 + 1] if onesided else spectrum
    return _pairs(moved(spectrum, tuple(last)))


@TENSORFLOW.op("STFT")
def stft(
    signal: Tensor,
    frame_step: Ints,
    window: Tensor | None = None,
    frame_length: Ints | None = None,
    *,
    onesided: int = 1,
) -> Tensor:
    """Signal [batch, length, 1 or 2] to [batch, frames, bins, 2]."""
    wave = signal[..., 0] if signal.shape[-1] == 1 else _signal(signal)
    length = frame_length[0] if frame_length else (window.shape[0] if window is not None else wave.shape[1])
    starts = np.arange(0, wave.shape[1] - length + 1, frame_step[0])
    frames = tf.gather(wave, starts[:, None] + np.arange(length), axis=1)
    frames = frames if window is None else frames * tf.cast(window, frames.dtype)
    if frames.dtype.is_floating and onesided:
        return _pairs(tf.signal.rfft(frames))
    spectrum = tf.signal.fft(frames if frames.dtype.is_complex else tf.complex(frames, tf.zeros_like(frames)))
    return _pairs(spectrum[..., : length // 2 + 1] if onesided else spectrum)


def _cosines(size: int, periodic: int, coefficients: tuple[float, ...], output_datatype: int) -> Tensor:
    return tf.cast(spectral.cosine_window(size, periodic, coefficients), tensorflow_dtype(output_datatype))


@TENSORFLOW.op("HannWindow")
def hann_window(size: Ints, *, output_datatype: int = 1, periodic: int = 1) -> Tensor:
    return _cosines(size[0], periodic, spectral.HANN, output_datatype)


@TENSORFLOW.op("HammingWindow")
def hamming_window(size: Ints, *, output_datatype: int = 1, periodic: int = 1) -> Tensor:
    return _cosines(size[0], periodic, spectral.HAMMING, output_datatype)


@TENSORFLOW.op("BlackmanWindow")
def blackman_window(size: Ints, *, output_datatype: int = 1, periodic: int = 1) -> Tensor:
    return _cosines(size[0], periodic, spectral.BLACKMAN, output_datatype)


@TENSORFLOW.op("MelWeightMatrix")
def mel_weight_matrix(
    num_mel_bins: Ints,
    dft_length: Ints,
    sample_rate: Ints,
    lower_edge_hertz: Static,
    upper_edge_hertz: Static,
    *,
    output_datatype: int = 1,
) -> Tensor:
    weights = spectral.mel_filters(num_mel_bins[0], dft_length[0], sample_rate[0], lower_edge_hertz, upper_edge_hertz)
    return tf.cast(weights, tensorflow_dtype(output_datatype))
