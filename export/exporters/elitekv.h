// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "export/exporter.h"

namespace kvs::inline exporting {

/// Writes a folder with the tensors and names of EliteKV's public code (convert.py): q_nope_proj, q_rope_proj,
/// k_rope_proj, kv_a_proj and kv_b_proj replace q, k and v. A Llama's config.json has half_of_rope_dim and kv_dim. The
/// rank file is RoPElite_R.pkl. Rows of a head keep the order of its channels. kv_b_proj has each KV head's keys before
/// its values. Sets need not be disjoint. Layers of a smaller rank are padded with zeros to the largest rank.
Json write_elitekv(const ExportJob& job);

}  // namespace kvs::inline exporting
