"""Node tests that ONNX Runtime does not pass on its CPU provider, with a word and a reason each."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.harness import Gap

_ROUND_OFF = "round-off of a float32 transform near zero exceeds the test's 1e-7"
_BFLOAT16 = "no bfloat16 arithmetic on the CPU provider"
_RANDOM = "random numbers of another generator"
_TABLE: dict[tuple[str, str], tuple[str, ...]] = {
    ("notyet", "no float4 kernels"): (
        "test_cast*FLOAT4E2M1*", "test_dequantizelinear_float4e2m1", "test_quantizelinear_float4e2m1",
    ),
    ("never", "floats out of range: left open by the standard, the test expects numpy's result"): (
        "test_cast*_FLOAT*_to_INT4*", "test_cast*_FLOAT*_to_UINT4*",
    ),
    ("never", _RANDOM): (
        "test_training_dropout", "test_training_dropout_mask", "test_training_dropout_default",
        "test_training_dropout_default_mask",
    ),
    ("notyet", "RandomUniformLike has no kernel at this opset"): ("test_bernoulli*",),
    ("never", _ROUND_OFF): (
        "test_dft", "test_dft_axis", "test_dft_axis_opset19", "test_dft_inverse", "test_dft_inverse_opset19",
        "test_dft_opset19", "test_dft_irfft", "test_dft_irfft_opset19", "test_dft_rfft", "test_dft_rfft_opset19",
        "test_stft", "test_stft_with_window",
    ),
    ("notyet", "Mod of floats only with fmod=1"): ("test_mod_float*_fmod_0*",),
    ("notyet", _BFLOAT16): (
        "test_attention_4d_attn_mask_causal_bf16", "test_attention_4d_attn_mask_causal_bf16_expanded",
        "test_attention_4d_causal_padded_kv_bf16_expanded", "test_attention_4d_padded_kv_bf16_expanded",
        "test_attention_3d_causal_bf16*", "test_attention_4d_causal_bf16*", "test_celu_bfloat16_expanded",
    ),
    ("notyet", "recurrent operators only with layout=0"): (
        "test_gru_batchwise", "test_lstm_batchwise", "test_simple_rnn_batchwise",
    ),
    ("notyet", "no RoiAlign kernel at this opset"): (
        "test_roialign_aligned_false", "test_roialign_aligned_true", "test_roialign_mode_max",
    ),
    ("notyet", "no kernel for this integer type"): (
        "test_max_int16", "test_max_uint16", "test_min_int16", "test_min_uint16", "test_pow_types_float32_uint32",
        "test_pow_types_float32_uint64", "test_top_k_uint64",
    ),
    ("never", "one unit in the last place of float16 exceeds the test's tolerance"): ("test_attention_4d_causal_fp16",),
    ("notyet", "the output of masked scores holds another infinity than the standard's function body gives"): (
        "test_attention_4d_with_past_and_present_qk_matmul_bias_3d_mask_causal",
        "test_attention_4d_with_past_and_present_qk_matmul_bias_4d_mask_causal",
    ),
    ("notyet", "ConvInteger only with one zero point for all weights"): ("test_convinteger_with_padding",),
    ("notyet", "ReduceMax refuses an empty set of bool"): ("test_reduce_max_empty_set_bool",),
    ("notyet", "MaxUnpool reads indices as those of the smaller tensor"): ("test_maxunpool_export_with_output_shape",),
    ("notyet", "Resize of one element with align_corners takes another coordinate"): (
        "test_resize_downsample_scales_cubic_align_corners", "test_resize_downsample_scales_linear_align_corners",
    ),
}  # fmt: skip


def _gaps() -> Iterator[Gap]:
    for (word, reason), patterns in _TABLE.items():
        for pattern in patterns:
            yield Gap(pattern, word, reason)


GAPS = tuple(_gaps())
