// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "calibrate/common/measured_quality.h"
#include "calibrate/kvtc/cache.h"
#include "calibrate/kvtc/config_file.h"
#include "calibrate/kvtc/cost.h"
#include "calibrate/kvtc/options.h"
#include "calibrate/method.h"
#include "calibrate/method_help.h"
#include "cli/kvcalibrate/commands.h"
#include "run/progress.h"
#include "run/run.h"
#include "states/document_sums.h"
#include "states/live_source.h"

namespace kvs::inline cli {
namespace {

OptionTable kvtc_options() {
  OptionTable table("kvcalibrate kvtc --model PATH --text PATH --budget SIZE --out FILE [options]",
                    "Fits KVTC, a storage form of the cache, to a byte budget: principal components of all layers "
                    "together, groups and types.\n\n" +
                        method_help(kKvtcMethod),
                    {"kvcalibrate kvtc --model SmolLM2.gguf --text book.txt --window 512 --documents 16 "
                     "--length 4096 --budget 10% --out kvtc.json"});
  add_kvtc_options(table);
  add_model_run_options(table, true);
  table.check(check_kvtc_options);
  return table;
}

KvtcConfig calibrated(const Run& run, const KvtcMoments& moments, const KvtcPlan& plan, PhaseProgress& progress) {
  const auto ops = make_calibration_ops(run.backend());
  const KvtcBases bases(*ops, moments, kvtc_bits(moments.pools(), plan, kKvtcMaxGain), progress.counter());
  return calibrate_kvtc(bases, moments, plan, progress.counter());
}

void run_kvtc(const Options& options) {
  const std::filesystem::path out = options.text("out");
  Run run(options);
  run.take_outputs(config_with_tensors(out));
  run.open_model();
  run.read_texts();
  if (run.is_finished()) return;
  const KvtcPlan plan = kvtc_plan(options, run.config(), run.tokens());
  KvtcMoments moments(kvtc_pools(run.config()), plan.held.sinks, plan.held.block);
  run.load();
  run.print_estimate({.flops = kvtc_flops(run.config(), run.documents().size(), run.tokens()),
                      .memory_bytes = session_memory(run.session(), run.tokens()) + kvtc_memory(run.config())});
  LiveSource source(run.decoder(), run.documents());
  PhaseProgress progress(run.quiet());
  add_remaining_documents(moments, source, run.saved_state(), run.checkpoint(),
                          progress.counter("kvtc: moments", source.documents()));
  const KvtcConfig found = calibrated(run, moments, plan, progress);
  const KvtcCaches caches(run.backend(), run.config(), found.pools, found.tokens);
  const MeasuredQuality quality =
      measured_quality([&] { return caches.make(); }, run.decoder(), run.documents(),
                       progress.counter("quality", std::min(kQualityDocuments, run.documents().size())));
  const Json config =
      write_kvtc_config(found, run.model(), run.provenance(), out, run.settings().replace(), to_json(quality));
  run.remove_state();
  run.print(config, kvtc_summary(found) + summary_line(quality));
}

}  // namespace

const Subcommand kKvtcCommand{"kvtc", kvtc_options, run_kvtc};

}  // namespace kvs::inline cli
