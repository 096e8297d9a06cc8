// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cost/cost.h"

#include "cli/kvcalibrate/commands.h"
#include "core/error.h"
#include "model/model.h"
#include "run/outputs.h"

namespace kvs::inline cli {
namespace {

constexpr std::int64_t kMinCache = 16;  // FreqKV's sinks, and slots to keep and to free for any γ

OptionTable cost_options() {
  std::string names;
  for (const ModelConfig& model : known_geometries()) names += (names.empty() ? "" : "|") + model.name;
  OptionTable table(
      "kvcalibrate cost (--geometry NAME | --model PATH) [options]",
      "Computes the cost of methods by their papers' arithmetic. The result holds FLOPs and compressions of FreqKV, "
      "tokens that LagKV holds, feasible sizes of EliteKV, and sizes of FAEDKV. Reads no weights.",
      {"kvcalibrate cost --geometry llama2-7b", "kvcalibrate cost --model SmolLM2.gguf --lengths 900 --lag 64 --json"});
  table.value("geometry", names, "geometry of a known model; needs no file")
      .value("model", "PATH", "GGUF file, or folder with config.json and safetensors")
      .value("lengths", "LIST", "lengths of texts in tokens", "4096,8192,12288,16384,24576,32768")
      .formerly("tokens")
      .from(1, kMaxTokens)
      .value("cache-size", "N", "slots of FreqKV's cache", "4096")
      .from(kMinCache, kMaxTokens)
      .value("lag", "LIST", "tokens of LagKV's partitions", "128,1024")
      .from(1, kMaxTokens)
      .flag("json", "print the result as JSON on stdout")
      .check([](const Options& options) {
        if (options.has("geometry")) refuse_options(options, {"model"}, "--geometry");
        if (!options.has("geometry") && !options.has("model"))
          throw Error(ErrorCode::kUsage, "missing option --geometry NAME or --model PATH", "see --help");
      });
  return table;
}

void run_cost(const Options& options) {
  const CostPlan plan{.tokens = options.integers("lengths", 1, kMaxTokens),
                      .cache_size = options.count("cache-size", kMinCache, kMaxTokens),
                      .lags = options.integers("lag", 1, kMaxTokens)};
  const ModelConfig model = options.has("geometry") ? known_geometry(options.text("geometry"))
                                                    : ModelSource::open(options.text("model"))->config();
  const CostResult cost = cost_result(model, plan);
  print_result(run_options(options), to_json(cost), to_text(cost));
}

}  // namespace

const Subcommand kCostCommand{"cost", cost_options, run_cost};

}  // namespace kvs::inline cli
