// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "export/exporters/scaled_layers.h"
#include "io/output_tensor.h"

namespace kvs::inline exporting {

/// Returns the name of a layer's attention module, such as "model.layers.0.self_attn".
/// @throws Error kUnsupported for another module than self_attn
std::string attention_module(const ExportJob& job, std::size_t layer);
/// Returns the tensors k_scale and v_scale of each layer, with the names that vLLM reads for the model's family: [1],
/// or with scales by head [kv_head, 1, 1]. They are in the weights' type, or in f32 if the weights are quantised.
/// @throws Error kUnsupported for names of modules that vLLM takes no scales in, and if the checkpoint has scales
std::vector<OutputTensor> vllm_scale_tensors(const ExportJob& job, const ScaledLayers& layers);
/// Returns the tensors k_proj.k_scale and v_proj.v_scale of each layer, [1] in f32, as Model-Optimizer names them; in
/// families that vLLM reads by other names, those names. @throws Error like vllm_scale_tensors()
std::vector<OutputTensor> modelopt_scale_tensors(const ExportJob& job, const ScaledLayers& layers);

/// Returns model.safetensors.index.json of the files that the model was read from, plus `scales` in `scales_file`. The
/// folder's own index may be for other files.
Json index_with(const TensorArchive& archive, std::span<const OutputTensor> scales, const std::string& scales_file);

}  // namespace kvs::inline exporting
