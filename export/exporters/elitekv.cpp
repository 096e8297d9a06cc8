// SPDX-License-Identifier: Apache-2.0
#include "export/exporters/elitekv.h"

#include <algorithm>

#include "core/error.h"
#include "export/exporters/elite_rows.h"
#include "export/exporters/hf_folder.h"
#include "export/exporters/rank_files.h"
#include "io/file.h"
#include "model/rope_json.h"

namespace kvs::inline exporting {
namespace {

/// Returns the rotated channels of a head, ascending, or the channels that are not rotated.
std::vector<std::size_t> channels(const EliteRows& at, std::size_t kv_head, std::size_t head_dim, bool rotated) {
  if (!rotated) return at.plain[kv_head];
  std::vector<std::size_t> others;
  for (std::size_t channel = 0; channel < head_dim; ++channel)
    if (std::ranges::find(at.plain[kv_head], channel) == at.plain[kv_head].end()) others.push_back(channel);
  return others;
}

/// Returns rows of W_q or W_k, head by head.
OutputTensor picked_rows(const EliteModel& source, std::string name, std::size_t index, bool keys, bool rotated) {
  const ModelConfig& model = source.model();
  const std::size_t heads = keys ? model.kv_heads() : model.query_heads(), per_head = 2 * source.config().r,
                    height = rotated ? per_head : model.head_dim() - per_head;
  return source.rows(
      std::move(name), {heads * height, model.d_model}, [=, &source](std::size_t row, std::span<float> out) {
        const EliteRows& at = source.layer(index);
        const std::size_t head = row / height, head_dim = source.model().head_dim(),
                          channel = channels(at, head * at.plain.size() / heads, head_dim, rotated)[row % height];
        const float* from = keys ? at.key(head * head_dim + channel) : at.query(head * head_dim + channel);
        std::copy_n(from, out.size(), out.begin());
      });
}

OutputTensor compressing(const EliteModel& source, std::string name, std::size_t index) {
  return source.rows(std::move(name), {source.rank(), source.model().d_model},
                     [&source, index](std::size_t row, std::span<float> out) {
                       const EliteRows& at = source.layer(index);
                       if (row < at.elite.rank) std::copy_n(at.down(row), out.size(), out.begin());
                     });
}

OutputTensor expanding(const EliteModel& source, std::string name, std::size_t index) {
  const ModelConfig& model = source.model();
  const std::size_t keys = model.head_dim() - 2 * source.config().r, height = keys + model.head_dim();
  return source.rows(
      std::move(name), {model.kv_heads() * height, source.rank()}, [=, &source](std::size_t row, std::span<float> out) {
        const EliteRows& at = source.layer(index);
        const std::size_t head = row / height, within = row % height;
        const std::size_t from =
            within < keys ? at.first_row[head] + within : at.value_row + head * (height - keys) + within - keys;
        std::copy_n(at.up(from), at.elite.rank, out.begin());
      });
}

std::vector<OutputTensor> elitekv_tensors(const EliteModel& source) {
  using enum TensorRole;
  const ModelConfig& model = source.model();
  std::vector<OutputTensor> tensors{source.kept("model.embed_tokens.weight", kEmbedding)};
  for (std::size_t layer = 0; layer < model.layers(); ++layer) {
    const std::string attention = "model.layers." + std::to_string(layer) + ".self_attn.";
    tensors.push_back(picked_rows(source, attention + "q_nope_proj.weight", layer, false, false));
    tensors.push_back(picked_rows(source, attention + "q_rope_proj.weight", layer, false, true));
    tensors.push_back(picked_rows(source, attention + "k_rope_proj.weight", layer, true, true));
    tensors.push_back(compressing(source, attention + "kv_a_proj.weight", layer));
    tensors.push_back(expanding(source, attention + "kv_b_proj.weight", layer));
    add_hf_layer(source, layer, tensors);
  }
  add_hf_head(source, tensors);
  return tensors;
}

void check_class(const EliteModel& source) {
  const ModelConfig& model = source.model();
  if (model.rotary_dim() != model.head_dim() || model.query_heads() * model.head_dim() != model.d_model ||
      model.layer.front().attention.scale != 0 || model.ropes.front().scaling.type == RopeScaling::Type::kFactors)
    throw Error(ErrorCode::kUnsupported, model.name,
                "found heads that are not d_model / heads wide, rotated as a whole by frequencies that config.json can "
                "state and scaled by their width, expected those of Llama: the code has no others");
}

}  // namespace

Json write_elitekv(const ExportJob& job) {
  const EliteModel source(job);
  check_class(source);
  require_one_r(source.config(), job.config_path);
  const ModelConfig& model = source.model();
  const std::size_t r = source.config().r;
  Json config{{"architectures", {"LlamaForCausalLM"}},
              {"model_type", "llama"},
              {"num_key_value_heads", model.kv_heads()},
              {"half_of_rope_dim", r},
              {"kv_dim", source.rank()},
              {"rope_theta", model.ropes.front().theta},
              {"rope_scaling", rope_scaling_json(model.ropes.front().scaling)}};
  config.update(hf_config(model));
  Json result{{"cache", cache_json(model, source.rank(), 2 * r * model.kv_heads())}};
  result["notes"] = write_hf_folder(job, std::move(config), elitekv_tensors(source));
  if (model.group() > 1) result["notes"].push_back("EliteKV's classes take models whose query heads do not share keys");
  write_file_atomically(job.out / ("RoPElite_" + std::to_string(r) + ".pkl"), elitekv_ranks(source.config(), model),
                        false);
  return result;
}

}  // namespace kvs::inline exporting
