// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/obstacles.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/method.h"
#include "calibrate/registry.h"
#include "export/exporter.h"
#include "io/file.h"
#include "model/parsed_config.h"
#include "tests/io/temporary_directory.h"
#include "tests/model/golden_model.h"

namespace kvs {
namespace {

/// A kind of model, with a golden model that is one (tests/golden/parity).
struct ModelKind {
  const char *text, *golden;
};
constexpr std::array kKinds{
    ModelKind{"as in Llama", "llama"},
    ModelKind{"QK-norm", "qwen3"},
    ModelKind{"QK-norm after RoPE", "hunyuan_v1_dense"},
    ModelKind{"`clip_qkv`", "olmoe"},
    ModelKind{"a window in every layer", "mistral"},
    ModelKind{"caps of scores and logits", "gemma2"},
    ModelKind{"attention sinks", "gpt_oss"},
    ModelKind{"a temperature of queries", "ministral3"},
    ModelKind{"multipliers", "granite"},
    ModelKind{"LayerNorm, biases", "starcoder2"},
    ModelKind{"norms of the blocks' outputs", "olmo2"},
    ModelKind{"layers that do not rotate", "smollm3"},
    ModelKind{"attention within chunks", "llama4"},
    ModelKind{"latent attention", "deepseek_v3"},
    ModelKind{"experts", "mixtral"},
    ModelKind{"Gated DeltaNet in some layers", "qwen3_5"},
    ModelKind{"short convolutions in some layers", "lfm2"},
    ModelKind{"one block a layer", "nemotron_h"},
    ModelKind{"Mamba-2 beside attention", "falcon_h1"},
    ModelKind{"layers that read another layer's rows", "gemma4_shared"},
    ModelKind{"keys and values from one row", "gemma4_one_row"},
};

ModelConfig config_of(const std::string& golden) {
  const std::filesystem::path path = test::golden_path("parity/" + golden + ".json");
  const Json json = parse_json(read_text_file(path, 1 << 20), path.string());
  const test::TemporaryDirectory folder;
  write_file_atomically(folder / "config.json", dump_json(json["config"]), false);
  return parse_hf_config(folder / "config.json").config;
}

/// A part of the programs and the reason why it refuses a model; "": it does not.
using Refusals = std::vector<std::pair<std::string, std::string>>;

Refusals refusals_of(const ModelConfig& model) {
  Refusals all;
  for (const Method* const method : all_methods())
    all.emplace_back("`" + std::string(method->name) + "`", obstacle_of(*method, model));
  all.emplace_back("`elitekv --rank`", factor_obstacle(model));
  for (const Exporter& exporter : exporters())
    all.emplace_back("`--to " + std::string(exporter.name) + "`", obstacle_of(exporter, model));
  std::erase_if(all, [](const auto& refusal) { return refusal.second.empty(); });
  return all;
}

/// Returns the rows of a kind: parts that refuse it for one reason share a row.
std::string rows_of(const ModelKind& kind) {
  const ModelConfig model = config_of(kind.golden);
  std::vector<std::pair<std::string, std::string>> by_reason;  // reason, parts
  for (const auto& [part, reason] : refusals_of(model)) {
    const auto row = std::ranges::find(by_reason, reason, [](const auto& each) { return each.first; });
    if (row == by_reason.end())
      by_reason.emplace_back(reason, part);
    else
      row->second += ", " + part;
  }
  const std::string head = "| " + std::string(kind.text) + " (`" + model.architecture + "`) | ";
  if (by_reason.empty()) return head + "none | |\n";
  std::string rows;
  for (const auto& [reason, parts] : by_reason)
    rows += (rows.empty() ? head : "| | ") + parts + " | " + reason + " |\n";
  return rows;
}

/// docs/models.md has the table between these lines. With KVS_WRITE_DOCS the test writes it.
constexpr std::string_view kHead = "| model | refused | reason |\n| --- | --- | --- |\n";

TEST(Obstacles, TheTableOfTheDocsIsWhatThePartsRefuse) {
  std::string table(kHead);
  for (const ModelKind& kind : kKinds) table += rows_of(kind);
  const std::filesystem::path path = KVS_DATA_DIR "/../docs/models.md";
  std::string page = read_text_file(path, 1 << 20);
  const std::size_t begin = page.find(kHead);
  ASSERT_NE(begin, std::string::npos);
  const std::size_t end = page.find("\n\n", begin) + 1;
  if (std::getenv("KVS_WRITE_DOCS") != nullptr) {
    write_file_atomically(path, page.replace(begin, end - begin, table), true);
    return;
  }
  EXPECT_EQ(page.substr(begin, end - begin), table) << "KVS_WRITE_DOCS=1 writes the table";
}

/// The table is not empty for another reason.
TEST(Obstacles, ALlamaIsRefusedByNothing) {
  EXPECT_TRUE(refusals_of(config_of("llama")).empty());
  EXPECT_FALSE(refusals_of(config_of("gemma4_shared")).empty());
}

}  // namespace
}  // namespace kvs
