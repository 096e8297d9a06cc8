// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/best_configs.h"

#include "calibrate/compare/configurations.h"
#include "eval/cache_quality.h"
#include "io/file.h"
#include "io/finite.h"
#include "model/cache_shape.h"

namespace kvs::inline compare {

Json BestConfigs::add(const std::optional<std::size_t>& n, const std::filesystem::path& to, OutputSet& outputs) {
  if (!n) return {};
  const Configuration& one = configurations_[*n];
  const Json quality = quality_of(comparison_.configurations[*n]);
  Json config = one.config.empty() ? made_config(one, quality) : copied_config(one, quality, to.parent_path(), outputs);
  outputs.add(to, dump_json(config) + "\n");
  return config;
}

/// Returns the quality record of a configuration: its scores and the text that they are of.
Json BestConfigs::quality_of(const ComparedConfiguration& found) const {
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

Json BestConfigs::made_config(const Configuration& one, const Json& quality) const {
  const ModelConfig& model = source_.config();
  return make_config(one.method, model, source_.sha256(), cache_choice(one, source_).resolved(model), Json::object(),
                     chosen_on(one), quality, {});
}

/// Returns the configuration's config with its own settings and quality, and copies the files that it names.
Json BestConfigs::copied_config(const Configuration& one, const Json& quality, const std::filesystem::path& folder,
                                OutputSet& outputs) {
  const std::filesystem::path from(one.config);
  Json config = read_config(from);
  for (const Json& file : config.at("files")) {
    const std::string name = file.at("path");
    if (!copied_.insert(folder / name).second) continue;  // another configuration has copied this file
    const MappedFile copy(from.parent_path() / name);
    outputs.add(folder / name, {reinterpret_cast<const char*>(copy.bytes().data()), copy.bytes().size()});
  }
  config.at("parameters").update(one.settings);
  config["quality"] = quality;
  return config;
}

/// Returns the record of the documents that the settings were chosen on. A paper's default settings have none.
Provenance BestConfigs::chosen_on(const Configuration& one) const {
  Provenance record = without_text(record_);
  if (one.calibration_documents == 0) return record;
  record.text_sha256 = calibrated_->text_sha256;
  record.documents = one.calibration_documents;
  record.tokens = record.documents * calibrated_->documents.front().tokens.size();
  return record;
}

}  // namespace kvs::inline compare
