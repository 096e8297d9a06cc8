// SPDX-License-Identifier: Apache-2.0
#include "export/exporters/triattention.h"

#include <array>
#include <cstdio>
#include <span>
#include <vector>

#include "calibrate/triattention/query_statistics.h"
#include "io/staged_output.h"
#include "io/torch_file.h"
#include "model/architecture.h"
#include "model/rope_json.h"

namespace kvs::inline exporting {
namespace {

/// Returns Transformers' name of the model's RoPE.
std::string rope_type_of(const ModelConfig& model) {
  const Json scaling = rope_scaling_json(model.ropes.front().scaling);
  return scaling.is_null() ? "default" : scaling.at("rope_type").get<std::string>();
}

/// "layer00_head00"
std::string statistics_name(std::size_t layer, std::size_t head) {
  std::array<char, 64> name{};
  (void)std::snprintf(name.data(), name.size(), "layer%02zu_head%02zu", layer, head);
  return name.data();
}

void add_metadata(Pickle& pickle, const std::vector<QueryStatistics>& layers, std::uint64_t documents,
                  const ModelConfig& model) {
  const auto number = [&](std::size_t value) { pickle.integer(static_cast<std::int64_t>(value)); };
  pickle.empty_dict().mark();
  pickle.string("num_traces");
  number(documents);
  pickle.string("head_dim");
  number(model.head_dim());
  pickle.string("dtype").string("float32").string("attn_implementation").string("eager");
  pickle.string("use_chat_template").boolean(false).string("system_prompt").string("");
  pickle.string("prompt_template").string("").string("kv_budget").integer(0);
  pickle.string("rope_style").string("half").string("rope_type").string(rope_type_of(model));
  pickle.string("sampled_heads").empty_list().mark();
  for (const QueryStatistics& one : layers)
    for (std::size_t head = 0; head < one.query_heads; ++head) {
      pickle.empty_list().mark();
      number(one.layer);
      number(head);
      pickle.append_items();
    }
  pickle.append_items().set_items();
}

void add_statistics(FloatTorchFile& file, const QueryStatistics& one, std::size_t head) {
  const auto mean = std::span(one.mean).subspan(head * one.head_dim, one.head_dim);
  Pickle& pickle = file.pickle();
  pickle.string(statistics_name(one.layer, head)).empty_dict().mark();
  pickle.string("q_mean_real");
  file.vector(mean.first(one.chunks));
  pickle.string("q_mean_imag");
  file.vector(mean.last(one.chunks));
  pickle.string("q_abs_mean");
  file.vector(std::span(one.magnitude).subspan(head * one.chunks, one.chunks));
  pickle.set_items();
}

}  // namespace

std::string triattention_statistics_obstacle(const ModelConfig& model) {
  if (model.ropes.size() != 1 || model.unrotated_layers() > 0)
    return "found layers with other RoPE settings, expected one for all";
  if (model.rotary_dim() != model.head_dim())
    return "found RoPE on " + std::to_string(model.rotary_dim()) + " of " + std::to_string(model.head_dim()) +
           " channels of a head, expected on all: the file has no other channels";
  if (const Architecture* const family = find_architecture_named(model.architecture);
      family != nullptr && family->hf_interleaved)
    return "found RoPE chunks of adjacent channels, expected chunks of channels in two halves, which readers take";
  if (model.ropes.front().scaling.type == RopeScaling::Type::kFactors)
    return "found RoPE factors of a GGUF file, which has no name of their type; expected a Hugging Face folder";
  return {};
}

Json write_triattention(const ExportJob& job) {
  const ModelConfig& model = job.model.config();
  const std::vector<QueryStatistics> layers = read_statistics(job.config, job.config_path);
  std::size_t numbers = 0;
  for (const QueryStatistics& one : layers) numbers += 3 * one.query_heads * one.chunks;
  FloatTorchFile file(numbers);
  Pickle& pickle = file.pickle();
  pickle.empty_dict().mark().string("metadata");
  add_metadata(pickle, layers, job.config.at("calibration").at("documents").get<std::uint64_t>(), model);
  pickle.string("stats").empty_dict().mark();
  for (const QueryStatistics& one : layers)
    for (std::size_t head = 0; head < one.query_heads; ++head) add_statistics(file, one, head);
  pickle.set_items().set_items();
  write_staged(job.out, std::move(file).finish());
  return {{"layers", layers.size()},
          {"notes",
           {"TensorRT-LLM: kv_cache_compression_config with algorithm triattention, calibration_path OUT, budget = "
            "cache_size - interval, beta = interval, eviction_mode per_layer_perhead; it keeps the prompt in addition "
            "to the budget"}}};
}

}  // namespace kvs::inline exporting
