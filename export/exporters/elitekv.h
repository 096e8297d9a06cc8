#pragma once

#include "export/exporter.h"

namespace kvs {

/// A folder with the tensors and names of EliteKV's public code (convert.py): q_nope_proj, q_rope_proj, k_rope_proj,
/// kv_a_proj, kv_b_proj in the place of q, k and v, half_of_rope_dim and kv_dim in a Llama's config.json, and the rank
/// file RoPElite_R.pkl. Rows of a head keep the order of its channels; kv_b_proj has each KV head's keys before its
/// values. Sets need not be disjoint. Layers of a smaller rank get zeros up to the largest.
Json write_elitekv(const ExportJob& job);

}  // namespace kvs
