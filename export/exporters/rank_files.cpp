// SPDX-License-Identifier: Apache-2.0
#include "export/exporters/rank_files.h"

#include <algorithm>
#include <numeric>

#include "calibrate/elitekv/source.h"
#include "core/error.h"
#include "io/staged_output.h"
#include "io/torch_file.h"

namespace kvs::inline exporting {
namespace {

/// Returns the elite sets of all layers. @throws Error kUnsupported if the files cannot represent them: every layer
/// must have a set, and RoPE must rotate every channel
EliteConfig sets_of_all_layers(const ExportJob& job) {
  EliteConfig config = read_elite_config(job.config, job.config_path.string());
  const ModelConfig& model = job.model.config();
  require_all_layers(config, model, job.config_path);
  require_one_r(config, job.config_path);
  if (model.rotary_dim() != model.head_dim())
    throw Error(ErrorCode::kUnsupported, model.name,
                "found RoPE on " + std::to_string(model.rotary_dim()) + " of " + std::to_string(model.head_dim()) +
                    " channels of a head, expected on all: the file has no other chunks");
  return config;
}

/// Returns all chunks of a head, elite chunks first.
std::vector<std::size_t> all_chunks(const ElitePicks& picks, std::size_t chunks) {
  std::vector<std::size_t> order = picks.chunks;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk)
    if (std::ranges::find(picks.chunks, chunk) == picks.chunks.end()) order.push_back(chunk);
  return order;
}

Json summary(const EliteConfig& config) { return {{"r", config.r}, {"layers", config.layers.size()}}; }

}  // namespace

std::string elitekv_ranks(const EliteConfig& config, const ModelConfig& model) {
  Pickle pickle;
  pickle.empty_dict().mark();
  pickle.string("note").string("kvspectrum: the first " + std::to_string(config.r) + " chunks of a row are elite");
  pickle.string("rank").empty_dict().mark();
  for (std::size_t layer = 0; layer < model.layers(); ++layer) {
    IntegerTensor ranks{IntegerTensor::Kind::kInt64, {model.query_heads(), model.chunks()}, {}};
    const auto& heads = config.picks[layer];
    for (std::size_t head = 0; head < model.query_heads(); ++head)
      for (const std::size_t chunk : all_chunks(heads[head * heads.size() / model.query_heads()], model.chunks()))
        ranks.values.push_back(static_cast<std::int64_t>(chunk));
    // A pickle holds a tensor as a call that loads a nested torch file.
    pickle.integer(static_cast<std::int64_t>(layer)).global("torch.storage", "_load_from_bytes");
    pickle.mark().bytes(torch_file(ranks)).tuple().reduce();
  }
  pickle.set_items().set_items();
  return std::move(pickle).finish();
}

Json write_elitekv_rank(const ExportJob& job) {
  const EliteConfig config = sets_of_all_layers(job);
  write_staged(job.out, elitekv_ranks(config, job.model.config()));
  return summary(config);
}

Json write_mha2mla_rank(const ExportJob& job) {
  const EliteConfig config = sets_of_all_layers(job);
  const ModelConfig& model = job.model.config();
  require_kv_head_sets(config, model, job.config_path);
  if (model.chunks() > 256)
    throw Error(ErrorCode::kUnsupported, model.name,
                "found " + std::to_string(model.chunks()) + " chunks in a head, expected at most 256: ranks are bytes");
  IntegerTensor ranks{IntegerTensor::Kind::kUint8, {model.layers(), model.kv_heads(), model.head_dim()}, {}};
  for (const auto& heads : config.picks)
    for (const ElitePicks& head : heads) {
      const std::vector<std::size_t> order = all_chunks(head, model.chunks());
      std::vector<std::int64_t> rank(order.size());
      for (std::size_t place = 0; place < order.size(); ++place) rank[order[place]] = static_cast<std::int64_t>(place);
      for (int half = 0; half < 2; ++half) ranks.values.insert(ranks.values.end(), rank.begin(), rank.end());
    }
  write_staged(job.out, torch_file(ranks));
  return summary(config);
}

}  // namespace kvs::inline exporting
