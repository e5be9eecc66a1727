"""Node tests that OpenVINO on the CPU does not pass, with a word and a reason each."""

from __future__ import annotations

from tests.conformance.harness import Gap

_NO_RULE = "its ONNX importer has no rule for the operator"
_REDUCE = (
    "ReduceMax of a row of -inf gives float32's lowest number, so the guard for rows that are masked entirely fails"
)
_NARROW = "float64 is computed as float32, and infinity becomes the largest finite number"
_SATURATE = "numbers out of range become infinity or NaN, the test expects the largest finite number"
_OPEN = "numbers out of range: left open by the standard, the test expects numpy's result"
_BATCH_FIRST = "the importer ignores layout=1"
_ALIGNED = "align_corners goes by the rounded size of the output instead of size times scale"
_EXCLUDE = "the importer ignores exclude_outside"
_ANTIALIAS = "the importer ignores antialias"
_POLICY = "the importer ignores keep_aspect_ratio_policy"
_TIE = "a quotient in the middle between two integers is rounded to the other one"
_RANDOM = "random numbers of another generator"

GAPS = (
    Gap("test_attention_23_boolmask_fullymasked_row_nan_robustness_expanded", "notyet", _REDUCE),
    Gap("test_attention_2?_fullymasked_qk_matmul_output_mode3_zero_expanded", "notyet", _REDUCE),
    Gap("test_attention_24_qk_matmul_output_mode3_softmax_precision_expanded", "notyet", _REDUCE),
    Gap("test_attention_4d_causal_nonpad_negative_offset_structural_empty_expanded", "notyet", _REDUCE),
    Gap("test_attention_4d_causal_padded_kv_bf16_expanded", "notyet", _REDUCE),
    Gap("test_attention_causal_boolmask_nan_robustness_expanded", "notyet", _REDUCE),
    Gap("test_attention_local_window_gqa_rank4_mask_expanded", "notyet", _REDUCE),
    Gap("test_reduce_max_empty_set", "notyet", "an empty maximum is float32's lowest number instead of -inf"),
    Gap("test_reduce_min_empty_set", "notyet", "an empty minimum is float32's largest number instead of inf"),
    Gap("test_*deform_conv_*", "notyet", _NO_RULE),
    Gap("test_det_*", "notyet", _NO_RULE),
    Gap("test_maxunpool_*", "notyet", _NO_RULE),
    Gap("test_melweightmatrix", "notyet", _NO_RULE),
    Gap("test_tfidfvectorizer_*", "notyet", "the rule is in another package, openvino-tokenizers"),
    Gap("test_bernoulli*", "never", _RANDOM),
    Gap("test_training_dropout*", "notyet", "its importer takes Dropout of inference only"),
    Gap("test_cast*_FLOAT8E?M?FNUZ*", "notyet", "it has no float8 without negative zero (FNUZ)"),
    Gap("test_cast*_to_FLOAT8E?M?FNUZ*", "notyet", "it has no float8 without negative zero (FNUZ)"),
    Gap("test_cast_FLOAT*_to_FLOAT8E4M3FN", "notyet", _SATURATE),
    Gap("test_castlike_FLOAT*_to_FLOAT8E4M3FN", "notyet", _SATURATE),
    Gap("test_castlike_FLOAT*_to_FLOAT8E4M3FN_expanded", "notyet", _SATURATE),
    Gap("test_cast_FLOAT*_to_FLOAT8E5M2", "notyet", _SATURATE),
    Gap("test_castlike_FLOAT*_to_FLOAT8E5M2", "notyet", _SATURATE),
    Gap("test_castlike_FLOAT*_to_FLOAT8E5M2_expanded", "notyet", _SATURATE),
    Gap("test_cast*_to_FLOAT4E2M1*", "notyet", "NaN becomes 6, the test expects -0"),
    Gap("test_cast*_DOUBLE_to_FLOAT", "notyet", _NARROW),
    Gap("test_castlike_DOUBLE_to_FLOAT_expanded", "notyet", _NARROW),
    Gap("test_cast*_to_DOUBLE*", "notyet", _NARROW),
    Gap("test_cast*_to_INT4*", "never", _OPEN),
    Gap("test_cast*_to_UINT4*", "never", _OPEN),
    Gap("test_col2im_5d", "notyet", "Col2Im is for two spatial dimensions only"),
    Gap("test_gridsample_volumetric_*", "notyet", "GridSample is for two spatial dimensions only"),
    Gap("test_constant_pad*", "notyet", "Pad ignores a value that is known only at run time and fills with zeros"),
    Gap("test_wrap_pad", "notyet", "Pad has no mode wrap"),
    Gap("test_dft", "never", "round-off of a float32 transform near zero exceeds the test's 1e-7"),
    Gap("test_dft_opset19", "never", "round-off of a float32 transform near zero exceeds the test's 1e-7"),
    Gap("test_dft_inverse*", "never", "round-off of a float32 transform near zero exceeds the test's 1e-7"),
    Gap("test_dft_axis*", "never", "round-off of a float32 transform near zero exceeds the test's 1e-7"),
    Gap("test_dft_?rfft*", "notyet", "the importer does not add the last axis of a real result"),
    Gap("test_dft_rfft*", "notyet", "the importer does not take the last axis of real numbers away"),
    Gap("test_dynamicquantizelinear", "never", _TIE),
    Gap("test_dynamicquantizelinear_expanded", "never", _TIE),
    Gap("test_quantizelinear_uint16", "never", "ties are rounded after the zero point was added"),
    Gap("test_quantizelinear_blocked_symmetric", "notyet", "the importer wants a zero point for each block"),
    Gap("test_quantizelinear_float4e2m1", "notyet", "the importer does not quantise to float4"),
    Gap("test_*_batchwise", "notyet", _BATCH_FIRST),
    Gap("test_lstm_with_peepholes", "notyet", "the importer ignores peepholes"),
    Gap(
        "test_maxpool_2d_ceil_output_size_reduce_by_one", "notyet", "ceil_mode keeps windows that begin in the padding"
    ),
    Gap("test_mod_*_fmod_0*", "notyet", "Mod with fmod=0 is for integers only"),
    Gap(
        "test_nonmaxsuppression_iou_threshold_boundary", "notyet", "a box whose overlap equals the threshold is dropped"
    ),
    Gap("test_resize_downsample_scales_*_align_corners", "notyet", _ALIGNED),
    Gap("test_resize_*_exclude_outside", "notyet", _EXCLUDE),
    Gap("test_resize_downsample_*_antialias", "notyet", _ANTIALIAS),
    Gap("test_resize_*_half_pixel_symmetric", "notyet", "Resize has no half_pixel_symmetric"),
    Gap("test_resize_tf_crop_and_resize*", "notyet", "Resize has no tf_crop_and_resize"),
    Gap("test_resize_*_not_larger", "notyet", _POLICY),
    Gap("test_resize_*_not_smaller", "notyet", _POLICY),
    Gap(
        "test_roialign_mode_max",
        "notyet",
        "the maximum is of interpolated samples, the standard's of their weighted corners",
    ),
)
