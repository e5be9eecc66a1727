"""Own implementations of networks of scientific machine learning, after the papers named in each class."""

from __future__ import annotations

import itertools
import math

import torch
from torch import nn
from torch.nn import functional as F


def _dft(size: int, modes: int, *, both: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine rows of the `modes` lowest frequencies (and their negatives), (rows, size), orthonormal scale."""
    low = torch.arange(modes, dtype=torch.float64)
    rows = torch.cat([low, torch.arange(-modes, 0, dtype=torch.float64)]) if both else low
    angle = 2 * math.pi * torch.outer(rows, torch.arange(size, dtype=torch.float64)) / size
    scale = 1 / math.sqrt(size)
    return (torch.cos(angle) * scale).float(), (torch.sin(angle) * scale).float()


class SpectralConvolution(nn.Module):
    """The spectral layer of a Fourier neural operator (arXiv 2010.08895), its transforms as matrix products."""

    rows_cos: torch.Tensor
    rows_sin: torch.Tensor
    columns_cos: torch.Tensor
    columns_sin: torch.Tensor

    def __init__(self, width: int, height: int, breadth: int, modes: int) -> None:
        super().__init__()
        self.real = nn.Parameter(torch.randn(width, width, 2 * modes, modes) / width)
        self.imaginary = nn.Parameter(torch.randn(width, width, 2 * modes, modes) / width)
        for name, (size, both) in {"rows": (height, True), "columns": (breadth, False)}.items():
            cosine, sine = _dft(size, modes, both=both)
            self.register_buffer(f"{name}_cos", cosine)
            self.register_buffer(f"{name}_sin", sine)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, width, height, breadth) to the same shape."""
        right_cos, right_sin = x @ self.columns_cos.T, -(x @ self.columns_sin.T)
        real = self.rows_cos @ right_cos + self.rows_sin @ right_sin
        imaginary = self.rows_cos @ right_sin - self.rows_sin @ right_cos
        out_real = self._mix(real, self.real) - self._mix(imaginary, self.imaginary)
        out_imaginary = self._mix(real, self.imaginary) + self._mix(imaginary, self.real)
        left_cos = self.rows_cos.T @ out_real - self.rows_sin.T @ out_imaginary
        left_sin = self.rows_cos.T @ out_imaginary + self.rows_sin.T @ out_real
        return 2 * (left_cos @ self.columns_cos - left_sin @ self.columns_sin)

    @staticmethod
    def _mix(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bixy,ioxy->boxy", x, weight)


class FourierNeuralOperator(nn.Module):
    """2-d Fourier neural operator (arXiv 2010.08895): lifting, four spectral layers with skips, projection."""

    def __init__(self, size: int = 64, width: int = 32, modes: int = 12, layers: int = 4) -> None:
        super().__init__()
        self.lift = nn.Conv2d(3, width, 1)
        self.spectral = nn.ModuleList(SpectralConvolution(width, size, size, modes) for _ in range(layers))
        self.skip = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(layers))
        self.project = nn.Sequential(nn.Conv2d(width, 128, 1), nn.GELU(), nn.Conv2d(128, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, 3, size, size), a field with its two coordinates, to (batch, 1, size, size)."""
        x = self.lift(x)
        for spectral, skip in zip(self.spectral, self.skip, strict=True):
            x = F.gelu(spectral(x) + skip(x))
        result: torch.Tensor = self.project(x)
        return result


class BurgersResidual(nn.Module):
    """A physics-informed network (Raissi et al. 2019): u(x, t) and the residual u_t + u u_x - nu u_xx of Burgers.

    Derivatives by Taylor-mode differentiation: value, d/dx, d2/dx2 and d/dt travel through the layers together.
    """

    def __init__(self, width: int = 64, layers: int = 5, viscosity: float = 0.01 / math.pi) -> None:
        super().__init__()
        widths = [2] + [width] * layers
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))
        self.out = nn.Linear(width, 1)
        self.viscosity = viscosity

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Points (points, 1) each to u and the residual, (points, 1) each."""
        zero, one = torch.zeros_like(x), torch.ones_like(x)
        value = torch.cat([x, t], dim=1)
        d_x, d_t, d_xx = torch.cat([one, zero], dim=1), torch.cat([zero, one], dim=1), torch.cat([zero, zero], dim=1)
        for layer in self.hidden:
            assert isinstance(layer, nn.Linear)
            value = torch.tanh(layer(value))
            d_x, d_t, d_xx = (F.linear(tangent, layer.weight) for tangent in (d_x, d_t, d_xx))
            slope = 1 - value.square()
            d_xx = slope * (d_xx - 2 * value * d_x.square())
            d_x, d_t = slope * d_x, slope * d_t
        u = self.out(value)
        u_x, u_t, u_xx = (F.linear(tangent, self.out.weight) for tangent in (d_x, d_t, d_xx))
        return u, u_t + u * u_x - self.viscosity * u_xx


class DeepONet(nn.Module):
    """Deep operator network (arXiv 1910.03193): a branch net on sampled functions, a trunk net on query points."""

    def __init__(self, sensors: int = 100, width: int = 256, rank: int = 128) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            nn.Linear(sensors, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, rank)
        )
        self.trunk = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, rank), nn.Tanh()
        )
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, function: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        """(batch, sensors) and (points, 2) to (batch, points)."""
        result: torch.Tensor = self.branch(function) @ self.trunk(points).T / math.sqrt(128) + self.bias
        return result


