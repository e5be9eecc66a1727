"""Own implementations of vision, audio and recommender networks, after the papers named in each class."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


def _double(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class UNet(nn.Module):
    """Segmentation U-Net (arXiv 1505.04597) with batch normalisation and padded convolutions."""

    def __init__(self, classes: int = 2, widths: tuple[int, ...] = (32, 64, 128, 256, 512)) -> None:
        super().__init__()
        self.down = nn.ModuleList(_double(a, b) for a, b in zip((3, *widths), widths, strict=False))
        pairs = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, stride=2) for a, b in pairs)
        self.merge = nn.ModuleList(_double(a, b) for a, b in pairs)
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, 3, height, width), sides divisible by 16, to (batch, classes, height, width)."""
        skips = []
        for index, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if index else x)
            skips.append(x)
        for up, merge, skip in zip(self.up, self.merge, skips[-2::-1], strict=True):
            x = merge(torch.cat([skip, up(x)], dim=1))
        result: torch.Tensor = self.head(x)
        return result


class _TemporalBlock(nn.Module):
    def __init__(self, width: int, hidden: int, dilation: int) -> None:
        super().__init__()
        self.enter = nn.Conv1d(width, hidden, 1)
        self.depthwise = nn.Conv1d(hidden, hidden, 3, padding=dilation, dilation=dilation, groups=hidden)
        self.activations = nn.ModuleList(nn.PReLU() for _ in range(2))
        self.norms = nn.ModuleList(nn.GroupNorm(1, hidden) for _ in range(2))
        self.residual = nn.Conv1d(hidden, width, 1)
        self.skip = nn.Conv1d(hidden, width, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.norms[0](self.activations[0](self.enter(x)))
        y = self.norms[1](self.activations[1](self.depthwise(y)))
        return x + self.residual(y), self.skip(y)


class ConvTasNet(nn.Module):
    """Speech separation on the waveform (arXiv 1809.07454): encoder, dilated temporal blocks, masks, decoder."""

    def __init__(
        self, filters: int = 256, width: int = 128, hidden: int = 256, blocks: int = 8, repeats: int = 2
    ) -> None:
        super().__init__()
        self.sources, self.filters = 2, filters
        self.encoder = nn.Conv1d(1, filters, 16, stride=8, bias=False)
        self.norm = nn.GroupNorm(1, filters)
        self.bottleneck = nn.Conv1d(filters, width, 1)
        self.blocks = nn.ModuleList(
            _TemporalBlock(width, hidden, 2**power) for _ in range(repeats) for power in range(blocks)
        )
        self.masks = nn.Sequential(nn.PReLU(), nn.Conv1d(width, self.sources * filters, 1))
        self.decoder = nn.ConvTranspose1d(filters, 1, 16, stride=8, bias=False)

    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        """(batch, samples) to (batch, sources, samples)."""
        mixture = F.relu(self.encoder(wave[:, None]))
        x, total = self.bottleneck(self.norm(mixture)), torch.zeros((), dtype=wave.dtype)
        for block in self.blocks:
            x, skip = block(x)
            total = total + skip
        masks = torch.sigmoid(self.masks(total)).unflatten(1, (self.sources, self.filters))
        separated = (masks * mixture[:, None]).flatten(0, 1)
        result: torch.Tensor = self.decoder(separated).unflatten(0, (-1, self.sources)).squeeze(2)
        return result


class DLRM(nn.Module):
    """Deep learning recommendation model (arXiv 1906.00091): pooled multi-hot tables, pairwise dot interaction."""

    lower: torch.Tensor

    def __init__(self, tables: int = 26, rows: int = 20_000, width: int = 64) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        self.bottom = nn.Sequential(
            nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, width), nn.ReLU()
        )
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(
            nn.Linear(pairs + width, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1), nn.Sigmoid()
        )
        rows_, columns = torch.tril_indices(tables + 1, tables + 1, offset=-1)
        self.register_buffer("lower", rows_ * (tables + 1) + columns)

    def forward(self, dense: torch.Tensor, sparse: torch.Tensor) -> torch.Tensor:
        """(batch, 13) and indices (tables, batch, hot) to a click probability (batch, 1)."""
        x = self.bottom(dense)
        pooled = [table(indices).sum(dim=1) for table, indices in zip(self.tables, sparse.unbind(0), strict=True)]
        stacked = torch.stack([x, *pooled], dim=1)
        products = (stacked @ stacked.transpose(1, 2)).flatten(1).index_select(1, self.lower)
        result: torch.Tensor = self.top(torch.cat([x, products], dim=1))
        return result


class TemporalConvolution(nn.Module):
    """A WaveNet-like stack (arXiv 1609.03499): gated dilated causal convolutions with skips."""

    def __init__(self, width: int = 64, skip: int = 128, layers: int = 10, classes: int = 256) -> None:
        super().__init__()
        self.enter = nn.Conv1d(1, width, 1)
        self.dilated = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=2**power) for power in range(layers))
        self.residual = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(layers))
        self.skips = nn.ModuleList(nn.Conv1d(width, skip, 1) for _ in range(layers))
        self.out = nn.Sequential(nn.ReLU(), nn.Conv1d(skip, skip, 1), nn.ReLU(), nn.Conv1d(skip, classes, 1))

    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        """(batch, samples) to logits (batch, classes, samples)."""
        x, total = self.enter(wave[:, None]), torch.zeros((), dtype=wave.dtype)
        for power, (dilated, residual, skip) in enumerate(zip(self.dilated, self.residual, self.skips, strict=True)):
            filtered, gate = dilated(F.pad(x, (2**power, 0))).chunk(2, dim=1)
            y = torch.tanh(filtered) * torch.sigmoid(gate)
            total = total + skip(y)
            x = x + residual(y)
        result: torch.Tensor = self.out(total)
        return result
