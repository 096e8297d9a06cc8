// SPDX-License-Identifier: Apache-2.0
#include "calibrate/budget/options.h"

#include <array>
#include <filesystem>

#include "calibrate/budget/size.h"
#include "calibrate/common/engine_pairs.h"
#include "calibrate/common/settings_check.h"
#include "calibrate/registry.h"
#include "model/tensor_shape.h"

namespace kvs::inline calibrate {
namespace {

constexpr std::int64_t kMaxRounds = 1000;
constexpr std::array<std::string_view, 3> kBudgetOptions{"set", "per-layer-rounds", "holdout-windows"};

/// Returns options for another text than the calibration's, cut into documents like the calibration's.
std::string other_text(const Options& options, std::size_t tokens) {
  std::string words = options.has("tokens-file") ? " --tokens-file OTHER.jsonl" : " --text OTHER.txt";
  words += " --window " + std::to_string(tokens);
  if (options.given("bos")) words += " --bos " + options.text("bos");
  return words;
}

}  // namespace

void add_budget_options(OptionTable& table, const std::string& method) {
  table
      .value("budget", "SIZE",
             "maximum bytes of a document's cache at any time: a share of the full 16-bit cache, such as 12.5% or "
             "0.125, or bytes, such as '4096B a token'")
      .list("set", "NAME=VALUE",
            "with --budget: fixed parameters, such as type=q8_0; the budget alone sets the size; may repeat")
      .value(
          "per-layer-rounds", "N",
          "with --budget: layers trade sizes within the budget to lower the loss; each of N rounds measures every step")
      .formerly("by-layer")
      .from(1, kMaxRounds)
      .value("holdout-windows", "A:B",
             "with --budget: held-out windows of each text, on which the final candidates are compared (default: a "
             "quarter of the documents, evenly spaced)")
      .formerly("held-windows")
      .check([method](const Options& options) {
        require_partner(options, kBudgetOptions, {"budget"});
        if (!options.has("budget")) return;
        if (options.has("holdout-windows")) refuse_standard_input(options, "--holdout-windows");
        (void)parse_budget(options.text("budget"));
        check_settings(*find_method(method), parse_settings(options.list("set"), "--set"), "--set");
      });
}

bool has_budget(const Options& options, std::span<const std::string_view> others) {
  if (options.has("budget")) refuse_options(options, others, "--budget");
  return options.has("budget");
}

BudgetPlan budget_plan(const Options& options, double full, std::size_t tokens) {
  return {.bytes = budget_bytes(options.text("budget"), full, tokens),
          .fixed = parse_settings(options.list("set"), "--set"),
          .rounds = options.has("per-layer-rounds") ? options.count("per-layer-rounds", 1, kMaxRounds) : 0};
}

std::string next_command(std::string_view method, const Options& options, ModelFormat format, const Json& settings,
                         std::size_t tokens) {
  const std::filesystem::path out = options.text("out");
  const std::string model = " --model " + shell_quoted(options.text("model")),
                    config = " --config " + shell_quoted(out.string());
  if (method == "full" && format == ModelFormat::kGguf && type_pair(settings))
    return "  next: kvcalibrate export --to llama-cpp" + config + model + " --out " +
           shell_quoted(std::filesystem::path(out).replace_extension(".ini").string()) + '\n';
  return "  next: kvcalibrate eval" + model + other_text(options, tokens) + config + '\n';
}

}  // namespace kvs::inline calibrate