def _sum_at(target: torch.Tensor, messages: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Sum of the messages (edges, width) at each target, (atoms, width) as `like`."""
    return torch.zeros_like(like).scatter_add(0, target[:, None].expand_as(messages), messages)


class SchNet(nn.Module):
    """Continuous-filter convolutions on a molecule (arXiv 1706.08566), neighbours given as an edge list."""

    centres: torch.Tensor

    def __init__(self, width: int = 128, layers: int = 3, gaussians: int = 50, cutoff: float = 6.0) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, width)
        self.filters = nn.ModuleList(
            nn.Sequential(nn.Linear(gaussians, width), nn.Softplus(), nn.Linear(width, width)) for _ in range(layers)
        )
        self.before = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers))
        self.after = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.Softplus(), nn.Linear(width, width)) for _ in range(layers)
        )
        self.energy = nn.Sequential(nn.Linear(width, width // 2), nn.Softplus(), nn.Linear(width // 2, 1))
        self.register_buffer("centres", torch.linspace(0.0, cutoff, gaussians))
        self.cutoff = cutoff
        self.sharpness = -0.5 / (cutoff / (gaussians - 1)) ** 2

    def forward(self, numbers: torch.Tensor, positions: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Atomic numbers (atoms), positions (atoms, 3), edges (2, edges) to one energy."""
        source, target = edge_index[0], edge_index[1]
        offsets = positions.index_select(0, source) - positions.index_select(0, target)
        distance = (offsets.square().sum(dim=1) + 1e-12).sqrt()
        basis = torch.exp(self.sharpness * (distance[:, None] - self.centres).square())
        envelope = 0.5 * (torch.cos(distance * math.pi / self.cutoff) + 1) * (distance < self.cutoff)
        h = self.embedding(numbers)
        for filters, before, after in zip(self.filters, self.before, self.after, strict=True):
            messages = before(h).index_select(0, source) * (filters(basis) * envelope[:, None])
            h = h + after(_sum_at(target, messages, h))
        energy: torch.Tensor = self.energy(h).mean(dim=0)
        return energy


class EquivariantLayer(nn.Module):
    """One layer of an E(n) equivariant graph network (arXiv 2102.09844)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.edge = nn.Sequential(nn.Linear(2 * width + 1, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.node = nn.Sequential(nn.Linear(2 * width, width), nn.SiLU(), nn.Linear(width, width))
        self.coordinate = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1, bias=False))

    def forward(
        self, h: torch.Tensor, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Features (atoms, width) and coordinates (atoms, 3), updated."""
        offsets = x.index_select(0, target) - x.index_select(0, source)
        squared = offsets.square().sum(dim=1, keepdim=True)
        message = self.edge(torch.cat([h.index_select(0, target), h.index_select(0, source), squared], dim=1))
        step = offsets / (squared + 1).sqrt() * torch.tanh(self.coordinate(message))
        x = x + 0.1 * _sum_at(target, step, x)
        gathered = _sum_at(target, message, h)
        return h + self.node(torch.cat([h, gathered], dim=1)), x


class EquivariantNetwork(nn.Module):
    """E(n) equivariant graph network (arXiv 2102.09844)."""

    def __init__(self, features: int = 16, width: int = 128, layers: int = 4) -> None:
        super().__init__()
        self.embed = nn.Linear(features, width)
        self.layers = nn.ModuleList(EquivariantLayer(width) for _ in range(layers))
        self.out = nn.Linear(width, features)

    def forward(
        self, features: torch.Tensor, positions: torch.Tensor, edge_index: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(atoms, features), (atoms, 3) and (2, edges) to new features and positions."""
        h, x = self.embed(features), positions
        for layer in self.layers:
            h, x = layer(h, x, edge_index[0], edge_index[1])
        return self.out(h), x


class PairBlock(nn.Module):
    """Pair representation update of a protein structure network: triangle product, triangle attention, transition
    (after the Evoformer, Jumper et al. 2021)."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.left, self.right, self.gate = (nn.Linear(width, width) for _ in range(3))
        self.product_norm = nn.LayerNorm(width)
        self.product_out = nn.Linear(width, width)
        self.attention_norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.pair_bias = nn.Linear(width, heads, bias=False)
        self.attention_out = nn.Linear(width, width)
        self.transition = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width)
        )
        self.heads = heads

    def forward(self, pair: torch.Tensor) -> torch.Tensor:
        """(batch, residues, residues, width) to the same shape."""
        z = self.norm(pair)
        product = torch.einsum("bikc,bjkc->bijc", torch.sigmoid(self.left(z)) * z, torch.sigmoid(self.right(z)) * z)
        pair = pair + torch.sigmoid(self.gate(z)) * self.product_out(self.product_norm(product))
        pair = pair + self._attend(self.attention_norm(pair))
        result: torch.Tensor = pair + self.transition(pair)
        return result

    def _attend(self, z: torch.Tensor) -> torch.Tensor:
        batch, rows, columns, width = z.shape
        qkv = self.qkv(z).reshape(batch, rows, columns, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(3, 0, 1, 4, 2, 5).unbind(0)
        scores = q @ k.transpose(-1, -2) / math.sqrt(width // self.heads)
        scores = scores + self.pair_bias(z).permute(0, 3, 1, 2)[:, None]
        mixed = (scores.softmax(dim=-1) @ v).permute(0, 1, 3, 2, 4).reshape(batch, rows, columns, width)
        result: torch.Tensor = self.attention_out(mixed)
        return result


def pair_stack(layers: int = 2, width: int = 64) -> nn.Module:
    """`layers` pair blocks one after the other."""
    return nn.Sequential(*(PairBlock(width) for _ in range(layers)))
