// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/elitekv/plan.h"
#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

bool is(const Options& options, const char* name, std::string_view value) {
  return options.has(name) && options.text(name) == value;
}

/// Throws unless option `other` has the value that option `name` needs.
void require_value(const Options& options, const char* name, const char* other, std::string_view value) {
  if (!is(options, other, value))
    throw Error(ErrorCode::kUsage, std::string("--") + name,
                "needs --" + std::string(other) + ' ' + std::string(value));
}

void check_ratio(const Options& options) {
  if (options.has("cache-ratio")) {
    (void)options.share("cache-ratio");
    refuse_options(options, {"elite", "rank", "capture"}, "--cache-ratio");
    require_value(options, "cache-ratio", "norm", "2");  // with norm 1, every r needs its own search
  } else if (!options.has("elite")) {
    throw Error(ErrorCode::kUsage, "missing option --elite r or --cache-ratio x", "see --help");
  }
  if (is(options, "factorization", "any") && !options.has("cache-ratio"))
    throw Error(ErrorCode::kUsage, "--factorization any", "needs --cache-ratio");
}

void check_by_layer(const Options& options) {
  require_partner(options, {"rank-step", "holdout-documents"}, {"cache-ratio", "per-layer-rounds"});
  if (!options.has("per-layer-rounds")) return;
  require_partner(options, {"per-layer-rounds"}, {"rank", "cache-ratio"});  // layers trade d_ckv
  refuse_options(options, {"capture"}, "--per-layer-rounds");
  require_value(options, "per-layer-rounds", "factorization", "joint");
  require_value(options, "per-layer-rounds", "norm", "2");
  require_value(options, "per-layer-rounds", "granularity", "kv-head");
}

void check_search(const Options& options) {
  if (is(options, "pairs", "attention")) {
    refuse_options(options, {"baseline"}, "--pairs attention");
    require_value(options, "pairs attention", "norm", "2");
  }
  if (!is(options, "disjoint", "on")) return;
  refuse_options(options, {"baseline"}, "--disjoint on");
  require_value(options, "disjoint on", "norm", "2");
  require_value(options, "disjoint on", "granularity", "kv-head");
}

constexpr std::int64_t kMaxTradeRounds = 1000, kMaxRankStep = 1 << 20;

void add_search_options(OptionTable& table) {
  table.value("out", "FILE", "the config to write; factors and figure are written next to it")
      .required()
      .value("capture", "FILE", "a capture with q_pre and k_pre to search in, instead of --model and --text")
      .value("elite", "r", "chunks that stay rotated in each head")
      .whole(1)
      .value("norm", "1|2",
             "power of the score error: 2 needs one pass, 1 (as in the public code) one pass per chosen chunk", "2")
      .value("pairs", "attention|uniform",
             "weight of a pair of query and key: the attention between them, which also weights the inputs, or 1 for "
             "every pair (default: attention with --whiten both, --norm 2 and no --baseline)")
      .value("granularity", "kv-head|query-head", "query-head: only for analysis if the model has grouped queries",
             "kv-head")
      .value("baseline", "uniform|contribution|high|low", "choose chunks by this rule instead of a search")
      .value("disjoint", "on|off", "on: no two heads of a layer have the same chunk", "off")
      .value("cache-ratio", "x",
             "instead of --elite and --rank: size of the cache as a share of the full cache; all pairs of r and d_ckv "
             "are tried on held-out documents, and the best is fitted to all documents")
      .formerly("ratio")
      .value("per-layer-rounds", "N",
             "layers trade steps of r and d_ckv at the same bytes to lower the loss; each of N rounds measures every "
             "step; held-out documents decide whether the result is used")
      .formerly("by-layer")
      .from(1, kMaxTradeRounds)
      .value("rank-step", "N",
             "with --cache-ratio: d_ckv is a multiple of N; with --per-layer-rounds: d_ckv changes in steps of N "
             "(default: 128, for small models 8)")
      .from(1, kMaxRankStep)
      .value(
          "holdout-documents", "N",
          "with --cache-ratio and --per-layer-rounds: number of held-out documents, evenly spaced (default: a quarter)")
      .formerly("held-out")
      .from(1);
}

void add_factor_options(OptionTable& table) {
  table.value("rank", "d_ckv", "also factorise to this rank (separate: the sum d_ck + d_cv)")
      .whole(1)
      .value("factorization", "joint|separate|any",
             "J-LRD (joint) or S-LRD (separate); any: try both, with --cache-ratio", "joint")
      .value("whiten", "off|on|both",
             "weight errors equally (off), by the inputs in the text (on), or by the inputs and the readers of keys "
             "and values (both; default: both, with --capture off)")
      .value("queries", "fitted|model",
             "with --rank: fitted: turn W_q to compensate for chunks that are not rotated (default: fitted with "
             "--pairs attention and below full rank)")
      .value("outputs", "model|fitted",
             "with --rank: fitted: correct W_o by least squares to the attention of the full cache, in one more pass",
             "model")
      .value("singular-values", "up|down|sqrt", "factor that contains the singular values", "up")
      .formerly("split")
      .flag("allow-more-parameters",
            "print no note if the factors have more parameters than the matrices that they replace")
      .value("layers", "LAYERS", "layers to search, such as 0,14-16", "all");
}

}  // namespace

void add_elite_options(OptionTable& table) {
  add_search_options(table);
  add_factor_options(table);
}

void check_elite_options(const Options& options) {
  require_partner(options,
                  {"factorization", "whiten", "queries", "outputs", "singular-values", "allow-more-parameters"},
                  {"rank", "cache-ratio"});
  check_ratio(options);
  check_by_layer(options);
  check_search(options);
}

}  // namespace kvs::inline calibrate
