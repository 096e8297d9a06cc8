// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <memory>

#include "core/error.h"
#include "core/nearest.h"
#include "export/exporter.h"
#include "export/exporters/elite_rows.h"
#include "export/exporters/elitekv.h"
#include "export/exporters/gguf_deepseek2.h"
#include "export/exporters/hf_generation.h"
#include "export/exporters/hf_mla.h"
#include "export/exporters/llama_cpp.h"
#include "export/exporters/modelopt_map.h"
#include "export/exporters/rank_files.h"
#include "export/exporters/sglang_scales.h"
#include "export/exporters/triattention.h"
#include "export/exporters/vllm_flags.h"
#include "export/exporters/vllm_fp8.h"
#include "model/tensor_shape.h"

namespace kvs::inline exporting {
namespace {

constexpr auto kFile = StagedOutput::Kind::kFile, kFolder = StagedOutput::Kind::kFolder;

constexpr std::string_view kMlaNeeds =
    "an elitekv config with factors and disjoint sets of all layers; a model like Llama: no QK-norm, biases, windows";

/// Returns why a model has no scales of keys and of values; else empty.
std::string row_pair_obstacle(const ModelConfig& model) {
  if (model.cached_layers().empty()) return "found no layer with a KV cache, expected one";
  if (model.has_latents())
    return "found latent attention, whose rows are key and value at once; expected rows of their own";
  return {};
}

constexpr std::array kExporters{
    Exporter{"llama-cpp", "the cache types of llama.cpp: a preset of llama-server, with the flags", "full",
             "a config of the full cache with one storage type of llama.cpp for all layers; a GGUF file", kFile, false,
             true, nullptr, write_llama_cpp, false, false, "llama-server.ini", true},
    Exporter{"vllm-flags", "the type of vLLM's cache and the layers at 16 bits: the file of vllm serve --config",
             "full", "a config of the full cache that vLLM executes", kFile, false, true, nullptr, write_vllm_flags,
             false, false, "vllm.yaml"},
    Exporter{"vllm-fp8", "the model with the scales of vLLM's fp8 cache, or with --overlay the scales alone: a folder",
             "full", "a config of the full cache with type=fp8; a Hugging Face folder", kFolder, false, true,
             row_pair_obstacle, write_vllm_fp8, true},
    Exporter{"modelopt-map",
             "the model with ModelOpt's map of a cache in fp8 and nvfp4 by layer, or with --overlay the files that "
             "differ: a folder",
             "full",
             "a config of the full cache in fp8, nvfp4 or 16 bits by layer, with one scale a layer; a Hugging Face "
             "folder with weights of 16 bits",
             kFolder, false, true, row_pair_obstacle, write_modelopt_map, true},
    Exporter{"sglang-scales", "the scales of SGLang's fp8 cache: the file of --quantization-param-path", "full",
             "a config of the full cache with type=fp8 and one scale a layer (kvcalibrate store --per pair); a Hugging "
             "Face folder",
             kFile, false, true, row_pair_obstacle, write_sglang_scales, false, true},
    Exporter{"triattention", "statistics of queries for TriAttention's own code and TensorRT-LLM (torch.save)",
             "triattention", "a triattention config; a model with full RoPE, the same in all layers", kFile, false,
             false, triattention_statistics_obstacle, write_triattention},
    Exporter{"hf-generation", "generation_config.json with Transformers' quantised cache", "",
             "a config of kivi, or of the full cache with type=fp8, the same for all layers; no sliding windows", kFile,
             false, false, quantized_cache_obstacle, write_hf_generation},
    Exporter{"hf-youtu", "the converted model as stock latent attention: a folder for Transformers", "elitekv",
             kMlaNeeds, kFolder, true, false, elite_model_obstacle, write_hf_youtu},
    Exporter{"hf-deepseek", "the converted model as DeepseekV3ForCausalLM: a folder for Transformers", "elitekv",
             kMlaNeeds, kFolder, true, false, elite_model_obstacle, write_hf_deepseek},
    Exporter{"gguf-deepseek2", "the converted model as deepseek2: a GGUF file for llama.cpp", "elitekv", kMlaNeeds,
             kFile, true, false, elite_model_obstacle, write_gguf_deepseek2},
    Exporter{"elitekv", "the converted model with the tensors and names of EliteKV's own code: a folder", "elitekv",
             "an elitekv config with factors of all layers; a model like Llama", kFolder, true, false,
             elite_model_obstacle, write_elitekv},
    Exporter{"elitekv-rank", "elite sets as the pickle that EliteKV's conversion script reads", "elitekv",
             "an elitekv config of all layers", kFile, false, false, nullptr, write_elitekv_rank},
    Exporter{"mha2mla-rank", "elite sets as the ranks that MHA2MLA reads (torch.save)", "elitekv",
             "an elitekv config of all layers, its sets per KV head", kFile, false, false, nullptr, write_mha2mla_rank},
};

}  // namespace

std::span<const Exporter> exporters() noexcept { return kExporters; }

const Exporter* find_exporter(std::string_view name) noexcept {
  const auto row = std::ranges::find(kExporters, name, &Exporter::name);
  return row == kExporters.end() ? nullptr : row;
}

const Exporter* find_preset(std::string_view name, ModelFormat format) noexcept {
  const Exporter* const found = find_exporter(name);
  const bool has_preset = found != nullptr && !found->preset.empty();
  return has_preset && (!found->for_gguf || format == ModelFormat::kGguf) ? found : nullptr;
}

const Exporter& exporter_of(const std::string& to, const std::string& option) {
  const Exporter* exporter = find_exporter(to);
  if (exporter != nullptr) return *exporter;
  std::vector<std::string> names;
  for (const Exporter& row : exporters()) names.emplace_back(row.name);
  throw Error(ErrorCode::kUsage, option,
              "found '" + to + "', expected one of " + listed(names) + did_you_mean(to, names));
}

std::string exporter_lines() {
  std::size_t width = 0;
  for (const Exporter& exporter : exporters()) width = std::max(width, exporter.name.size() + 4);
  std::string lines = "Formats of --to, and what each needs:\n";
  for (const Exporter& exporter : exporters())
    lines += "  " + std::string(exporter.name) + std::string(width - 2 - exporter.name.size(), ' ') +
             std::string(exporter.summary) + '\n' + std::string(width, ' ') + "needs " + std::string(exporter.needs) +
             '\n';
  return lines;
}

void check_method(const Exporter& exporter, const std::filesystem::path& path, const Json& config) {
  const auto method = config.at("method").get<std::string>();
  if (!exporter.method.empty() && method != exporter.method)
    throw Error(ErrorCode::kUnsupported, path.string() + ": /method",
                "found " + method + ", expected " + std::string(exporter.method) + " for " +
                    std::string(exporter.name) + "; the Python package runs every method (CalibratedCache)");
}

std::string obstacle_of(const Exporter& exporter, const ModelConfig& model) {
  if (!exporter.any_layers) {
    if (const auto without = model.layers_without_cache(); !without.empty())
      return "found " + std::to_string(without.size()) + " of " + std::to_string(model.layers()) +
             " layers without a KV cache of their own, expected one in every layer";
    if (model.has_latents())
      return "found latent attention, whose rows are key and value at once; expected rows of their own";
    if (!model.has_equal_layers()) return "found layers with heads of several sizes, expected one size for all layers";
    if (model.has_recurrence()) return "found recurrent layers, expected attention alone";
  }
  return exporter.obstacle == nullptr ? std::string() : exporter.obstacle(model);
}

void check_model(const Exporter& exporter, const ModelConfig& model) {
  if (const std::string obstacle = obstacle_of(exporter, model); !obstacle.empty())
    throw Error(ErrorCode::kUnsupported, model.name, obstacle + " for " + std::string(exporter.name));
}

std::string export_text(const Json& result) {
  std::string lines = result.at("out").get<std::string>() + ": " + result.at("to").get<std::string>();
  if (result.contains("cache"))
    lines += ", a cache of " + std::to_string(result.at("cache").at("values_per_token_and_layer").get<std::size_t>()) +
             " values per token and layer";
  return lines + '\n';
}

std::function<void(std::uint64_t)> byte_progress(const ExportJob& job, std::span<const OutputTensor> tensors) {
  double total = 0;
  for (const OutputTensor& tensor : tensors) total += static_cast<double>(tensor.bytes());
  const auto done = std::make_shared<double>(0);  // shared by all copies of the callback: each shard has one
  return [&job, total, done](std::uint64_t more) {
    *done += static_cast<double>(more);
    job.progress(*done / total);
  };
}

}  // namespace kvs::inline exporting
