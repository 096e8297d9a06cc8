// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/index_runs.h"
#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/settings.h"
#include "export/report/table.h"
#include "model/rope_json.h"
#include "results/head.h"

namespace kvs::inline report {
namespace {

Markup fact(const std::string& name, const std::string& value) {
  return element("div", element("dt", name) + element("dd", value));
}

std::string rope_text(const ModelRecord::Rope& rope) {
  const std::string words =
      "base " + shown_short(rope.theta, 7) + ", " + shown_count(rope.rotary_dim) + " channels, " + rope.pairing;
  return words + (rope.scaling.is_null() ? ", not scaled" : ", scaled: " + settings_text(rope.scaling));
}

/// Returns layers as ranges: "0–4, 6".
std::string ranges_text(const std::vector<std::size_t>& layers) {
  std::string words;
  for (const auto& [first, last] : index_runs(layers)) {
    words += (words.empty() ? "" : ", ") + std::to_string(first);
    if (last > first) words += (last == first + 1 ? ", " : "–") + std::to_string(last);
  }
  return words;
}

/// Returns a fact for each kind of RoPE that layers with a cache have.
/// @param kinds  of `model`
Markup facts_of_kinds(const ModelRecord& model, const JsonCursor& kinds) {
  const std::vector<RopeParameters> ropes = ropes_from_json(kinds);
  Markup facts;
  for (std::size_t kind = 0; kind < ropes.size(); ++kind) {
    std::vector<std::size_t> layers;
    for (std::size_t layer = 0; layer < std::min(model.layers, model.rope.layer_kinds.size()); ++layer)
      if (model.rope.layer_kinds[layer] == kind && model.has_cache(layer)) layers.push_back(layer);
    if (layers.empty()) continue;
    const ModelRecord::Rope rope{.theta = ropes[kind].theta,
                                 .scaling = rope_scaling_json(ropes[kind].scaling),
                                 .pairing = model.rope.pairing,
                                 .rotary_dim = ropes[kind].rotary_dim};
    const bool turns = ropes[kind].scaling.type != RopeScaling::Type::kNone;
    facts += fact((layers.size() == 1 ? "RoPE of layer " : "RoPE of layers ") + ranges_text(layers),
                  turns ? rope_text(rope) : "none: keys do not turn");
  }
  return facts;
}

/// The `model` of the first result that has one.
std::optional<JsonCursor> model_of_results(const ReportInputs& inputs) {
  for (const Output& output : inputs.outputs)
    if (output.json.contains("model")) return output.root().at("model");
  return std::nullopt;
}

std::string heads_text(const ModelRecord& model) {
  return model.query_heads.text() + " query and " + model.kv_heads.text() + " KV heads of " + model.head_dim.text() +
         " channels";
}

std::string layers_text(const ModelRecord& model) {
  const std::string without = model.layers_without_cache ? shown_count(model.layers_without_cache->size()) : "";
  return shown_count(model.layers) + (without.empty() ? "" : ", " + without + " of them without a KV cache");
}

Markup model_facts(const JsonCursor& json) {
  const auto model = from_json<ModelRecord>(json);
  const JsonCursor of_rope = json.at("rope");
  const Markup rope =
      of_rope.has("kinds") ? facts_of_kinds(model, of_rope.at("kinds")) : fact("RoPE", rope_text(model.rope));
  constexpr std::uint64_t kBytesPerValue = 2;
  std::uint64_t bytes = 0;
  for (std::size_t layer = 0; layer < model.layers; ++layer) bytes += kBytesPerValue * model.cache_values(layer);
  const Markup states =
      model.recurrent_bytes
          ? fact("Recurrent states", shown_count(*model.recurrent_bytes) + " bytes a sequence, however long, in f32")
          : Markup();
  return element("dl", {{"class", "facts"}},
                 fact("Name", model.name) + fact("Architecture", model.architecture) +
                     fact("Layers", layers_text(model)) + fact("Heads", heads_text(model)) +
                     fact("Full cache", shown_count(bytes) + " bytes a token at 16 bits") + states + rope +
                     fact("SHA-256 of the weights", model.sha256));
}

}  // namespace

std::string geometry_line(const ReportInputs& inputs) {
  const auto json = model_of_results(inputs);
  if (!json) return "";
  const auto model = from_json<ModelRecord>(*json);
  return model.architecture + ", " + counted(model.layers, "layer") + ", " + heads_text(model);
}

Section model_section(const ReportInputs& inputs) {
  Section section{"model", "Model", {}, {}};
  if (const auto model = model_of_results(inputs)) section.body = model_facts(*model);
  Table table("What this page was made from", {{"File", false}, {"What it is", false}});
  for (const Output& output : inputs.outputs) table.row({output.name, std::string(name_of(output.kind))});
  section.body += table.markup();
  return section;
}

}  // namespace kvs::inline report
