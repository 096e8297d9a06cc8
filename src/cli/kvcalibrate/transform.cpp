// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "calibrate/transform/caches.h"
#include "calibrate/transform/config_file.h"
#include "calibrate/transform/cost.h"
#include "calibrate/transform/measured.h"
#include "calibrate/transform/options.h"
#include "cli/kvcalibrate/commands.h"
#include "run/progress.h"
#include "run/run.h"
#include "states/live_source.h"

namespace kvs::inline cli {
namespace {

OptionTable transform_options() {
  OptionTable table("kvcalibrate transform --model PATH --text PATH --budget SIZE --out FILE [options]",
                    "Fits a transform coder for the whole cache to a byte budget: bases, bits and quantisers.",
                    {"kvcalibrate transform --model SmolLM2.gguf --text book.txt --window 512 --documents 16 "
                     "--budget 12.5% --out transform.json"});
  add_transform_options(table);
  add_other_weights(table);
  add_model_run_options(table, true);
  table.check(check_transform_options);
  return table;
}

Estimate estimate_of(const TransformGeometry& geometry, const TransformPlan& plan, const Run& run) {
  const TransformText text{run.documents().size(), run.tokens(), plan.scales.empty()};
  return {.flops = transform_passes(geometry, text) * forward_flops(run.config(), static_cast<double>(run.tokens())),
          .memory_bytes =
              session_memory(run.session(), run.tokens()) + transform_memory(geometry, text, run.config().d_model),
          .coded_values = transform_coded_values(geometry, text)};
}

void run_transform(const Options& options) {
  const std::filesystem::path out = options.text("out");
  Run run(options);
  run.take_outputs(config_with_tensors(out));
  run.open_model();
  run.read_texts();
  add_decompositions(run.identity());
  if (run.is_finished()) return;
  const TransformGeometry geometry = planned_geometry(options, run.config(), run.tokens(), run.documents().size());
  TransformPlan plan = transform_plan(options, run.model(), geometry, run.tokens());
  TransformMoments moments = transform_moments(run.model(), geometry);
  run.load();
  run.print_estimate(estimate_of(geometry, plan, run));
  LiveSource source(run.decoder(), run.documents());
  PhaseProgress progress(run.quiet());
  plan.losses = sum_documents(moments, source, run.saved_state(), run.checkpoint(), out.string() + ".checkpoint",
                              progress.counter("transform: moments", source.documents()));
  const TransformCalibration found =
      calibrate_transform(run.decoder(), moments, run.documents(), plan, progress.counter(), run.checkpoint());
  const TransformCaches caches(run.decoder().model().backend(), run.config(), found.layers);
  const MeasuredQuality quality =
      measured_quality([&] { return caches.make(); }, run.decoder(), run.documents(),
                       progress.counter("quality", std::min(kQualityDocuments, run.documents().size())));
  const Json config =
      write_transform_config(found, run.model(), run.provenance(), out, run.settings().replace(), to_json(quality));
  run.remove_state();
  run.print(config, transform_summary(found, quality));
}

}  // namespace

const Subcommand kTransformCommand{"transform", transform_options, run_transform};

}  // namespace kvs::inline cli
