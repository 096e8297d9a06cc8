#include "export/exporters/scale_files.h"

#include <utility>

#include "core/error.h"
#include "export/engines/engines.h"
#include "model/model_tensors.h"

namespace kvs::inline exporting {
namespace {

/// Returns the name of the layer's attention module as vLLM's scales have it, with a dot at its end.
std::string module_of(const ExportJob& job, std::size_t layer) {
  constexpr std::string_view kAttention = ".self_attn.";
  const std::string& output = job.model.tensors().name(TensorRole::kOutput, layer);
  const std::size_t at = output.rfind(kAttention);
  if (at == std::string::npos)
    throw Error(
        ErrorCode::kUnsupported, job.model.path().string(),
        "found " + printable(output, 120) + ", expected a module self_attn, beside whose weights vLLM takes scales");
  return output.substr(0, at + 1) + std::string(kVllm.scale_module(job.model.config())) + '.';
}

/// Returns the type of the attention's weights, in which llm-compressor writes scales.
DType type_of_weights(const ExportJob& job, std::size_t layer) {
  const StoredTensor* tensor = job.model.archive().find(job.model.tensors().name(TensorRole::kOutput, layer));
  if (tensor == nullptr) return DType::kF32;
  return tensor->type_name == "BF16" ? DType::kBF16 : tensor->type_name == "F16" ? DType::kF16 : DType::kF32;
}

}  // namespace

std::vector<OutputTensor> vllm_scale_tensors(const ExportJob& job, const Fp8Layers& layers) {
  std::vector<OutputTensor> scales;
  scales.reserve(2 * layers.layers.size());
  for (const auto& [index, k, v] : layers.layers) {
    const std::string module = module_of(job, index);
    for (const auto& [name, values] : {std::pair("k_scale", &k), std::pair("v_scale", &v)}) {
      if (job.model.archive().find(module + name) != nullptr)
        throw Error(ErrorCode::kUnsupported, job.model.path().string(),
                    "found " + printable(module + name, 120) + ", expected a checkpoint without scales of a cache");
      const std::uint64_t count = values->size();
      scales.push_back(held_tensor(
          module + name, layers.by_head ? std::vector<std::uint64_t>{count, 1, 1} : std::vector<std::uint64_t>{1},
          *values, type_of_weights(job, index)));
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
