#pragma once

#include "export/exporter.h"

namespace kvs {

/// The model's folder with the scales of an fp8 cache in it, as llm-compressor writes them: tensors
/// model.layers.N.self_attn.k_scale and v_scale in the weights' type, [1] or, where heads have scales of their own,
/// [kv_head, 1, 1], and the scheme in config.json. Weights are copied as they are.
Json write_vllm_fp8(const ExportJob& job);

}  // namespace kvs
