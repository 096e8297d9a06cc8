#pragma once

#include <string>

#include "calibrate/elitekv/config.h"
#include "export/exporter.h"

namespace kvs {

/// {"note": text, "rank": {layer: LongTensor [query_heads, head_dim / 2]}}: each row lists a head's chunks, its elite
/// ones first, in the order in which they were picked, then the others, ascending. Query heads that share a key repeat
/// its row. Source: EliteKV's public code, convert.py and post_process.py.
Json write_elitekv_rank(const ExportJob& job);
/// The bytes of that file.
std::string elitekv_ranks(const EliteConfig& config, const ModelConfig& model);

/// Tensor uint8 [layers, kv_heads, head_dim]: the rank of the channel's chunk, 0 the best, the same in both halves of a
/// head. Ranks beyond the elite set follow the chunks' order. Source: MHA2MLA's public code, 2_norm.py.
Json write_mha2mla_rank(const ExportJob& job);

}  // namespace kvs
