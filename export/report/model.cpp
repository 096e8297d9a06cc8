#include <optional>

#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/settings.h"
#include "export/report/table.h"

namespace kvs {
namespace {

constexpr std::uint64_t kMaxSize = 1 << 24;

Markup fact(const std::string& name, const std::string& value) {
  return element("div", element("dt", name) + element("dd", value));
}

std::string rope_text(const JsonCursor& rope) {
  std::string words = "base " + shown_short(rope.at("theta").real(), 7) + ", " +
                      shown_count(rope.at("rotary_dim").unsigned_integer(kMaxSize)) + " channels, " +
                      rope.at("pairing").string();
  if (!rope.has("scaling")) return words + ", not scaled";
  const JsonCursor scaling = rope.at("scaling");
  return words + ", scaled: " + settings_text(scaling.value());
}

/// The `model` of the first result that has one.
std::optional<JsonCursor> model_of_results(const ReportInputs& inputs) {
  for (const Output& output : inputs.outputs)
    if (output.json.contains("model")) return output.root().at("model");
  return std::nullopt;
}

std::string heads_text(const JsonCursor& model) {
  const auto count = [&](const char* name) { return shown_count(model.at(name).unsigned_integer(kMaxSize)); };
  return count("query_heads") + " query and " + count("kv_heads") + " KV heads of " + count("head_dim") + " channels";
}

Markup model_facts(const JsonCursor& model) {
  const auto count = [&](const char* name) { return model.at(name).unsigned_integer(kMaxSize); };
  constexpr std::uint64_t kBytesPerValue = 2;
  const std::uint64_t bytes = kBytesPerValue * 2 * count("layers") * count("kv_heads") * count("head_dim");
  return element("dl", {{"class", "facts"}},
                 fact("Name", model.at("name").string()) + fact("Architecture", model.at("architecture").string()) +
                     fact("Layers", shown_count(count("layers"))) + fact("Heads", heads_text(model)) +
                     fact("Full cache", shown_count(bytes) + " bytes a token at 16 bits") +
                     fact("RoPE", rope_text(model.at("rope"))) +
                     fact("SHA-256 of the weights", model.at("sha256").string()));
}

}  // namespace

std::string geometry_line(const ReportInputs& inputs) {
  const auto model = model_of_results(inputs);
  if (!model) return "";
  return model->at("architecture").string() + ", " + counted(model->at("layers").unsigned_integer(kMaxSize), "layer") +
         ", " + heads_text(*model);
}

Section model_section(const ReportInputs& inputs) {
  Section section{"model", "Model", {}, {}};
  if (const auto model = model_of_results(inputs)) section.body = model_facts(*model);
  Table table("What this page was made from", {{"File", false}, {"What it is", false}});
  for (const Output& output : inputs.outputs) table.row({output.name, std::string(name_of(output.kind))});
  section.body += table.markup();
  return section;
}

}  // namespace kvs
