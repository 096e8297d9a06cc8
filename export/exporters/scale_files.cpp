// SPDX-License-Identifier: Apache-2.0
#include "export/exporters/scale_files.h"

#include <tuple>
#include <utility>

#include "core/error.h"
#include "export/engines/engines.h"
#include "model/model_tensors.h"

namespace kvs::inline exporting {
namespace {

constexpr std::string_view kModule = "self_attn";

/// Returns the module with whose name vLLM reads a layer's scales, with a dot at its end.
std::string scales_module(const ExportJob& job, std::size_t layer) {
  const std::string module = attention_module(job, layer);
  return module.substr(0, module.size() - kModule.size()) + std::string(kVllm.scale_module(job.model.config())) + '.';
}

/// Returns the type of the attention's weights, in which llm-compressor writes scales.
DType type_of_weights(const ExportJob& job, std::size_t layer) {
  const StoredTensor* tensor = job.model.archive().find(job.model.tensors().name(TensorRole::kOutput, layer));
  if (tensor == nullptr) return DType::kF32;
  return tensor->type_name == "BF16" ? DType::kBF16 : tensor->type_name == "F16" ? DType::kF16 : DType::kF32;
}

/// Refuses a checkpoint that has a tensor of this name.
void expect_no_scale(const ExportJob& job, const std::string& name) {
  if (job.model.archive().find(name) != nullptr)
    throw Error(ErrorCode::kUnsupported, job.model.path().string(),
                "found " + printable(name, 120) + ", expected a checkpoint without scales of a cache");
}

}  // namespace

std::string attention_module(const ExportJob& job, std::size_t layer) {
  constexpr std::string_view kAttention = ".self_attn.";
  const std::string& output = job.model.tensors().name(TensorRole::kOutput, layer);
  const std::size_t at = output.rfind(kAttention);
  if (at == std::string::npos)
    throw Error(ErrorCode::kUnsupported, job.model.path().string(),
                "found " + printable(output, 120) + ", expected a module self_attn: vLLM takes scales in no other");
  return output.substr(0, at + kAttention.size() - 1);
}

std::vector<OutputTensor> vllm_scale_tensors(const ExportJob& job, const ScaledLayers& layers) {
  std::vector<OutputTensor> scales;
  scales.reserve(2 * layers.layers.size());
  for (const auto& [index, kind, k, v] : layers.layers) {
    const std::string module = scales_module(job, index);
    for (const auto& [name, values] : {std::pair("k_scale", &k), std::pair("v_scale", &v)}) {
      expect_no_scale(job, module + name);
      const std::uint64_t count = values->size();
      scales.push_back(held_tensor(
          module + name, layers.by_head ? std::vector<std::uint64_t>{count, 1, 1} : std::vector<std::uint64_t>{1},
          *values, type_of_weights(job, index)));
    }
  }
  return scales;
}

std::vector<OutputTensor> modelopt_scale_tensors(const ExportJob& job, const ScaledLayers& layers) {
  const bool own_names = kVllm.scale_module(job.model.config()) == kModule;
  std::vector<OutputTensor> scales;
  scales.reserve(2 * layers.layers.size());
  for (const auto& [index, kind, k, v] : layers.layers) {
    const std::string module = own_names ? attention_module(job, index) + '.' : scales_module(job, index);
    for (const auto& [projection, name, values] :
         {std::tuple("k_proj.", "k_scale", &k), std::tuple("v_proj.", "v_scale", &v)}) {
      const std::string tensor = module + (own_names ? projection : "") + name;
      expect_no_scale(job, tensor);
      scales.push_back(held_tensor(tensor, std::vector<std::uint64_t>{1}, *values, DType::kF32));
    }
  }
  return scales;
}

Json index_with(const TensorArchive& archive, std::span<const OutputTensor> scales, const std::string& scales_file) {
  Json index{{"metadata", Json::object()}, {"weight_map", Json::object()}};
  std::uint64_t bytes = 0;
  for (const StoredTensor& tensor : archive.tensors()) {
    index["weight_map"][tensor.name] = archive.file_of(tensor).filename().string();
    bytes += tensor.bytes.size();
  }
  for (const OutputTensor& tensor : scales) {
    index["weight_map"][tensor.name] = scales_file;
    bytes += tensor.bytes();
  }
  index["metadata"]["total_size"] = bytes;
  return index;
}

}  // namespace kvs::inline exporting
