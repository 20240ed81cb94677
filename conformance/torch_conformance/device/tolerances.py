"""How close a floating result must be to the reference, each number with its source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tolerance:
    """``|got - wanted| <= absolute + relative * |wanted|``."""

    relative: float
    absolute: float


EXACT = Tolerance(0.0, 0.0)

BY_DTYPE = {
    "float64": Tolerance(1e-7, 1e-7),
    "complex128": Tolerance(1e-7, 1e-7),
    "float32": Tolerance(1.3e-6, 1e-5),
    "complex64": Tolerance(1.3e-6, 1e-5),
    "bfloat16": Tolerance(1.6e-2, 1e-5),
    "float16": Tolerance(1e-3, 1e-5),
    "complex32": Tolerance(1e-3, 1e-5),
    # One step of the format: 2**-3 with three bits of fraction, 2**-2 with two.
    "float8_e4m3fn": Tolerance(0.125, 2**-9),
    "float8_e4m3fnuz": Tolerance(0.125, 2**-10),
    "float8_e5m2": Tolerance(0.25, 2**-16),
    "float8_e5m2fnuz": Tolerance(0.25, 2**-17),
    "float8_e8m0fnu": EXACT,
    "float4_e2m1fn_x2": EXACT,
}
"""Source of the first seven: the defaults that `torch.testing.assert_close` documents. Other dtypes are exact."""

MOVES = frozenset(
    """
    H T abs as_strided as_strided_copy as_strided_scatter atleast_1d atleast_2d atleast_3d block_diag
    broadcast_tensors broadcast_to cat ceil chunk clamp_max clamp_min clone column_stack combinations contiguous
    copysign diag diag_embed diagonal diagonal_copy diagonal_scatter dsplit dstack empty_like expand expand_as
    expand_copy fill flatten flip fliplr flipud floor fmax fmin full full_like gather hsplit hstack imag
    index_copy index_fill index_select isclose kthvalue mH mT masked_fill masked_scatter masked_select
    max.reduction_with_dim maximum median meshgrid.list_of_tensors meshgrid.variadic_tensors
    min.reduction_with_dim minimum mode movedim msort narrow narrow_copy neg new_full new_ones new_zeros
    nn.functional.channel_shuffle nn.functional.max_pool1d nn.functional.max_pool2d nn.functional.max_pool3d
    nn.functional.pixel_shuffle nn.functional.pixel_unshuffle nn.functional.relu nn.functional.unfold ones
    ones_like permute permute_copy positive put ravel real relu repeat repeat_interleave reshape reshape_as
    resize_ resize_as_ resolve_conj resolve_neg roll rot90 round scatter select select_scatter sgn sign slice
    slice_scatter sort split split_list_args split_with_sizes split_with_sizes_copy squeeze squeeze.multiple
    squeeze_copy stack swapaxes swapdims t t_copy take take_along_dim tensor_split tile topk transpose
    transpose_copy tril triu trunc unbind unbind_copy unflatten unfold unfold_copy unsafe_chunk unsafe_split
    unsqueeze unsqueeze_copy view view_as view_as_complex view_as_real view_copy vsplit vstack where zero_ zeros
    zeros_like
    """.split()  # noqa: SIM905 - eighteen lines of names read better than a hundred and sixty
)
"""Operators that move, select, or change only the sign of values: every bit is fixed, the sign of zero too."""

ROUNDED = frozenset({"add", "sub", "rsub", "mul"})
"""Operators of one IEEE 754 operation, which is correctly rounded: exact in float16, bfloat16, float32 and float64.
With ``alpha`` they are two operations, which a device may fuse."""

REAL = frozenset({"float16", "bfloat16", "float32", "float64"})

UNINITIALISED = frozenset({"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"})
"""Operators whose contents are whatever the memory held: only metadata is compared."""


def tolerance(operator: str, behaviour: str, fused: bool, dtype: str) -> Tolerance:
    """What a floating leaf of a result may differ by.

    Args:
        operator: ``OpInfo.full_name``.
        behaviour: ``forward`` or ``backward``.
        fused: whether the call has an ``alpha``.
        dtype: name of the leaf's dtype.
    """
    if behaviour == "forward" and (operator in MOVES or (operator in ROUNDED and not fused and dtype in REAL)):
        return EXACT
    return BY_DTYPE.get(dtype, EXACT)
