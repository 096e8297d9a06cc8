#include "cli/common/session.h"
#include "cli/kvcalibrate/elite_plan.h"

namespace kvs {

OptionTable elitekv_options() {
  OptionTable table(
      "kvcalibrate elitekv --model PATH --text PATH --elite r --out FILE [options]",
      "RoPElite: which RoPE chunks each head needs. With --rank also J-LRD: low-rank factors of the rest.",
      {"kvcalibrate elitekv --model SmolLM2.gguf --text book.txt --window 512 --documents 16 --elite 16 "
       "--rank 192 --out elitekv.json",
       "kvcalibrate elitekv --capture book.h5 --elite 8 --norm 1 --granularity query-head --out elite.json"});
  table.value("out", "FILE", "the config to write; factors and figure go beside it")
      .value("capture", "FILE", "search in a capture with q_pre and k_pre instead of --model and --text")
      .value("elite", "r", "chunks that stay rotated in each head")
      .value("norm", "1|2", "the score error's power: 2 in one pass, 1 (the public code's) one pass per pick", "2")
      .value("pairs", "attention|uniform",
             "what a pair of query and key counts for: the attention between them, which also weighs the inputs, or "
             "all the same (default: attention with --whiten both, --norm 2 and no --baseline)")
      .value("granularity", "kv-head|query-head", "query-head: analysis only on grouped-query models", "kv-head")
      .value("baseline", "uniform|contribution|high|low", "instead of a search")
      .value("disjoint", "on|off", "no two heads of a layer share a chunk", "off")
      .value("ratio", "x",
             "instead of --elite and --rank: a cache of x of the full one; all pairs of r and d_ckv are tried on "
             "documents held out, and the best is fitted to all")
      .value("by-layer", "N",
             "layers trade steps of r and d_ckv at the same bytes, by the loss of all together: N rounds of measuring "
             "every step; documents held out say whether it was worth it")
      .value(
          "rank-step", "N",
          "with --ratio: d_ckv is a multiple of N; --by-layer: it changes by such (default: 128, for small models 8)")
      .value("held-out", "N", "with --ratio and --by-layer: so many documents, evenly spaced (default: a quarter)")
      .value("rank", "d_ckv", "also factorise to this rank (separate: the budget d_ck + d_cv)")
      .value("factorization", "joint|separate|any", "J-LRD or S-LRD; any, with --ratio: both are tried", "joint")
      .value("whiten", "off|on|both",
             "weigh errors by nothing, the inputs seen in the text, or these and what reads keys and values (default: "
             "both, with --capture off)")
      .value("queries", "fitted|model",
             "with --rank: turn W_q to make up for what is not rotated (default: fitted with --pairs attention and "
             "below full rank)")
      .value("outputs", "model|fitted",
             "with --rank: correct W_o by least squares to the full cache's attention; one more pass", "model")
      .value("split", "up|down|sqrt", "factor that takes the singular values", "up")
      .flag("allow-more-parameters", "no remark when the factors hold more parameters than what they replace")
      .flag("allow-incomplete", "use the committed documents of an unfinished capture")
      .flag("skip-corrupt", "leave out documents whose checksum does not match")
      .value("layers", "LIST", "such as 0,14-16", "all");
  add_model_options(table);
  add_text_options(table);
  add_run_options(table, true);
  return table;
}

}  // namespace kvs
