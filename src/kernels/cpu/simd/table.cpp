// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd/functions.h"

namespace kvs::cpu {
inline namespace KVS_ISA {

extern const Loops table;
const Loops table = {.multiply = multiply,
                     .panel_scratch = panel_scratch,
                     .soften = soften,
                     .rescale_rows = rescale_rows,
                     .divide_row = divide_row,
                     .attend_rows = attend_rows,
                     .weigh_row = weigh_row,
                     .encode_rows = encode_rows,
                     .decode_rows = decode_rows,
                     .change_row_basis = change_row_basis,
                     .activate = activate,
                     .reduce_logits = reduce_logits,
                     .cap_logits = cap_logits,
                     .add_earlier_blocks = add_earlier_blocks,
                     .add_within_block = add_within_block,
                     .extend_moment = extend_moment,
                     .add_distances = add_distances};

}  // namespace KVS_ISA
}  // namespace kvs::cpu
