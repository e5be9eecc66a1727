"""FLOPs and traffic of each operator: the one table by operator, as functions of static shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, log2, prod
from typing import Any

Sizes = tuple[int, ...]


class Operands:
    """What a rule sees of a node: shapes (None where an input is left out) and attributes."""

    __slots__ = ("attrs", "inputs", "outputs")

    def __init__(self, inputs: Sequence[Sizes | None], outputs: Sequence[Sizes], attrs: Mapping[str, Any]) -> None:
        self.inputs, self.outputs, self.attrs = inputs, outputs, attrs

    def input(self, index: int) -> Sizes:
        """Shape of a required input. Raises IndexError."""
        found = self.inputs[index]
        if found is None:
            raise IndexError(index)
        return found

    @property
    def result(self) -> int:
        """Elements of the first output."""
        return prod(self.outputs[0])

    @property
    def source(self) -> int:
        """Elements of the first input."""
        return prod(self.input(0))


Rule = Callable[[Operands], int]


def per_output(count: int) -> Rule:
    """`count` operations for each element of the first output."""
    return lambda node: count * node.result


def per_input(count: int) -> Rule:
    """`count` operations for each element of the first input."""
    return lambda node: count * node.source


def _matmul(node: Operands) -> int:
    return 2 * node.result * node.input(0)[-1]


def _gemm(node: Operands) -> int:
    """2 M N K; the bias and alpha, beta are left out, as torch.utils.flop_counter leaves them out."""
    return 2 * node.result * node.input(0)[0 if node.attrs.get("transA") else 1]


def _conv(node: Operands) -> int:
    """2 per multiply-add of each output element with its window (W is [M, C/group, *kernel])."""
    return 2 * node.result * prod(node.input(1)[1:])


def _qlinear_conv(node: Operands) -> int:
    return 2 * node.result * prod(node.input(3)[1:])


def _conv_transpose(node: Operands) -> int:
    """Each input element meets W[c] of [C, M/group, *kernel] once."""
    return 2 * node.source * prod(node.input(1)[1:])


def _deform_conv(node: Operands) -> int:
    """The convolution, and a bilinear sample (8 operations) of every window element of every group of channels."""
    window = prod(node.input(1)[1:])
    return 2 * node.result * window + 8 * prod(node.outputs[0][2:]) * node.outputs[0][0] * node.input(0)[1] * prod(
        node.input(1)[2:]
    )


def _attention(node: Operands) -> int:
    """Q K' and P V: 2 b h q k (d + d_v). Softmax, scale and mask are left out, as torch.utils.flop_counter does."""
    query, key, value = node.input(0), node.input(1), node.input(2)
    past = node.inputs[4] if len(node.inputs) > 4 else None
    length = past[2] if past is not None else 0
    if len(query) == 4:
        batch, heads, queries, depth = query
        keys, value_depth = key[2] + length, value[3]
    else:
        batch, queries, width = query
        heads, key_heads = node.attrs["q_num_heads"], node.attrs["kv_num_heads"]
        depth, keys, value_depth = width // heads, key[1] + length, value[2] // key_heads
    return 2 * batch * heads * queries * keys * (depth + value_depth)


def _einsum(node: Operands) -> int:
    """2 operations (for n operands, n) for each point of the index space; a contraction of one operand is a sum."""
    equation = str(node.attrs["equation"]).replace(" ", "")
    terms = equation.split("->")[0].split(",")
    size: dict[str, int] = {}
    for term, shape in zip(terms, node.inputs, strict=True):
        dims = list(shape or ())
        left, dots, right = term.partition("...")
        labels = [*left, *(f".{i}" for i in range(len(dims) - len(left) - len(right), 0, -1)), *right]
        for label, dim in zip(labels if dots else list(term), dims, strict=True):
            size[label] = max(size.get(label, 1), dim)
    space = prod(size.values())
    if len(terms) == 1:
        return space if space > node.result else 0
    return (len(terms) if space > node.result else len(terms) - 1) * space


def _window(node: Operands) -> int:
    return node.result * int(prod(node.attrs.get("kernel_shape", ())))


