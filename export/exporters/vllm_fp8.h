#pragma once

#include "export/exporter.h"

namespace kvs::inline exporting {

/// Writes the model's folder with the scales of an fp8 cache in llm-compressor's format: tensors
/// model.layers.N.self_attn.k_scale and v_scale in the weights' type, [1] or, with scales per head, [kv_head, 1, 1],
/// and the scheme in config.json. Weights are copied unchanged.
Json write_vllm_fp8(const ExportJob& job);

}  // namespace kvs::inline exporting
