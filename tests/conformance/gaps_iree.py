"""Node tests that IREE does not pass, with a word and a reason each."""

from __future__ import annotations

from tests.conformance.harness import Gap

_FOUR_BITS = "torch-mlir converts no 4-bit integers, and IREE cannot size them"
_EIGHT_BITS = "torch-mlir and IREE's LLVM back end have no conversion to or from this 8-bit float"
_NO_OPERATOR = "torch-mlir, IREE's ONNX front end, has no lowering for the operator"
_NO_FORM = "torch-mlir has the operator, but not with these attributes"
_INVALID = "torch-mlir's lowering makes a module that IREE's verifier or code generator refuses"
_HALF = "one unit in the last place of float16 exceeds the test's tolerance"
_RANDOM = "random numbers of another generator"

GAPS = (
    Gap("test_*FLOAT4E2M1*", "notyet", "IREE's ONNX importer does not know the dtype"),
    Gap("test_*quantizelinear_float4e2m1", "notyet", "IREE's ONNX importer does not know the dtype"),
    Gap("test_cast*INT4*", "notyet", _FOUR_BITS),
    Gap("test_*quantizelinear_*int4", "notyet", _FOUR_BITS),
    Gap("test_cast*_to_FLOAT8*", "notyet", _EIGHT_BITS),
    Gap("test_cast*FLOAT8*_to_FLOAT16*", "notyet", _EIGHT_BITS),
    Gap("test_dequantizelinear_e4m3fn_float16", "notyet", _EIGHT_BITS),
    Gap("test_quantizelinear_e4m3fn", "notyet", "its conversion to float8e4m3fn does not saturate"),
    Gap("test_*quantizelinear_blocked*", "notyet", _NO_FORM),
    Gap("test_*quantizelinear_uint16", "notyet", _NO_FORM),
    Gap("test_resize_*antialias", "notyet", _NO_FORM),
    Gap("test_resize_*exclude_outside", "notyet", _NO_FORM),
    Gap("test_resize_*_not_larger", "notyet", _NO_FORM),
    Gap("test_resize_*_not_smaller", "notyet", _NO_FORM),
    Gap("test_resize_tf_crop_and_resize*", "notyet", _NO_FORM),
    Gap("test_resize_upsample_*_nearest_axes_*", "notyet", _NO_FORM),
    Gap("test_resize_upsample_sizes_nearest_floor_align_corners", "notyet", _NO_FORM),
    Gap("test_resize_downsample_scales_*_align_corners", "notyet", "its Resize aligns corners by the rounded size"),
    Gap("test_gridsample_bicubic*", "notyet", _NO_FORM),
    Gap("test_gridsample_border_padding", "notyet", _NO_FORM),
    Gap("test_gridsample_reflection_padding", "notyet", _NO_FORM),
    Gap("test_gridsample_volumetric_*", "notyet", _NO_FORM),
    Gap("test_gridsample_nearest*", "notyet", "it rounds half up where the test rounds half to even"),
    Gap("test_loop11", "notyet", "torch-mlir has no lowering for this Loop"),
    Gap("test_range_*_expanded", "notyet", "torch-mlir has no lowering for this Loop"),
    Gap("test_affine_grid_?d*", "notyet", _NO_OPERATOR),
    Gap("test_basic_deform_conv_*", "notyet", _NO_OPERATOR),
    Gap("test_deform_conv_*", "notyet", _NO_OPERATOR),
    Gap("test_compress_*", "notyet", "the output's size depends on data, and its module is refused"),
    Gap("test_unique_*", "notyet", "the output's size depends on data, and its module is refused"),
    Gap("test_nonmaxsuppression_two_*", "notyet", _INVALID),
    Gap("test_col2im*", "notyet", _NO_FORM),
    Gap("test_dft*", "notyet", _NO_FORM),
    Gap("test_roialign_*", "notyet", _NO_FORM),
    Gap("test_lppool_2d_dilations", "notyet", _NO_FORM),
    Gap("test_lppool_2d_same_*", "notyet", _NO_FORM),
    Gap("test_gru_bidirectional", "notyet", _NO_FORM),
    Gap("test_gru_reverse", "notyet", _NO_FORM),
    Gap("test_lstm_reverse", "notyet", _NO_FORM),
    Gap("test_simple_rnn_bidirectional", "notyet", _NO_FORM),
    Gap("test_simple_rnn_reverse", "notyet", _NO_FORM),
    Gap("test_lstm_with_peepholes", "notyet", "torch-mlir disregards the peepholes"),
    Gap("test_matmul_1d_3d", "notyet", _NO_FORM),
    Gap("test_matmul_4d_1d", "notyet", _NO_FORM),
    Gap("test_maxunpool_*", "notyet", _NO_FORM),
    Gap("test_maxpool_with_argmax_2d_precomputed_strides", "notyet", _NO_FORM),
    Gap("test_convinteger_with_padding", "notyet", _NO_FORM),
    Gap("test_convtranspose_autopad_same", "notyet", _NO_FORM),
    Gap("test_convtranspose_group_2*", "notyet", _INVALID),
    Gap("test_wrap_pad", "notyet", "iree-compile does not end within two minutes"),
    Gap("test_slice_neg_steps", "notyet", _INVALID),
    Gap("test_reversesequence_time", "notyet", _INVALID),
    Gap("test_reshape_allowzero_reordered", "notyet", "iree-compile crashes on a tensor of no elements"),
    Gap("test_averagepool_2d_ceil_last_window_starts_on_pad", "notyet", _INVALID),
    Gap(
        "test_averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True",
        "notyet",
        "it divides by the size of a window that reaches beyond the padding",
    ),
    Gap("test_mod_float*64*", "notyet", "its linker has no fmod"),
    Gap("test_qlinearmatmul_3D_*", "notyet", "it multiplies batches of quantised matrices wrongly"),
    Gap("test_det_2d", "notyet", "torch-mlir's elimination does not exchange rows: a zero pivot gives NaN"),
    Gap("test_l2normalization_axis_0", "notyet", "its LpNormalization of a zero vector is NaN"),
    Gap("test_gelu_tanh_2", "never", "its approximation of tanh differs by more than the test's tolerance"),
    Gap("test_attention_4d_with_past_and_present_qk_matmul_bias_3d_mask*", "notyet", _INVALID),
    Gap(
        "test_attention_4d_causal_with_past_and_present",
        "notyet",
        "torch-mlir has no Attention, and onnx cannot inline this form of the function",
    ),
    Gap("test_attention_4d_causal_fp16*", "never", _HALF),
    Gap("test_bernoulli*", "never", _RANDOM),
    Gap("test_training_dropout", "never", _RANDOM),
    Gap("test_training_dropout_default", "never", _RANDOM),
    Gap("test_training_dropout_default_mask", "never", _RANDOM),
    Gap("test_training_dropout_mask", "never", _RANDOM),
)
