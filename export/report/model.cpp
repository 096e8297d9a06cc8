#include <optional>

#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/settings.h"
#include "export/report/table.h"
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

/// The `model` of the first result that has one.
std::optional<ModelRecord> model_of_results(const ReportInputs& inputs) {
  for (const Output& output : inputs.outputs)
    if (output.json.contains("model")) return from_json<ModelRecord>(output.root().at("model"));
  return std::nullopt;
}

std::string heads_text(const ModelRecord& model) {
  return model.query_heads.text() + " query and " + model.kv_heads.text() + " KV heads of " + model.head_dim.text() +
         " channels";
}

Markup model_facts(const ModelRecord& model) {
  constexpr std::uint64_t kBytesPerValue = 2;
  std::uint64_t bytes = 0;
  for (std::size_t layer = 0; layer < model.layers; ++layer) bytes += kBytesPerValue * model.cache_values(layer);
  const Markup states =
      model.recurrent_bytes
          ? fact("Recurrent states", shown_count(*model.recurrent_bytes) + " bytes a sequence, however long, in f32")
          : Markup();
  return element("dl", {{"class", "facts"}},
                 fact("Name", model.name) + fact("Architecture", model.architecture) +
                     fact("Layers", shown_count(model.layers)) + fact("Heads", heads_text(model)) +
                     fact("Full cache", shown_count(bytes) + " bytes a token at 16 bits") + states +
                     fact("RoPE", rope_text(model.rope)) + fact("SHA-256 of the weights", model.sha256));
}

}  // namespace

std::string geometry_line(const ReportInputs& inputs) {
  const auto model = model_of_results(inputs);
  return model ? model->architecture + ", " + counted(model->layers, "layer") + ", " + heads_text(*model) : "";
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
