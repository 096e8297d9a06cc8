#include "cli/kvcalibrate/task_input.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/error.h"
#include "core/nearest.h"
#include "io/text_kind.h"
#include "run/progress.h"
#include "tasks/question_file.h"

namespace kvs {
namespace {

constexpr std::size_t kFileAnswerTokens = 32;

constexpr std::array<std::string_view, 4> kGeneratorOptions{"lengths", "depths", "samples", "seed"};
constexpr std::array<std::string_view, 3> kHaystackOptions{"text", "invalid-utf8", "skip-bad-lines"};

std::vector<double> depths_of(const Options& options) {
  constexpr std::size_t kWhole = 100;
  std::vector<double> depths;
  for (const std::size_t percent : options.integers("depths", 0, kWhole))
    depths.push_back(static_cast<double>(percent) / kWhole);
  return depths;
}

bool is_question_file(const std::string& task) { return is_json_lines(task); }

const TaskDefinition& task_of(const Options& options) {
  const std::string& name = options.text("task");
  if (const TaskDefinition* task = find_task(name)) return *task;
  std::vector<std::string> names;
  for (const TaskDefinition* task : task_definitions()) names.emplace_back(task->name);
  throw Error(ErrorCode::kUsage, "--task",
              "found '" + name + "', expected one of " + listed(names) + ", or FILE.jsonl" + did_you_mean(name, names));
}

/// Whether the task hides things in a text.
bool takes_haystack(const TaskDefinition& task) { return task.needs_haystack || task.has_depths; }

/// The text of --text; empty where there is none.
std::string haystack_of(const Options& options, const RunOptions& run, std::vector<std::string>& sha256) {
  TextReader reader(text_leniency(options));
  std::string text = read_haystack(options.list("text"), reader);
  print_leniency(reader.replaced_bytes(), reader.skipped_lines(), run.quiet);
  sha256 = reader.sha256();
  return text;
}

void check_length(std::size_t tokens, const ModelConfig& model, const std::string& what) {
  if (model.exceeds_context(tokens))
    throw Error(ErrorCode::kUnsupported, what,
                "found " + std::to_string(tokens) + " tokens, expected at most the model's context of " +
                    std::to_string(model.context));
}

/// What questions have of the tokens that --lengths asks for.
class QuestionLengths {
 public:
  void add(std::size_t asked, std::size_t tokens) {
    auto& [least, most] = found_.try_emplace(asked, tokens, tokens).first->second;
    least = std::min(least, tokens);
    most = std::max(most, tokens);
  }

  /// Prints a note for each length that they fall short of by a tenth. @throws Error kUsage for less than a quarter of
  /// it.
  void check(const std::string& task, bool quiet) const {
    for (const auto& [asked, range] : found_) {
      const auto& [least, most] = range;
      const std::string found = std::to_string(least) + (most > least ? " to " + std::to_string(most) : "");
      const std::string tokens = std::to_string(asked) + " tokens";
      if (least < asked / 4)
        throw Error(ErrorCode::kUsage, "--lengths",
                    task + ": found questions of " + found + " tokens, expected " + tokens);
      if (least < asked - asked / 10)
        print_note("note: questions of " + task + " have " + found + " tokens with their answers where " + tokens +
                       " were asked for: the text grows in steps",
                   quiet);
    }
  }

 private:
  std::map<std::size_t, std::pair<std::size_t, std::size_t>> found_;  // least and most, by length
};

TaskInput make_samples(const Options& options, const RunOptions& run, const ModelConfig& model,
                       const Tokenizer& tokenizer) {
  const TaskDefinition& task = task_of(options);
  TaskInput input{.samples = {}, .answer_tokens = task.answer_tokens};
  const std::string haystack = takes_haystack(task) ? haystack_of(options, run, input.sha256) : std::string();
  const std::vector<double> depths = depths_of(options);
  const std::int32_t bos = chosen_bos(tokenizer, bos_choice(options));
  for (const std::size_t length : options.integers("lengths", 1, kLongestQuestion)) {
    check_length(length, model, "--lengths");
    const auto made = task.make({.tokenizer = tokenizer,
                                 .bos = bos,
                                 .length = length,
                                 .samples = static_cast<std::size_t>(options.integer("samples", 1, kMaxSamples)),
                                 .seed = static_cast<std::uint64_t>(run.seed),
                                 .haystack = haystack,
                                 .depths = depths});
    input.samples.insert(input.samples.end(), made.begin(), made.end());
  }
  return input;
}

TaskInput read_samples(const Options& options) {
  QuestionFile file = read_questions(options.text("task"));
  return {.samples = std::move(file.samples),
          .rule = AnswerRule::kAny,
          .answer_tokens = kFileAnswerTokens,
          .sha256 = {file.sha256}};
}

}  // namespace

void check_question_options(const Options& options, TextUse text) {
  if (is_question_file(options.text("task"))) {
    const std::string file = "a --task of a file's questions";
    refuse_options(options, kGeneratorOptions, file);
    if (text == TextUse::kHaystack) refuse_options(options, kHaystackOptions, file);
    return;
  }
  const TaskDefinition& task = task_of(options);
  const std::string beside = "--task " + std::string(task.name);
  if (!task.has_depths) refuse_options(options, std::array<std::string_view, 1>{"depths"}, beside);
  if (task.needs_haystack && options.list("text").empty())
    throw Error(ErrorCode::kUsage, beside, "needs --text, in which things are hidden");
  if (text == TextUse::kScored) {
    if (takes_haystack(task)) refuse_standard_input(options, beside);
    return;
  }
  if (!takes_haystack(task)) refuse_options(options, kHaystackOptions, beside);
  require_partner(options, std::span(kHaystackOptions).subspan(1), std::span(kHaystackOptions).first(1));
}

TaskInput task_input(const Options& options, const RunOptions& run, const ModelConfig& model,
                     const Tokenizer& tokenizer) {
  TaskInput input =
      is_question_file(options.text("task")) ? read_samples(options) : make_samples(options, run, model, tokenizer);
  if (options.has("answer-tokens"))
    input.answer_tokens = static_cast<std::size_t>(options.integer("answer-tokens", 1, kMaxSamples));
  return input;
}

std::size_t longest_question(const TaskInput& input, const TaskPlan& plan, const ModelConfig& model,
                             const RunOptions& run, const std::string& name) {
  std::size_t longest = 0;
  QuestionLengths lengths;
  for (std::size_t n = 0; n < input.samples.size(); ++n) {
    const TaskSample& sample = input.samples[n];
    const Prompt prompt = encode_prompt(plan.tokenizer, sample, plan.rule, plan.bos);
    const std::size_t room = sample.choices.empty() ? plan.answer_tokens : 0;
    const std::size_t tokens = std::max(prompt.longest(), prompt.ids.size() + room);
    check_length(tokens, model, name + ": question " + std::to_string(n + 1));
    longest = std::max(longest, tokens);
    if (sample.length > 0) lengths.add(sample.length, tokens);
  }
  lengths.check(name, run.quiet);
  return longest;
}

}  // namespace kvs
