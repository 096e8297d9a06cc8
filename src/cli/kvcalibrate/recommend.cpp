// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "calibrate/budget/size.h"
#include "calibrate/compare/comparison_run.h"
#include "calibrate/compare/configurations.h"
#include "calibrate/compare/options.h"
#include "calibrate/compare/recommendation.h"
#include "calibrate/registry.h"
#include "cli/kvcalibrate/commands.h"
#include "cli/kvcalibrate/task_input.h"
#include "core/error.h"
#include "core/nearest.h"
#include "embedded/sample_text.h"
#include "eval/cache_quality.h"
#include "export/exporter.h"
#include "io/digest.h"
#include "io/file.h"
#include "io/staged_output.h"
#include "model/model_tensors.h"
#include "run/progress.h"
#include "run/run.h"

namespace kvs::inline cli {
namespace {

constexpr std::int64_t kMinContext = 16, kMaxContext = 1 << 24;
constexpr double kQuestions = 0.1;  // share of --time for questions
/// Shares of the full cache's bytes at which methods are sized.
constexpr double kShares[] = {0.75, 0.5, 0.375, 0.25, 0.125};
constexpr const char* kComposedType = "q8_0";  // of the rows of other methods

void check_recommend_options(const Options& options) {
  require_compared_caches(engine_of(options.text("engine"), "--engine"), "--engine");
  if (options.has("budget")) {
    (void)parse_budget(options.text("budget"));
    if (options.given("max-kl")) refuse_options(options, {"max-kl"}, "--budget");
  }
  (void)options.real("max-kl", 0, 100);
  if (options.has("time")) (void)compare_seconds(options);
}

OptionTable recommend_options() {
  OptionTable table(
      "kvcalibrate recommend --model PATH --engine NAME --context N --out-dir DIR [options]",
      "Measures the caches that an engine executes, at a context length, and recommends one: its bytes, what it costs, "
      "the next smaller and the next safer one, which not to use, and the engine's flags.",
      {"kvcalibrate recommend --model SmolLM2.gguf --engine llama.cpp --context 4096 --out-dir safe",
       "kvcalibrate recommend --model llama/ --engine vllm --context 8192 --text book.txt --max-kl 0.01 --out-dir safe",
       "kvcalibrate recommend --model SmolLM2.gguf --engine llama.cpp --context 8192 --text book.txt --budget 40% "
       "--time 30m --out-dir safe"});
  add_model_options(table);
  table.value("engine", "NAME", "the engine: " + listed(engine_names()))
      .required()
      .value("context", "N", "tokens of a conversation")
      .required()
      .from(kMinContext, kMaxContext)
      .list("text", "PATH",
            "text file, folder, *.jsonl with a `text` field; may repeat (default: a sample of 12,000 tokens; your own "
            "text is better)")
      .value("tokens-file", "FILE", "instead of --text: JSONL with an array of token ids per line, such as [5, 17, 3]")
      .value("documents", "N", "maximum number of documents of N tokens", "4")
      .from(1)
      .value("budget", "SIZE", "maximum bytes: a share of the full 16-bit cache, such as 40%, or '9000B a token'")
      .value("max-kl", "NATS",
             "without --budget: maximum KL divergence from the full cache's predictions, nats a token", "0.02")
      .value("time", "TIME", "time limit, such as 30s, 60m or 2h")
      .value("bos", "auto|on|off", kBosHelp, "auto")
      .value("invalid-utf8", "replace", "replace invalid UTF-8 by U+FFFD and count it, instead of stopping")
      .flag("skip-bad-lines", "skip and count malformed JSONL lines, instead of stopping")
      .value("out-dir", "DIR",
             "recommendation.json, the config, the comparison with its figure, and the engine's own file")
      .required();
  add_question_options(table, TextUse::kScored);
  add_run_options(table, true);
  table.check(check_recommend_options);
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

/// Returns the grid of what the engine executes: its storage types of the full cache, or methods at several sizes.
CompareGrid grid_of(const Engine& engine, std::optional<double> share) {
  CompareGrid grid{.budgets = {std::begin(kShares), std::end(kShares)}};
  if (share && std::ranges::find(grid.budgets, *share) == grid.budgets.end()) grid.budgets.push_back(*share);
  std::ranges::sort(grid.budgets, std::greater());
  grid.types.assign(engine.types.begin(), engine.types.end());
  grid.settings = settings_of(engine);
  if (engine.runs_methods) grid.composed.emplace_back(kComposedType);
  for (const Method* const method : all_methods())
    if (!method->only_with_config() && (engine.runs_methods ? method->compared : method == &kFullMethod))
      grid.methods.emplace_back(method->name);
  return grid;
}

CompareInput input_of(const Run& run, const RecommendationGoal& goal) {
  const Options& options = run.options();
  CompareInput input;
  input.grid = grid_of(*goal.engine, goal.max_share);
  input.engine = goal.engine;
  if (options.has("time")) input.plan.seconds = (1 - (options.has("task") ? kQuestions : 0)) * compare_seconds(options);
  input.documents = documents_in_turn(run.corpus());
  input.grid.tokens = input.documents.front().size();
  // Methods that compress a prefix once change nothing before its end.
  if (goal.engine->runs_methods) input.grid.prefix = input.plan.prefix = input.grid.tokens * 3 / 4;
  Progress progress("recommend: sizes", input.grid.methods.size(), run.quiet());
  input.configurations = grid_configurations(input.grid, run.config(), progress.counter());
  if (goal.max_share) require_reachable(input.configurations, options.text("budget"), *goal.max_share);
  return input;
}

/// Returns the exporter of the engine's own file, if it writes that from the config alone; else nullptr.
const Exporter* preset_exporter(const Run& run, const EngineUse& use) {
  const Exporter* const exporter = find_exporter(use.exporter);
  const bool has_preset = exporter != nullptr && !exporter->preset.empty() &&
                          (!exporter->for_gguf || run.model().format() == ModelFormat::kGguf);
  return has_preset ? exporter : nullptr;
}

/// Adds the engine's own file, if it has one, to the outputs. @param config  the recommended cache's
void add_preset(const Run& run, const RecommendFiles& files, const EngineUse& use, const Json& config,
                OutputSet& outputs) {
  const Exporter* const exporter = preset_exporter(run, use);
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

RecommendationGoal goal_of(const Run& run) {
  const Options& options = run.options();
  RecommendationGoal goal{.engine = &engine_of(options.text("engine"), "--engine"),
                          .context = options.count("context", kMinContext, kMaxContext),
                          .max_kl = options.real("max-kl", 0, 100)};
  if (run.config().exceeds_context(goal.context))
    throw Error(ErrorCode::kUsage, "--context",
                "found " + std::to_string(goal.context) + ", expected at most the model's context of " +
                    std::to_string(run.config().context));
  const double full = full_cache_bytes(run.config(), goal.context);
  if (options.has("budget"))
    goal.max_share = static_cast<double>(budget_bytes(options.text("budget"), full, goal.context)) / full;
  return goal;
}

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
  if (const Exporter* const exporter = preset_exporter(run, *to.use))
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
  const RecommendationGoal goal = goal_of(run);
  const SampleText sample(options, files);
  run.read_texts({},
                 {.window = "context", .stride = "", .windows = "", .default_text = sample.path(), .shorten = true});
  CompareInput input = input_of(run, goal);
  std::optional<TaskInput> task;
  if (options.has("task")) task.emplace(run);
  if (run.is_finished([&](const Json& json) {
        return written_files(files, compared, from_json<Recommendation>({json, files.result().string()}));
      }))
    return;
  run.load();
  std::optional<FrontQuestions> asked;
  if (task) asked.emplace(FrontQuestions{task->task, task->questions.samples, task->plan, task->longest});
  run_comparison(run, compared, std::move(input), asked, clock,
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
