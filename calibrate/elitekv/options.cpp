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
  table.value("out", "FILE", "the config to write; factors and figure go beside it")
      .required()
      .value("capture", "FILE", "search in a capture with q_pre and k_pre instead of --model and --text")
      .value("elite", "r", "chunks that stay rotated in each head")
      .whole(1)
      .value("norm", "1|2", "the score error's power: 2 in one pass, 1 (the public code's) one pass per pick", "2")
      .value("pairs", "attention|uniform",
             "what a pair of query and key counts for: the attention between them, which also weighs the inputs, or "
             "all the same (default: attention with --whiten both, --norm 2 and no --baseline)")
      .value("granularity", "kv-head|query-head", "query-head: analysis only on grouped-query models", "kv-head")
      .value("baseline", "uniform|contribution|high|low", "instead of a search")
      .value("disjoint", "on|off", "no two heads of a layer share a chunk", "off")
      .value("cache-ratio", "x",
             "instead of --elite and --rank: a cache of x of the full one; all pairs of r and d_ckv are tried on "
             "documents held out, and the best is fitted to all")
      .formerly("ratio")
      .value("per-layer-rounds", "N",
             "layers trade steps of r and d_ckv at the same bytes, by the loss of all together: N rounds of measuring "
             "every step; documents held out say whether it was worth it")
      .formerly("by-layer")
      .from(1, kMaxTradeRounds)
      .value("rank-step", "N",
             "with --cache-ratio: d_ckv is a multiple of N; --per-layer-rounds: it changes by such (default: 128, for "
             "small models 8)")
      .from(1, kMaxRankStep)
      .value("holdout-documents", "N",
             "with --cache-ratio and --per-layer-rounds: so many documents, evenly spaced (default: a quarter)")
      .formerly("held-out")
      .from(1);
}

void add_factor_options(OptionTable& table) {
  table.value("rank", "d_ckv", "also factorise to this rank (separate: the budget d_ck + d_cv)")
      .whole(1)
      .value("factorization", "joint|separate|any", "J-LRD or S-LRD; any, with --cache-ratio: both are tried", "joint")
      .value("whiten", "off|on|both",
             "weigh errors by nothing, the inputs seen in the text, or these and what reads keys and values (default: "
             "both, with --capture off)")
      .value("queries", "fitted|model",
             "with --rank: turn W_q to make up for what is not rotated (default: fitted with --pairs attention and "
             "below full rank)")
      .value("outputs", "model|fitted",
             "with --rank: correct W_o by least squares to the full cache's attention; one more pass", "model")
      .value("singular-values", "up|down|sqrt", "factor that takes the singular values", "up")
      .formerly("split")
      .flag("allow-more-parameters", "no note when the factors hold more parameters than what they replace")
      .flag("allow-incomplete", "use the committed documents of an unfinished capture")
      .flag("skip-corrupt", "leave out documents whose checksum does not match")
      .value("layers", "LAYERS", "such as 0,14-16", "all");
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
