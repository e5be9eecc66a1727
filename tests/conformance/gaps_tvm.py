"""Node tests that TVM does not pass, with a word and a reason each."""

from __future__ import annotations

from tests.conformance.harness import Gap

_ABSENT = "its ONNX importer has no such operator, and the standard no function body for it that onnx can inline"
_FOUR_BITS = "it stores no 4-bit dtype of this kind as ONNX packs it, or cannot cast it"
_FLOAT8 = "its casts of 8-bit floats turn infinities or NaN into other numbers"
_HALF = "it rounds to float16 between operators, beyond the test's tolerance"
_BFLOAT16 = "LegalizeOps makes kernels with float32 values in bfloat16 buffers, and vectors of them do not build"
_NAN = "its softmax and selection of rows that are masked out entirely gives NaN where the standard has 0"
_NO_SCAN = "its ONNX importer has no Scan"
_NO_LOOP = "its ONNX importer has no Loop"
_RANDOM = "random numbers of another generator"
_RESIZE = "its Resize differs from the standard here"

GAPS = (
    Gap("test_cast*INT4*", "notyet", _FOUR_BITS),
    Gap("test_cast*FLOAT4E2M1*", "notyet", _FOUR_BITS),
    Gap("test_*quantizelinear_float4e2m1", "notyet", _FOUR_BITS),
    Gap("test_*quantizelinear_*int4", "notyet", _FOUR_BITS),
    Gap("test_cast*FLOAT8E*", "notyet", _FLOAT8),
    Gap("test_*quantizelinear_e4m3fn*", "notyet", "its QuantizeLinear and DequantizeLinear have no 8-bit floats"),
    Gap("test_*quantizelinear_e5m2", "notyet", "its QuantizeLinear and DequantizeLinear have no 8-bit floats"),
    Gap("test_*quantizelinear_blocked*", "notyet", "its importer has no blocked quantisation"),
    Gap("test_linear_attention_*_expanded", "notyet", _NO_SCAN),
    Gap("test_scan9_*", "notyet", _NO_SCAN),
    Gap("test_loop11", "notyet", _NO_LOOP),
    Gap("test_range_*_expanded", "notyet", _NO_LOOP),
    Gap("test_dft*", "notyet", _ABSENT),
    Gap("test_stft*", "notyet", _ABSENT),
    Gap("test_melweightmatrix", "notyet", _ABSENT),
    Gap("test_qlinear*", "notyet", _ABSENT),
    Gap("test_convinteger_*", "notyet", _ABSENT),
    Gap("test_tfidfvectorizer_*", "notyet", _ABSENT),
    Gap("test_center_crop_pad_crop", "notyet", _ABSENT),
    Gap("test_center_crop_pad_crop_and_pad", "notyet", _ABSENT),
    Gap("test_center_crop_pad_crop_axes_chw", "notyet", _ABSENT),
    Gap("test_center_crop_pad_crop_axes_hwc", "notyet", _ABSENT),
    Gap("test_center_crop_pad_crop_negative_axes_hwc", "notyet", _ABSENT),
    Gap("test_center_crop_pad_pad", "notyet", _ABSENT),
    Gap("test_gru_*", "notyet", _ABSENT),
    Gap("test_lstm_*", "notyet", _ABSENT),
    Gap("test_rnn_seq_length", "notyet", _ABSENT),
    Gap("test_simple_rnn_*", "notyet", _ABSENT),
    Gap("test_l[12]normalization_*", "notyet", _ABSENT),
    Gap("test_lpnormalization_default", "notyet", _ABSENT),
    Gap("test_col2im*", "notyet", _ABSENT),
    Gap("test_basic_deform_conv_*", "notyet", _ABSENT),
    Gap("test_deform_conv_*", "notyet", _ABSENT),
    Gap("test_det_*", "notyet", _ABSENT),
    Gap("test_reversesequence_*", "notyet", _ABSENT),
    Gap("test_bernoulli*", "never", _RANDOM),
    Gap("test_training_dropout", "never", _RANDOM),
    Gap("test_training_dropout_default", "never", _RANDOM),
    Gap("test_training_dropout_default_mask", "never", _RANDOM),
    Gap("test_training_dropout_mask", "never", _RANDOM),
    Gap("test_training_dropout_zero_ratio_mask", "notyet", "its Dropout makes a mask of floats"),
    Gap("test_batchnorm_*_training_mode", "notyet", "its BatchNormalization disregards training_mode"),
    Gap("test_attention_*_bf16*", "notyet", _BFLOAT16),
    Gap("test_attention_4d*_fp16*", "never", _HALF),
    Gap("test_causal_conv_with_state_silu_fp16_expanded", "never", _HALF),
    Gap("test_attention_*_fullymasked_qk_matmul_output_mode3_zero*", "notyet", _NAN),
    Gap("test_attention_23_boolmask_fullymasked_row_nan_robustness_expanded", "notyet", _NAN),
    Gap("test_attention_24_qk_matmul_output_mode3_softmax_precision*", "notyet", _NAN),
    Gap("test_attention_4d_causal_nonpad_negative_offset_structural_empty_expanded", "notyet", _NAN),
    Gap("test_attention_local_window_gqa_rank4_mask_expanded", "notyet", _NAN),
    Gap("test_attention_causal_boolmask_nan_robustness_expanded", "notyet", _NAN),
    Gap(
        "test_attention_4d_causal_with_past_and_present",
        "notyet",
        "its Attention takes no four axes with a past, and onnx cannot inline this form of the function",
    ),
    Gap("test_celu_*float16_expanded", "notyet", "its importer makes float32 of a literal beside float16"),
    Gap("test_constant_pad*", "never", "it needs the pads as literals, and here a run determines them"),
    Gap("test_onehot_*", "never", "it needs the depth as a literal, and here a run determines it"),
    Gap("test_convtranspose_output_shape", "notyet", "its ConvTranspose disregards output_shape"),
    Gap("test_eyelike_populate_off_main_diagonal", "notyet", "its EyeLike takes no dtype other than its input's"),
    Gap("test_eyelike_with_dtype", "notyet", "its EyeLike takes no dtype other than its input's"),
    Gap("test_isinf_negative", "notyet", "its IsInf disregards the sign that is asked for"),
    Gap("test_isinf_positive", "notyet", "its IsInf disregards the sign that is asked for"),
    Gap("test_maxpool_with_argmax_*", "notyet", "its MaxPool gives no indices"),
    Gap("test_maxunpool_export_with_output_shape", "notyet", "its MaxUnpool takes no output shape"),
    Gap("test_mod_float_edge_cases_fmod_0_*", "notyet", "its Mod by infinity is NaN"),
    Gap("test_nonmaxsuppression_suppress_by_IOU_and_scores", "notyet", "its output has room for boxes that fail"),
    Gap("test_pow_types_int*_int*", "notyet", "its power takes no two integers"),
    Gap("test_reduce_max_empty_set_bool", "notyet", "its reductions take no bool"),
    Gap("test_reduce_m??_bool_inputs", "notyet", "its reductions take no bool"),
    Gap("test_resize_*_not_*", "notyet", "its Resize has no keep_aspect_ratio_policy"),
    Gap("test_resize_tf_crop_and_resize_axes_*", "notyet", "its Resize takes a region of all axes only"),
    Gap("test_resize_*antialias", "notyet", "its Resize has no antialiasing"),
    Gap("test_resize_*_half_pixel_symmetric", "notyet", "its Resize has no half_pixel_symmetric"),
    Gap("test_resize_downsample_scales_cubic", "notyet", _RESIZE),
    Gap("test_resize_downsample_scales_cubic_A_n0p5_exclude_outside", "notyet", _RESIZE),
    Gap("test_resize_downsample_scales_cubic_align_corners", "notyet", _RESIZE),
    Gap("test_resize_downsample_scales_linear", "notyet", _RESIZE),
    Gap("test_resize_downsample_scales_linear_align_corners", "notyet", "it divides by an output size of 1, less 1"),
    Gap("test_roialign_mode_max", "notyet", "its RoiAlign takes the maximum of interpolated numbers"),
    Gap("test_split_zero_size_splits_*", "notyet", "its split has no parts of size 0"),
    Gap("test_top_k_uint64", "notyet", "its TopK takes no uint64"),
)
