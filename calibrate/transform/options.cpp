// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/options.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "calibrate/budget/size.h"
#include "calibrate/config/config.h"
#include "calibrate/method.h"
#include "core/error.h"
#include "eval/cache_quality.h"

namespace kvs::inline calibrate {
namespace {

constexpr double kMaxOutliers = 0.5;  // share of the tokens

/// Returns the tokens per document that the budget is for.
std::size_t document_length(const Options& options, std::size_t tokens) {
  constexpr auto kMost = static_cast<std::int64_t>(kMaxTransformTokens);
  return options.has("length") ? options.count("length", 1, kMost) : tokens;
}

TransformRows rows_of(const Options& options) {
  const auto name = std::ranges::find(kTransformRowNames, options.choice("rows", kTransformRowNames));
  return static_cast<TransformRows>(name - kTransformRowNames.begin());
}

/// Returns --form. @throws Error kUsage for storage with rows by head or with outliers
TransformForm form_of(const Options& options) {
  const auto name = std::ranges::find(kTransformFormNames, options.choice("form", kTransformFormNames));
  const auto form = static_cast<TransformForm>(name - kTransformFormNames.begin());
  if (form == TransformForm::kRandomAccess) return form;
  if (rows_of(options) == TransformRows::kHead)
    throw Error(ErrorCode::kUsage, "--form", "found storage, expected random-access with --rows head");
  if (options.has("outliers") && options.real("outliers", 0, kMaxOutliers) > 0)
    throw Error(ErrorCode::kUsage, "--outliers",
                "cannot be combined with --form storage, whose step bounds every error");
  return form;
}

/// Returns --layers-per-group. @throws Error kUsage with rows by head
std::size_t layers_per_group(const Options& options) {
  constexpr std::int64_t kMost = 1 << 16;
  const std::size_t layers = options.count("layers-per-group", 1, kMost);
  if (layers > 1 && rows_of(options) == TransformRows::kHead)
    throw Error(ErrorCode::kUsage, "--layers-per-group",
                "found " + std::to_string(layers) + ", expected 1 with --rows head");
  return layers;
}

/// Returns true with --predict embedding. @throws Error kUsage with rows by head
bool predicts(const Options& options) {
  static constexpr std::array<std::string_view, 2> kNames{"none", "embedding"};
  const bool does = options.choice("predict", kNames) == kNames[1];
  if (does && rows_of(options) == TransformRows::kHead)
    throw Error(ErrorCode::kUsage, "--predict", "found embedding, expected none with --rows head");
  return does;
}

/// Returns --recent, or its default for documents of `tokens` tokens. Layers that share a row are coded after the last
/// of them, and the storage form codes blocks, so tokens have to wait.
std::size_t recent_tokens(const Options& options, std::size_t tokens) {
  const bool waits = layers_per_group(options) > 1 || predicts(options) || form_of(options) == TransformForm::kStorage;
  const std::size_t least = waits ? 1 : 0;
  if (!options.has("recent")) return std::max(least, transform_recent(tokens));
  return options.count("recent", least, std::max(least, tokens / 4));
}

double outliers_of(const Options& options) {
  const TransformRows rows = rows_of(options);
  if (form_of(options) == TransformForm::kStorage) return 0;
  if (!options.has("outliers")) return transform_outliers(rows);
  return options.real("outliers", 0, rows == TransformRows::kHead ? 0 : kMaxOutliers);
}

/// Returns --coefficients. @throws Error kUsage without the storage form
std::size_t coefficients_of(const Options& options) {
  if (!options.has("coefficients")) return 0;
  if (form_of(options) != TransformForm::kStorage)
    throw Error(ErrorCode::kUsage, "--coefficients",
                "needs --form storage: the bits of random access are the budget's");
  return options.count("coefficients", 1, kMaxTokens);
}

std::size_t sinks_of(const Options& options, std::size_t tokens) { return options.count("sinks", 0, tokens - 1); }

/// Returns the costs of --reuse-sensitivities; empty: they are measured.
std::vector<TransformScales> scales_of(const Options& options, const ModelSource& model) {
  if (!options.has("reuse-sensitivities")) return {};
  const std::filesystem::path path = options.text("reuse-sensitivities");
  const Json config = read_config(path);
  check_config_model(config, path, model);
  if (config.at("method") != "transform")
    throw Error(ErrorCode::kUsage, "--reuse-sensitivities",
                "found a config of " + config.at("method").get<std::string>() + ", expected one of transform");
  const TransformConfig costs = read_transform_config(config, path.string());
  if (const std::size_t layers = model.config().cached_layers().size(); costs.layers.size() != layers)
    throw Error(ErrorCode::kUsage, "--reuse-sensitivities",
                "found a config of " + std::to_string(costs.layers.size()) + " of " + std::to_string(layers) +
                    " layers, expected all");
  return costs.scales;
}

}  // namespace

void add_transform_options(OptionTable& table) {
  table.value("out", "FILE", "the config to write; its tensors are written next to it")
      .required()
      .value("budget", "SIZE",
             "maximum bytes of the cache of a document of --length tokens: a share of the full 16-bit cache, such as "
             "12.5% or 0.125, or bytes, such as '4096B a token'")
      .required()
      .value("length", "N", "tokens of a document that the budget is for (default: --window)")
      .from(1, kMaxTransformTokens)
      .value("sinks", "N", "first tokens that are not coded", std::to_string(kTransformSinks))
      .from(0)
      .value("recent", "N",
             "number of tokens that are coded at once, as soon as 2 N tokens wait in q8_0; 0: code each token at once "
             "(default: 1/32 of --length, at most 16)")
      .from(0)
      .value("rows", "layer|head",
             "layer: code a whole token together; head: code each head's keys by channel and its values, which "
             "attention reads without decoding: faster to read, larger at the same quality",
             "layer")
      .value("layers-per-group", "M",
             "neighbouring layers that are coded as one row: smaller at the same quality, in steps of --recent tokens; "
             "groups end where heads or windows differ",
             "1")
      .from(1)
      .value("predict", "none|embedding",
             "embedding: code what a linear map of the token's embedding leaves of its row: smaller at the same "
             "quality, with a map of d_model numbers for each value of a token",
             "none")
      .value("form", "random-access|storage",
             "random-access: every token decodes alone; storage: blocks of --recent tokens, entropy-coded: smaller at "
             "the same quality, in bytes that depend on the text; the budget is for the calibration's text",
             "random-access")
      .value("coefficients", "N",
             "with --form storage: the most coefficients of a row that are coded, which bounds the tensors' bytes "
             "(default: all that pay)")
      .from(1)
      .value("outliers", "x",
             "maximum share of the other tokens that are not coded: those with the largest errors (default: 0.005; "
             "with --rows head or --form storage: none)")
      .from(0, kMaxOutliers)
      .value("reuse-sensitivities", "FILE",
             "a transform config of the model whose sensitivities to errors are used (default: measure them by coding "
             "one layer at a time)")
      .formerly("costs");
}

void check_transform_options(const Options& options) {
  const auto window = options.count("window", 2, kMaxTokens);
  (void)parse_budget(options.text("budget"));
  (void)sinks_of(options, window);
  (void)recent_tokens(options, std::min(window, document_length(options, window)));
  (void)outliers_of(options);
  (void)coefficients_of(options);
}

TransformGeometry planned_geometry(const Options& options, const ModelConfig& model, std::size_t tokens,
                                   std::size_t documents) {
  const std::size_t length = std::min(tokens, document_length(options, tokens));
  refuse_obstacle(kTransformMethod.obstacle(model), "kvcalibrate transform", model);
  TransformGeometry geometry =
      transform_geometry(model, sinks_of(options, tokens), recent_tokens(options, length), layers_per_group(options));
  if (form_of(options) == TransformForm::kStorage) {
    constexpr std::size_t kHoldout = 8;  // the bytes of text that the basis has seen are too few
    geometry.run = geometry.recent;
    geometry.holdout = documents >= kHoldout ? kHoldout : 0;
  }
  if (!predicts(options)) return geometry;
  if (geometry.layers.front() != 0)
    throw Error(ErrorCode::kUnsupported, model.name,
                "found no attention in layer 0, whose input is the embedding that --predict needs");
  geometry.inputs = model.d_model;
  return geometry;
}

TransformPlan transform_plan(const Options& options, const ModelSource& model, const TransformGeometry& geometry,
                             std::size_t tokens) {
  const std::size_t length = document_length(options, tokens);
  TransformPlan plan{.bytes = budget_bytes(options.text("budget"), full_cache_bytes(model.config(), length), length),
                     .tokens = length,
                     .outliers = outliers_of(options),
                     .rows = rows_of(options),
                     .form = form_of(options),
                     .coefficients = coefficients_of(options),
                     .scales = scales_of(options, model)};
  if (const std::size_t least = min_transform_bytes(model.config(), geometry, plan); plan.bytes < least)
    throw Error(ErrorCode::kUsage, "--budget",
                "found " + std::to_string(plan.bytes) + " bytes of a document of " + std::to_string(length) +
                    " tokens, expected at least " + std::to_string(least) +
                    ", what gains, sinks, outliers and tokens that wait take");
  return plan;
}

}  // namespace kvs::inline calibrate
