// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "calibrate/compare/options.h"
#include "calibrate/compare/recommend_plan.h"
#include "calibrate/registry.h"
#include "cli/kvcalibrate/commands.h"
#include "core/error.h"
#include "embedded/sample_text.h"
#include "export/exporter.h"
#include "io/digest.h"
#include "io/file.h"

namespace kvs::inline cli {
namespace {

OptionTable recommend_options() {
  OptionTable table(
      "kvcalibrate recommend --model PATH --engine NAME --context N --out-dir DIR [options]",
      "Measures the caches that an engine executes, at a context length, and recommends one: its bytes, what it costs, "
      "the next smaller and the next safer one, which not to use, and the engine's flags.",
      {"kvcalibrate recommend --model SmolLM2.gguf --engine llama.cpp --context 4096 --out-dir safe",
       "kvcalibrate recommend --model llama/ --engine vllm --context 8192 --text book.txt --max-kl 0.01 --out-dir safe",
       "kvcalibrate recommend --model SmolLM2.gguf --engine llama.cpp --context 8192 --text book.txt --budget 40% "
       "--time 30m --out-dir safe"});
  add_recommend_options(table);
  return table;
}

/// The files of --out-dir.
struct RecommendFiles {
  explicit RecommendFiles(std::filesystem::path dir) : folder(std::move(dir)) {}

  std::filesystem::path folder;
  std::filesystem::path comparison() const { return folder / "comparison.json"; }
  std::filesystem::path result() const { return folder / "recommendation.json"; }
  std::filesystem::path config() const { return folder / "config.json"; }
  std::filesystem::path preset(const Exporter& exporter) const { return folder / exporter.preset; }
  std::filesystem::path sample() const { return folder / "sample.txt"; }
};

/// Adds the engine's own file, if it has one, to the outputs. @param config  the recommended cache's
void add_preset(const Run& run, const RecommendFiles& files, const EngineUse& use, const Json& config,
                OutputSet& outputs) {
  const Exporter* const exporter = find_preset(use.exporter, run.model().format());
  if (exporter == nullptr) return;
  (void)exporter->write({.model = run.model(),
                         .config = config,
                         .config_path = files.config(),
                         .out = outputs.stage(files.preset(*exporter))});
}

/// The sample text as a file. A run that is refused or fails removes the file, unless it was there before.
class SampleText {
 public:
  /// @throws Error kConflict if another text has the file's name
  SampleText(const Options& options, const RecommendFiles& files) {
    if (options.has("text") || options.has("tokens-file")) return;
    path_ = files.sample();
    made_ = !std::filesystem::exists(path_);
    if (made_)
      write_file_atomically(path_, embedded::sample_text, true);  // ranks may write it at once
    else if (sha256_of_file(path_) != sha256_of(embedded::sample_text))
      throw Error(ErrorCode::kConflict, path_.string(),
                  "found another text than the sample, expected another --out-dir, or the text as --text");
  }
  SampleText(const SampleText&) = delete;
  SampleText& operator=(const SampleText&) = delete;
  ~SampleText() {
    std::error_code ignored;
    if (made_ && std::uncaught_exceptions() > exceptions_) std::filesystem::remove(path_, ignored);
  }
  /// Returns the text to read without --text.
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_ = {};
  bool made_ = false;
  int exceptions_ = std::uncaught_exceptions();
};

/// Returns the JSON of an earlier run's file; null if the file is missing or damaged.
Json earlier_json(const std::filesystem::path& path) {
  try {
    return parse_json(read_text_file(path, kMaxResultBytes), path.string());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInput) throw;
    return {};
  }
}

/// Returns the files that a run with this recommendation has written, other than the recommendation.
std::vector<std::filesystem::path> written_files(const RecommendFiles& files, const ComparisonFiles& compared,
                                                 const Recommendation& one) {
  std::vector<std::filesystem::path> paths{files.comparison()};
  for (const std::string& path : one.files) paths.emplace_back(path);
  const Json comparison = earlier_json(files.comparison());
  if (comparison.is_null()) return paths;
  const auto found = from_json<ComparisonResult>({comparison, files.comparison().string()});
  for (std::filesystem::path& path : compared.written(found)) paths.push_back(std::move(path));
  return paths;
}

/// Adds the config of the chosen cache and how the engine is told.
void add_use(const Run& run, const RecommendFiles& files, const ComparedConfiguration& one, Recommendation& to) {
  const CacheChoice choice{.method = find_method(one.method), .parameters = {{one.settings, "", ErrorCode::kInternal}}};
  to.use = use_in(engine_of(to.engine, "--engine"), EngineCache(choice, run.config()));
  to.files.push_back(files.config().string());
  if (const Exporter* const exporter = find_preset(to.use->exporter, run.model().format()))
    to.files.push_back(files.preset(*exporter).string());
}

/// Returns every file that the command may write.
RunOutputs outputs_of(const RecommendFiles& files, const ComparisonFiles& compared) {
  RunOutputs outputs{.main = files.result(), .others = compared.others(), .state = RunOutputs::State::kJournal};
  for (const auto& path : {files.comparison(), files.config()}) outputs.others.push_back(path);
  for (const Exporter& exporter : exporters())
    if (!exporter.preset.empty()) outputs.others.push_back(files.preset(exporter));
  return outputs;
}

void run_recommend(const Options& options) {
  const ComparisonClock clock(options.has("time") ? std::optional(compare_seconds(options)) : std::nullopt);
  const RecommendFiles files(options.text("out-dir"));
  const ComparisonFiles compared{.out = files.comparison(), .best = {}};
  RunOutputs outputs = outputs_of(files, compared);
  check_inputs_spared(outputs.others, options);
  const OutputFolder folder(files.folder);  // destroyed after the locks in it
  Run run(options);
  run.take_outputs(std::move(outputs));

  run.open_model();
  const RecommendationGoal goal = recommendation_goal(options, run.config());
  const SampleText sample(options, files);
  run.read_texts({},
                 {.window = "context", .stride = "", .windows = "", .default_text = sample.path(), .shorten = true});
  CompareInput input = recommendation_input(run, goal);
  if (run.is_finished([&](const Json& json) {
        return written_files(files, compared, from_json<Recommendation>({json, files.result().string()}));
      }))
    return;
  run.load();
  run_comparison(run, compared, std::move(input), clock,
                 [&](const ComparisonResult& comparison, BestConfigs& configs, OutputSet& staged) {
                   std::optional<std::size_t> chosen;
                   Recommendation one = recommend(comparison, goal, run.config(), chosen);
                   if (chosen) add_use(run, files, comparison.configurations[*chosen], one);
                   const Json config = configs.add(chosen, files.config(), staged);
                   if (one.use) add_preset(run, files, *one.use, config, staged);
                   Json json = to_json(one);
                   staged.add(files.result(), dump_json(json) + "\n");
                   return Conclusion{std::move(json), to_text(one)};
                 });
}

}  // namespace

const Subcommand kRecommendCommand{"recommend", recommend_options, run_recommend, true};

}  // namespace kvs::inline cli
