"""PyTorch rules of signal processing: Fourier transforms, windows, mel filters."""

from __future__ import annotations

import torch
from torch import Tensor

from graphnet.lower import spectral
from graphnet.lower.table import Ints, Static
from graphnet.lower.torch.ops import TORCH
from graphnet.lower.torch.tensors import torch_dtype


@TORCH.op("DFT")
def dft(
    input: Tensor, dft_length: Ints | None = None, axis: Ints | None = None, *, inverse: int = 0, onesided: int = 0
) -> Tensor:
    """Input [..., 1] (real) or [..., 2] (real and imaginary); the same at the output."""
    dim = (axis[0] if axis else -2) % input.ndim
    length = dft_length[0] if dft_length else None
    real = input.shape[-1] == 1
    signal: Tensor = input[..., 0] if real else torch.view_as_complex(input.contiguous())
    if inverse:
        if onesided:
            wave: Tensor = torch.fft.irfft(signal, length, dim)
            return wave.unsqueeze(-1)
        return torch.view_as_real(torch.fft.ifft(signal, length, dim))
    if onesided and real:
        return torch.view_as_real(torch.fft.rfft(signal, length, dim))
    spectrum = torch.fft.fft(signal, length, dim)
    if onesided:
        spectrum = spectrum.narrow(dim, 0, spectrum.shape[dim] // 2 + 1)
    return torch.view_as_real(spectrum)


@TORCH.op("STFT")
def stft(
    signal: Tensor,
    frame_step: Ints,
    window: Tensor | None = None,
    frame_length: Ints | None = None,
    *,
    onesided: int = 1,
) -> Tensor:
    """Signal [batch, length, 1 or 2] to [batch, frames, bins, 2]."""
    real = signal.shape[-1] == 1
    wave = signal[..., 0] if real else torch.view_as_complex(signal.contiguous())
    length = frame_length[0] if frame_length else (window.shape[0] if window is not None else signal.shape[1])
    frames = wave.unfold(1, length, frame_step[0])
    frames = frames if window is None else frames * window
    if onesided and real:
        return torch.view_as_real(torch.fft.rfft(frames))
    spectrum = torch.fft.fft(frames)
    return torch.view_as_real(spectrum[..., : length // 2 + 1] if onesided else spectrum)


def _cosines(size: int, periodic: int, coefficients: tuple[float, ...], output_datatype: int) -> Tensor:
    return torch.tensor(spectral.cosine_window(size, periodic, coefficients), dtype=torch_dtype(output_datatype))


@TORCH.op("HannWindow")
def hann_window(size: Ints, *, output_datatype: int = 1, periodic: int = 1) -> Tensor:
    return _cosines(size[0], periodic, spectral.HANN, output_datatype)


@TORCH.op("HammingWindow")
def hamming_window(size: Ints, *, output_datatype: int = 1, periodic: int = 1) -> Tensor:
    return _cosines(size[0], periodic, spectral.HAMMING, output_datatype)


@TORCH.op("BlackmanWindow")
def blackman_window(size: Ints, *, output_datatype: int = 1, periodic: int = 1) -> Tensor:
    return _cosines(size[0], periodic, spectral.BLACKMAN, output_datatype)


@TORCH.op("MelWeightMatrix")
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
    return torch.tensor(weights, dtype=torch_dtype(output_datatype))
