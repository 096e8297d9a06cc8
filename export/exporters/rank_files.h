// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "calibrate/elitekv/config.h"
#include "export/exporter.h"

namespace kvs::inline exporting {

/// Writes {"note": text, "rank": {layer: LongTensor [query_heads, head_dim / 2]}}. Each row lists a head's chunks:
/// first the elite chunks in pick order, then the others, ascending. Query heads that share a key have equal rows.
/// Source: EliteKV's public code, convert.py and post_process.py.
Json write_elitekv_rank(const ExportJob& job);
/// Returns the bytes of the file of write_elitekv_rank().
std::string elitekv_ranks(const EliteConfig& config, const ModelConfig& model);

/// Writes a uint8 tensor [layers, kv_heads, head_dim]: the rank of the channel's chunk, 0 for the best, equal in both
/// halves of a head. Ranks beyond the elite set follow the order of chunks. Source: MHA2MLA's public code, 2_norm.py.
Json write_mha2mla_rank(const ExportJob& job);

}  // namespace kvs::inline exporting