def _recurrent(gates: int, pointwise: int) -> Rule:
    """X [s, b, i], W [d, gates h, i], R [d, gates h, h]: two products a step, then `pointwise` per hidden unit."""

    def rule(node: Operands) -> int:
        steps = node.input(0)[0] * node.input(0)[1]
        directions, width, size = node.input(1)
        hidden = width // gates
        return steps * directions * (2 * width * (size + hidden) + pointwise * hidden)

    return rule


def _resize(node: Operands) -> int:
    """A multiply-add for each of the 2 (linear) or 4 (cubic) neighbours along every axis that changes."""
    taps = {"linear": 2, "cubic": 4}.get(str(node.attrs.get("mode", "nearest")), 0)
    changed = sum(a != b for a, b in zip(node.input(0), node.outputs[0], strict=False))
    return int(2 * taps**changed * node.result) if taps else 0


def _grid_sample(node: Operands) -> int:
    taps = {"linear": 2, "bilinear": 2, "cubic": 4, "bicubic": 4}.get(str(node.attrs.get("mode", "linear")), 0)
    return int(2 * taps ** (len(node.input(0)) - 2) * node.result) if taps else 0


def _roi_align(node: Operands) -> int:
    """For each of the sampling_ratio squared points of an output: a bilinear sample (8), and its part of the mean or
    maximum (1). Raises KeyError without a ratio: then the boxes, which are data, decide the number of points.
    """
    ratio = int(node.attrs.get("sampling_ratio", 0))
    if ratio <= 0:
        raise KeyError("sampling_ratio")
    return 9 * ratio**2 * node.result


def _fourier(node: Operands) -> int:
    """5 n log2 n for each transform of length n (the usual count of a complex radix-2 FFT)."""
    shape = node.outputs[0]
    axis = int(node.attrs.get("axis", -2)) % len(shape)
    length = max(node.input(0)[axis], shape[axis], 1)
    return ceil(5 * length * log2(length)) * (prod(shape) // max(shape[axis] * shape[-1], 1)) if length > 1 else 0


def _stft(node: Operands) -> int:
    batch, frames, bins, _ = node.outputs[0]
    length = bins if not node.attrs.get("onesided", 1) else 2 * (bins - 1)
    return batch * frames * (ceil(5 * length * log2(length)) + 2 * length) if length > 1 else 0


def _determinant(node: Operands) -> int:
    n = node.input(0)[-1]
    return 2 * n**3 // 3 * (node.source // max(n * n, 1))


def _mean(node: Operands) -> int:
    return node.source + node.result


def _variadic(node: Operands) -> int:
    return max(len(node.inputs) - 1, 0) * node.result


def _mean_of_inputs(node: Operands) -> int:
    return len(node.inputs) * node.result


def _loss(node: Operands) -> int:
    return 5 * node.source


def _rules(names: str, rule: Rule) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), rule)


