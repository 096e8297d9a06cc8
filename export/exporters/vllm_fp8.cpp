#include "export/exporters/vllm_fp8.h"

#include <algorithm>
#include <vector>

#include "caches/kv_types.h"
#include "core/error.h"
#include "export/exporters/engine_types.h"
#include "export/exporters/hf_folder.h"
#include "io/file.h"
#include "io/python_json.h"
#include "io/safetensors_writer.h"
#include "io/tensor_archive.h"
#include "model/cache_shape.h"
#include "model/model_tensors.h"

namespace kvs::inline exporting {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kScalesFile = "model-kv-cache-scales.safetensors";

std::string attention_of(std::size_t layer) { return "model.layers." + std::to_string(layer) + ".self_attn."; }

/// Returns the type of the attention's weights. vLLM reads scales in this type.
DType type_of_weights(const ExportJob& job) {
  const StoredTensor* tensor = job.model.archive().find(attention_of(0) + "o_proj.weight");
  if (tensor == nullptr)
    throw Error(ErrorCode::kUnsupported, job.model.path().string(),
                "found no " + attention_of(0) + "o_proj.weight, expected the names that vLLM takes scales beside");
  return tensor->type_name == "BF16" ? DType::kBF16 : tensor->type_name == "F16" ? DType::kF16 : DType::kF32;
}

/// Returns the storage types of all layers. @throws Error kUnsupported unless they are fp8 or, in skipped layers, f16
std::vector<KvTypes> kv_types_of(const ExportJob& job, std::vector<std::size_t>& skipped) {
  const ModelConfig& model = job.model.config();
  Parameters reader = parameter_reader(job);
  const CacheShape shape = cache_shape(model);
  std::vector<KvTypes> types;
  for (std::size_t layer = 0; layer < model.layers(); ++layer) {
    types.push_back(reader.select(layer) ? read_kv_types(reader, layer, shape) : KvTypes{});
    const RowKind k = types.back().k.format.kind, v = types.back().v.format.kind;
    if (k != RowKind::kE4m3 && k == v) {  // layer stays at 16 bits
      skipped.push_back(layer);
    } else if (k != RowKind::kE4m3 || v != RowKind::kE4m3) {
      refuse_parameter(job, "type",
                       "found layer " + std::to_string(layer) +
                           " with another kind, expected fp8 of keys "
                           "and values: vLLM's scheme has one for both");
    }
  }
  if (skipped.size() == model.layers()) refuse_parameter(job, "type", "found no fp8, expected it in some layers");
  return types;
}

bool is_one(const RowType& type) {
  return std::ranges::all_of(type.scales, [&](float scale) { return scale == type.scales.front(); });
}

void copy_folder(const fs::path& from, const fs::path& to) {
  for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
    const fs::path name = entry.path().filename();
    if (!entry.is_regular_file() || name == "config.json" || name == kIndex || name == kExportRecord) continue;
    copy_regular_file(entry.path(), to / name);
  }
  copy_more_templates(from, to);
}

/// Returns an index of the files that the model was read from, plus the tensors of scales. The folder's own index may
/// be for other files.
Json index_with(const ExportJob& job, std::span<const OutputTensor> scales) {
  Json index{{"metadata", Json::object()}, {"weight_map", Json::object()}};
  const TensorArchive& archive = job.model.archive();
  std::uint64_t bytes = 0;
  for (const StoredTensor& tensor : archive.tensors()) {
    index["weight_map"][tensor.name] = archive.file_of(tensor).filename().string();
    bytes += tensor.bytes.size();
  }
  for (const OutputTensor& tensor : scales) {
    index["weight_map"][tensor.name] = kScalesFile;
    bytes += tensor.bytes();
  }
  index["metadata"]["total_size"] = bytes;
  return index;
}

Json config_with_scheme(const ExportJob& job, bool by_head) {
  const fs::path path = job.model.path() / "config.json";
  Json config = parse_python_json(read_text_file(path, kMaxConfigBytes), path.string());
  if (config.contains("quantization_config"))
    throw Error(ErrorCode::kUnsupported, path.string() + ": /quantization_config",
                "found one, expected none: a checkpoint has one scheme");
  const fs::path own = job.model.path() / "hf_quant_config.json";  // ModelOpt's
  if (fs::exists(own))
    throw Error(ErrorCode::kUnsupported, own.string(), "found one, expected none: a checkpoint has one scheme");
  config["quantization_config"] = {{"quant_method", "compressed-tensors"},
                                   {"format", "dense"},
                                   {"quantization_status", "frozen"},
                                   {"config_groups", Json::object()},
                                   {"ignore", Json::array()},
                                   {"kv_cache_scheme",
                                    {{"num_bits", 8},
                                     {"type", "float"},
                                     {"strategy", by_head ? "attn_head" : "tensor"},
                                     {"symmetric", true},
                                     {"dynamic", false}}}};
  return config;
}

}  // namespace

Json write_vllm_fp8(const ExportJob& job) {
  if (job.model.format() == ModelFormat::kGguf)
    throw Error(ErrorCode::kUnsupported, job.model.path().string(),
                "found a GGUF file, expected a Hugging Face folder: it is copied as it is");
  (void)resolved_parameters(job);  // throws for invalid parameters
  std::vector<std::size_t> skipped;
  const std::vector<KvTypes> types = kv_types_of(job, skipped);
  const bool by_head =
      !std::ranges::all_of(types, [](const KvTypes& layer) { return is_one(layer.k) && is_one(layer.v); });
  const DType type = type_of_weights(job);
  std::vector<OutputTensor> scales;
  for (std::size_t layer = 0; layer < types.size(); ++layer)
    for (const auto& [name, side] : {std::pair("k_scale", &types[layer].k), std::pair("v_scale", &types[layer].v)}) {
      std::vector<float> values = side->scales;
      if (values.empty()) values = {1.0F};
      values.resize(by_head ? job.model.config().layer[layer].attention.kv_heads : 1, values.front());
      const std::uint64_t count = values.size();
      scales.push_back(held_tensor(attention_of(layer) + name,
                                   by_head ? std::vector<std::uint64_t>{count, 1, 1} : std::vector<std::uint64_t>{1},
                                   std::move(values), type));
    }
  const Json config = config_with_scheme(job, by_head);
  copy_folder(job.model.path(), job.out);
  write_safetensors(job.out / kScalesFile, scales, {{"format", "pt"}});
  write_file_atomically(job.out / kIndex, dump_json(index_with(job, scales)) + "\n", false);
  write_file_atomically(job.out / "config.json", dump_python_json(config) + "\n", false);
  Json notes = Json::array();
  if (by_head) notes.push_back("scales by head need vLLM's FlashAttention backend");
  if (!skipped.empty()) {
    std::string layers;
    for (const std::size_t layer : skipped) layers += ' ' + std::to_string(layer);
    notes.push_back("layers left at 16 bits are a flag of vLLM: --kv-cache-dtype-skip-layers" + layers);
  }
  return {{"settings", config.at("quantization_config").at("kv_cache_scheme")}, {"notes", notes}};
}

}  // namespace kvs::inline exporting
