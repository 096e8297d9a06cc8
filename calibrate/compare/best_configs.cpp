#include "calibrate/compare/best_configs.h"

#include "calibrate/compare/cells.h"
#include "eval/cache_quality.h"
#include "io/file.h"
#include "io/finite.h"
#include "model/cache_shape.h"

namespace kvs {

void BestConfigs::add(const std::optional<std::size_t>& n, const std::filesystem::path& to, OutputSet& outputs) {
  if (!n) return;
  const CompareCell& cell = cells_[*n];
  const Json quality = quality_of(comparison_.cells[*n]);
  const Json config =
      cell.config.empty() ? made_config(cell, quality) : copied_config(cell, quality, to.parent_path(), outputs);
  outputs.add(to, dump_json(config) + "\n");
}

/// Returns the quality record of a cell: its scores and the text that they are of.
Json BestConfigs::quality_of(const ComparedCell& found) const {
  const ScoredLoss& loss = *found.loss;
  return {{"text", "compared documents"},
          {"text_sha256", record_.text_sha256},
          {"documents", found.documents},
          {"window", comparison_.tokens},
          {"tokens_scored", loss.tokens_scored},
          {"ppl", json_of(loss.ppl)},
          {"ppl_full", json_of(if_normal_exponential(loss.nll_mean - loss.ratio.nll_difference))},
          {"nll_mean", loss.nll_mean},
          {"ratio", to_json(loss.ratio)},
          {"kl", loss.kl},
          {"bytes_per_token", loss.bytes_ratio * full_cache_bytes(source_.config(), 1)}};
}

Json BestConfigs::made_config(const CompareCell& cell, const Json& quality) const {
  const ModelConfig& model = source_.config();
  return make_config(cell.method, model, source_.sha256(), cell_choice(cell, source_).resolved(model), Json::object(),
                     chosen_on(cell), quality, {});
}

/// Returns the cell's config with its own settings and quality, and copies the files that it names.
Json BestConfigs::copied_config(const CompareCell& cell, const Json& quality, const std::filesystem::path& folder,
                                OutputSet& outputs) {
  const std::filesystem::path from(cell.config);
  Json config = read_config(from);
  for (const Json& file : config.at("files")) {
    const std::string name = file.at("path");
    if (!copied_.insert(folder / name).second) continue;  // another cell has copied this file
    const MappedFile copy(from.parent_path() / name);
    outputs.add(folder / name, {reinterpret_cast<const char*>(copy.bytes().data()), copy.bytes().size()});
  }
  config.at("parameters").update(cell.settings);
  config["quality"] = quality;
  return config;
}

/// Returns the record of the documents that the cell's settings were chosen on. A paper's default settings have none.
Provenance BestConfigs::chosen_on(const CompareCell& cell) const {
  Provenance record = without_text(record_);
  if (cell.calibration_documents == 0) return record;
  record.text_sha256 = calibrated_->text_sha256;
  record.documents = cell.calibration_documents;
  record.tokens = record.documents * calibrated_->documents.front().tokens.size();
  return record;
}

}  // namespace kvs