FLOPS: Mapping[str, Rule] = {
    # multiply-adds
    "MatMul": _matmul, "MatMulInteger": _matmul, "QLinearMatMul": lambda node: 2 * node.result * node.input(0)[-1],
    "Gemm": _gemm, "Conv": _conv, "ConvInteger": _conv, "QLinearConv": _qlinear_conv,
    "ConvTranspose": _conv_transpose, "DeformConv": _deform_conv, "Attention": _attention, "Einsum": _einsum,
    "RNN": _recurrent(1, 1), "GRU": _recurrent(3, 9), "LSTM": _recurrent(4, 9),
    # one operation for each output element
    **_rules(
        "Abs Acos Acosh Add Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Ceil Clip Cos"
        " Cosh Div Erf Exp Floor Log Max Min Mod Mul Neg Pow Reciprocal Relu Round Sign Sin Sinh Sqrt Sub Sum Tan Tanh",
        per_output(1),
    ),
    **_rules("Max Min Sum", _variadic), "Mean": _mean_of_inputs,
    # operations for each output element of a formula, as the operator's definition writes it
    **_rules("LeakyRelu PRelu ThresholdedRelu Shrink", per_output(2)),
    **_rules("HardSigmoid Softsign Softplus DequantizeLinear Elu Selu Celu", per_output(3)),
    **_rules("Sigmoid HardSwish QuantizeLinear", per_output(4)),
    **_rules("Swish Gelu Mish", per_output(5)),
    **_rules("DynamicQuantizeLinear", per_output(6)),
    "RotaryEmbedding": per_output(3),
    # normalisation, for each input element: mean, difference, square, sum, scaling, affine
    **_rules("BatchNormalization", per_input(4)),
    **_rules("LayerNormalization InstanceNormalization GroupNormalization MeanVarianceNormalization", per_input(8)),
    **_rules("RMSNormalization LpNormalization", per_input(4)),
    **_rules("Softmax LogSoftmax", per_input(5)), "Hardmax": per_input(1),
    "LRN": lambda node: (2 * int(node.attrs["size"]) + 4) * node.source,
    # reductions and scans
    **_rules("ReduceSum ReduceProd ReduceMax ReduceMin CumSum CumProd ArgMax ArgMin", per_input(1)),
    **_rules("ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum", per_input(2)),
    "ReduceLogSumExp": per_input(4), "ReduceMean": _mean,
    # windows and sampling
    **_rules("AveragePool MaxPool", _window), "LpPool": lambda node: 2 * _window(node),
    **_rules("GlobalAveragePool GlobalMaxPool", per_input(1)), "GlobalLpPool": per_input(2),
    "Resize": _resize, "Upsample": _resize, "GridSample": _grid_sample, "AffineGrid": per_output(6),
    "Col2Im": per_input(1), "RoiAlign": _roi_align,
    # transforms and the rest
    "DFT": _fourier, "STFT": _stft, "Det": _determinant,
    **_rules("HannWindow HammingWindow BlackmanWindow", per_output(5)), "Range": per_output(1),
    "MelWeightMatrix": per_output(4),
    **_rules("NegativeLogLikelihoodLoss", per_input(1)), "SoftmaxCrossEntropyLoss": _loss,
    **_rules(
        "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Bernoulli Multinomial", per_output(10)
    ),
    # movement, comparison and logic: no arithmetic on numbers
    **_rules(
        "And BitCast Cast CastLike CenterCropPad Compress Concat Constant ConstantOfShape DepthToSpace Dropout Equal"
        " Expand EyeLike Flatten Gather GatherElements GatherND Greater GreaterOrEqual Identity IsInf IsNaN Less"
        " LessOrEqual MaxUnpool NonZero Not OneHot Or Pad Reshape ReverseSequence Shape Size Slice SpaceToDepth Split"
        " Squeeze TensorScatter Tile TopK Transpose Trilu Unique Unsqueeze Where Xor",
        per_output(0),
    ),
    "ScatterElements": lambda node: _scattered(node), "ScatterND": lambda node: _scattered(node),
}  # fmt: skip
"""Operator to rule. An operator that is not here is reported as unknown. Integer arithmetic counts like floating."""

UNCOUNTED: Mapping[str, str] = dict.fromkeys(
    ("NonMaxSuppression", "MaxRoiPool"), "how much it computes depends on its data"
) | dict.fromkeys(
    (
        "ConcatFromSequence", "ImageDecoder", "Optional", "OptionalGetElement", "OptionalHasElement", "RegexFullMatch",
        "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength",
        "SequenceMap", "SplitToSequence", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer",
    ),
    "it works on strings, sequences, optionals or files, which no compiler here runs",
)  # fmt: skip
"""Operators of the standard that have no rule, and why. If, Loop and Scan cost what their bodies cost."""


def _scattered(node: Operands) -> int:
    return prod(node.input(2)) if node.attrs.get("reduction", "none") != "none" else 0


VIEWS = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Shape", "Size"})
"""Operators that move no bytes: the result is the input's memory, or follows from its shape."""

PARTIAL_READS: Mapping[str, int] = {"Gather": 0, "GatherElements": 0, "GatherND": 0, "Slice": 0, "Compress": 0}
"""Operators that read of this input only what they give out (a table's rows), never more than all of it."""


def flops(op: str, node: Operands) -> int | None:
    """FLOPs of one application; None for an operator without a rule, or whose shapes the rule cannot read."""
    rule = FLOPS.get(op)
    if rule is None:
        return None
    try:
        return int(rule(node))
    except (IndexError, KeyError, ValueError, TypeError, ZeroDivisionError):
        return None
