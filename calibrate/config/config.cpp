// SPDX-License-Identifier: Apache-2.0
#include "calibrate/config/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "model/model_json.h"
#include "tokenizer/tokenizer_digest.h"

namespace kvs::inline calibrate {

namespace {

bool is_near(const Json& found, const Json& wanted) {
  constexpr double kTolerance = 1e-5;  // GGUF files store f32, and stretched frequencies as factors
  if (found.is_array() && wanted.is_array())
    return found.size() == wanted.size() && std::equal(found.begin(), found.end(), wanted.begin(), is_near);
  return found.is_number() && wanted.is_number() &&
         std::abs(found.get<double>() - wanted.get<double>()) <= kTolerance * std::abs(wanted.get<double>());
}

/// The members of `rope` that depend on the documents' length.
constexpr std::array kAngles{"window", "frequencies", "factors", "layer_kinds"};

/// The difference of two rotations, in whatever form two files state them.
std::vector<std::string> other_rotations(const Json& found, const Json& wanted) {
  std::vector<std::string> names;
  for (const char* name : {"rotary_dim", "layer_kinds", "frequencies", "factors"})
    if (!found.contains(name) || !is_near(found.at(name), wanted.at(name))) names.emplace_back(name);
  return names;
}

}  // namespace

Provenance without_text(Provenance provenance) {
  provenance.text_sha256.clear();
  provenance.documents = provenance.tokens = 0;
  return provenance;
}

Json make_config(const std::string& method, const ModelConfig& model, const std::string& model_sha256, Json parameters,
                 Json calibration, const Provenance& provenance, Json quality, std::span<const ConfigFile> files) {
  calibration["command"] = provenance.command;
  calibration["tool_version"] = provenance.tool_version;
  calibration["text_sha256"] = provenance.text_sha256;
  calibration["documents"] = provenance.documents;
  calibration["tokens"] = provenance.tokens;
  calibration["seed"] = provenance.seed;
  if (provenance.bos) calibration["bos"] = *provenance.bos;
  calibration.update(provenance.inputs);
  Json list = Json::array();
  for (const ConfigFile& file : files) list.push_back({{"path", file.name}, {"sha256", file.sha256}});
  return {{"format", "kvspectrum-config"},
          {"version", 1},
          {"method", method},
          {"model", model_json(model, model_sha256, provenance.window)},
          {"parameters", std::move(parameters)},
          {"calibration", std::move(calibration)},
          {"quality", std::move(quality)},
          {"files", std::move(list)}};
}

void check_config_model(const Json& config, const std::filesystem::path& path, const ModelSource& source) {
  const ModelConfig& model = source.config();
  const Json &found = config.at("model"), &rope = found.at("rope");
  Json expected = model_json(model, source.sha256(), rope.value("window", std::uint64_t{1}));
  Json identity = std::move(expected.at("rope"));
  for (const char* name : {"name", "rope"}) expected.erase(name);
  std::string differences;
  const auto compare = [&](const std::string& name, const Json& value, const Json& wanted) {
    if (value == wanted) return;
    differences += (differences.empty() ? "" : "; ") + name + " " + value.dump() + ", expected " + wanted.dump();
  };
  if (source.takes_other_weights() && found.at("sha256") != source.sha256()) {
    expected.erase("sha256");
    for (const std::string& name : other_rotations(rope, identity))
      differences += (differences.empty() ? "rope." : "; rope.") + name + " of other values";
    if (const Json& tokenizer = config.at("calibration").value("tokenizer_sha256", Json()); !tokenizer.is_null())
      compare("tokenizer_sha256", tokenizer, tokenizer_digest(*source.load_tokenizer()));
    identity = Json::object();
  }
  for (const char* name : kAngles) identity.erase(name);
  for (const auto& [field, wanted] : expected.items()) compare(field, found.at(field), wanted);
  for (const auto& [field, wanted] : identity.items())
    compare("rope." + field, rope.contains(field) ? rope.at(field) : Json(), wanted);
  if (!differences.empty())
    throw Error(ErrorCode::kConflict, path.string() + ": model",
                "found a config for " + found.at("name").get<std::string>() + ", expected one for " + model.name +
                    ": " + differences);
}

}  // namespace kvs::inline calibrate
