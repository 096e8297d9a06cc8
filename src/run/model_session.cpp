// SPDX-License-Identifier: Apache-2.0
#include "run/model_session.h"

#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "calibrate/config/config.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/processor_quota.h"
#include "kernels/instruction_set.h"
#include "run/progress.h"

namespace kvs::inline run {
namespace {

constexpr std::int64_t kMaxThreads = 4096;

/// Parses "500MiB", "24GiB" or a number of bytes.
std::size_t weights_budget(const Options& options) {
  if (!options.has("weights-budget")) return 0;
  std::string_view number = options.text("weights-budget");
  std::size_t unit = 1;
  for (const auto& [suffix, bytes] : {std::pair<std::string_view, std::size_t>{"KiB", std::size_t{1} << 10},
                                      {"MiB", std::size_t{1} << 20},
                                      {"GiB", std::size_t{1} << 30}}) {
    if (!number.ends_with(suffix)) continue;
    number.remove_suffix(suffix.size());
    unit = bytes;
  }
  const auto count = parse_integer<std::size_t>(number);
  if (!count || *count == 0 || *count > SIZE_MAX / unit) {
    throw Error(ErrorCode::kUsage, "--weights-budget",
                "found '" + options.text("weights-budget") + "', expected a size such as 24GiB, 500MiB or 1000000");
  }
  return *count * unit;
}

/// Returns the threads without --threads: OMP_NUM_THREADS if this is the only rank and has it, otherwise the processors
/// of this process.
int default_threads() {
  const char* const wanted = std::getenv("OMP_NUM_THREADS");
  const bool heeded = wanted != nullptr && std::strtol(wanted, nullptr, 10) > 0;
  if (program_launch().alone() && heeded) return omp_get_max_threads();
  const auto online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  // With OMP_PROC_BIND this thread has only one processor; OpenMP knows how many there were before.
  return own_processors(program_launch(),
                        {.online = online, .usable = omp_get_num_procs(), .quota = processor_quota()});
}

/// Sets and returns the number of threads of all following parallel regions.
int chosen_threads(const Options& options) {
  static const int by_default = default_threads();
  const int threads =
      options.has("threads") ? static_cast<int>(options.integer("threads", 1, kMaxThreads)) : by_default;
  omp_set_num_threads(threads);
  return threads;
}

/// The OpenMP environment may grant fewer than --threads.
void note_fewer_threads(const Options& options, bool quiet) {
  if (!options.has("threads")) return;
  const std::int64_t wanted = options.integer("threads", 1, kMaxThreads);
  if (omp_get_max_threads() < wanted)
    print_note("note: --threads " + std::to_string(wanted) + ": the environment (OMP_THREAD_LIMIT) leaves " +
                   std::to_string(omp_get_max_threads()),
               quiet);
}

void warn_of_streaming(const WeightPlacement& placement, std::size_t layers, bool quiet) {
  if (placement.streamed_layers == 0) return;
  const double bytes = static_cast<double>(placement.streamed_layers) * static_cast<double>(placement.layer_bytes);
  print_note("warning: there is no room for all weights: " + std::to_string(placement.streamed_layers) + " of " +
                 std::to_string(layers) + " layers are read from disk in every pass, " + human_bytes(bytes) + " at " +
                 human_bytes(bytes / placement.seconds_per_pass()) + "/s: about " +
                 human_seconds(placement.seconds_per_pass()) + " a pass",
             quiet);
}

/// Prints a note if a config was made for other weights.
void note_other_weights(const std::filesystem::path& path, const ModelSource& model, bool quiet) {
  const Json config = read_config(path);
  if (config.at("model").at("sha256") == model.sha256()) return;
  print_note("note: " + path.string() + " was made for other weights, those of " +
                 config.at("model").at("name").get<std::string>() + ": its quality was not measured on these",
             quiet);
  if (!config.at("calibration").contains("tokenizer_sha256"))
    print_note(
        "note: " + path.string() + " does not say which tokenizer it was made with, so that this is not compared",
        quiet);
}

/// A model may have thousands of experts: only the first projections are named.
void warn_of_zeros(const std::vector<std::string>& names, bool quiet) {
  constexpr std::size_t kNamed = 8;
  for (std::size_t n = 0; n < std::min(names.size(), kNamed); ++n)
    print_note("warning: " + names[n] + ": all weights are zero", quiet);
  if (names.size() > kNamed)
    print_note("warning: all weights of " + std::to_string(names.size() - kNamed) + " more projections are zero",
               quiet);
}

}  // namespace

void add_model_options(OptionTable& table) {
  table.group("Model")
      .value("model", "PATH", "GGUF file, or folder with config.json and safetensors")
      .value("device", "cpu|cuda|auto", "auto: cuda if there is a GPU", "cpu")
      .value("dtype", "f32|bf16",
             std::string("type of weights and matrix products; bf16 takes half the memory and is ") +
                 (has_bf16_products() ? "faster on this processor" : "no faster on this processor"),
             "f32")
      .value("threads", "N", "processor threads (default: all that this process may use)")
      .from(1, kMaxThreads)
      .value("weights-budget", "SIZE",
             "memory for weights, such as 24GiB; layers that do not fit are read from disk, once for several documents "
             "where a command allows it (default: most of the free memory)")
      .check([](const Options& options) {
        if (!options.has("model") && !options.has("capture")) miss_option("model", "PATH");
        (void)weights_budget(options);
      });
}

void add_other_weights(OptionTable& table) {
  table.flag("other-weights",
             "accept a config made for other weights of the model, such as bf16 instead of Q4; geometry, RoPE and "
             "tokenizer must be equal");
  table.check([](const Options& options) {
    const bool sensitivities = options.takes("reuse-sensitivities");
    require_partner(options, {"other-weights"}, {sensitivities ? "reuse-sensitivities" : "config"});
  });
}

std::unique_ptr<ModelSource> open_model(const Options& options) {
  chosen_threads(options);  // weights are read before there is a backend
  auto source = ModelSource::open(options.text("model"));
  if (options.flag("other-weights")) {
    source->take_other_weights();
    const bool quiet = options.flag("quiet") || !program_ranks().is_root();
    for (const std::string name : {"config", "reuse-sensitivities"})
      for (const std::string& path : options.list(name)) note_other_weights(path, *source, quiet);
  }
  return source;
}

std::unique_ptr<Backend> open_backend(const Options& options) {
  const DType type = *dtype_from_name(options.text("dtype"));
  auto backend = make_backend(options.text("device"), type, chosen_threads(options));
  const bool quiet = options.flag("quiet") || !program_ranks().is_root();
  backend->on_note([quiet](const std::string& line) { print_note("note: " + line, quiet); });
  if (backend->device() == "cpu") note_fewer_threads(options, quiet);
  return backend;
}

ModelSession load_model(std::unique_ptr<ModelSource> source, const Options& options, const RunOptions& run) {
  ModelSession session;
  session.backend = open_backend(options);
  session.source = std::move(source);
  for (const std::string& note : session.source->notes()) print_note("note: " + note, run.quiet);
  Progress progress("loading " + session.config().name, static_cast<double>(session.config().layers()), run.quiet);
  session.model = std::make_unique<Model>(
      *session.source, *session.backend,
      [&](std::size_t done, std::size_t) { progress.update(static_cast<double>(done)); }, weights_budget(options));
  warn_of_zeros(session.model->zero_projections(), run.quiet);
  warn_of_streaming(session.model->placement(), session.config().layers(), run.quiet);
  session.decoder = std::make_unique<Decoder>(*session.model);
  return session;
}

}  // namespace kvs::inline run
