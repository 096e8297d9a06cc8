// SPDX-License-Identifier: Apache-2.0
#include "run/task_input.h"

#include <array>

#include "core/error.h"
#include "core/nearest.h"
#include "io/text_kind.h"
#include "tasks/question_file.h"

namespace kvs::inline run {
namespace {

constexpr std::int64_t kMaxSamples = 100000;  // limit for questions and for tokens of an answer

constexpr std::array<std::string_view, 4> kGeneratorOptions{"lengths", "depths", "samples", "seed"};
constexpr std::array<std::string_view, 3> kHaystackOptions{"text", "invalid-utf8", "skip-bad-lines"};

std::vector<double> depths_of(const Options& options) {
  constexpr std::size_t kWhole = 100;
  std::vector<double> depths;
  for (const std::size_t percent : options.integers("depths", 0, kWhole))
    depths.push_back(static_cast<double>(percent) / kWhole);
  return depths;
}

const TaskDefinition& task_of(const Options& options) {
  const std::string& name = options.text("task");
  if (const TaskDefinition* task = find_task(name)) return *task;
  std::vector<std::string> names;
  for (const TaskDefinition* task : task_definitions()) names.emplace_back(task->name);
  throw Error(ErrorCode::kUsage, "--task",
              "found '" + name + "', expected one of " + listed(names) + ", or FILE.jsonl" + did_you_mean(name, names));
}

/// Returns true if the task hides items in a text.
bool takes_haystack(const TaskDefinition& task) { return task.needs_haystack || task.has_depths; }

Questions made_questions(const Run& run, const Tokenizer& tokenizer) {
  const Options& options = run.options();
  const TaskDefinition& task = task_of(options);
  TextReader reader(text_leniency(options));
  std::string haystack;
  if (takes_haystack(task)) {
    haystack = read_haystack(options.list("text"), reader);
    print_leniency(reader.replaced_bytes(), reader.skipped_lines(), run.quiet());
  }
  const std::vector<double> depths = depths_of(options);
  Questions questions = make_questions(task,
                                       {.tokenizer = tokenizer,
                                        .bos = chosen_bos(tokenizer, bos_choice(options)),
                                        .samples = options.count("samples"),
                                        .seed = static_cast<std::uint64_t>(run.settings().seed),
                                        .haystack = haystack,
                                        .depths = depths},
                                       options.integers("lengths", 1, kLongestQuestion), run.config());
  questions.sha256 = reader.sha256();
  return questions;
}

Questions questions_of(const Run& run, const Tokenizer& tokenizer) {
  const Options& options = run.options();
  Questions questions =
      is_json_lines(options.text("task")) ? questions_of_file(options.text("task")) : made_questions(run, tokenizer);
  if (options.has("answer-tokens")) questions.answer_tokens = options.count("answer-tokens");
  return questions;
}

/// Refuses an unknown --task, and options that the task does not have.
void check_question_options(const Options& options, TextUse text) {
  if (is_json_lines(options.text("task"))) {
    const std::string file = "a --task of a file's questions";
    refuse_options(options, kGeneratorOptions, file);
    if (text == TextUse::kHaystack) refuse_options(options, kHaystackOptions, file);
    return;
  }
  const TaskDefinition& task = task_of(options);
  const std::string beside = "--task " + std::string(task.name);
  if (!task.has_depths) refuse_options(options, {"depths"}, beside);
  if (task.needs_haystack && options.list("text").empty())
    throw Error(ErrorCode::kUsage, beside, "needs --text, in which things are hidden");
  if (text == TextUse::kScored) {
    if (takes_haystack(task)) refuse_standard_input(options, beside);
    return;
  }
  if (!takes_haystack(task)) refuse_options(options, kHaystackOptions, beside);
  require_partner(options, std::span(kHaystackOptions).subspan(1), std::span(kHaystackOptions).first(1));
}

}  // namespace

void add_question_options(OptionTable& table, TextUse text) {
  table.group("Tasks")
      .value("task", "NAME", "ask the questions of a task that eval --help lists, or of a FILE.jsonl")
      .value("lengths", "LIST", "tokens of a question and its answer together", "1024")
      .from(1, kLongestQuestion)
      .value("depths", "LIST", "passkey and needle: position of the hidden item in the text, in percent",
             "0,25,50,75,100")
      .from(0, 100)
      .value("samples", "N", "questions per length and depth", "1")
      .from(1, kMaxSamples)
      .value("answer-tokens", "N", "maximum number of tokens of an answer (default: the task's; 32 for a file)")
      .from(1, kMaxSamples)
      .check([text](const Options& options) {
        require_partner(options, {"lengths", "depths", "samples", "answer-tokens"}, {"task"});
        require_partner(options, {"seed"}, {"task", "temperature"});
        if (options.has("task")) check_question_options(options, text);
      });
  add_seed_option(table, "seed of the random parts of questions");
}

std::string task_lines() {
  std::string lines = "Tasks:\n";
  for (const TaskDefinition* task : task_definitions())
    lines += "  " + std::string(task->name) + ": " + std::string(task->summary) +
             (task->needs_haystack ? " (--text)" : "") + '\n';
  return lines;
}

TaskInput::TaskInput(const Run& run)
    : task(run.options().text("task")),
      tokenizer(load_tokenizer(run.model(), run.settings())),
      questions(questions_of(run, *tokenizer)),
      plan{.tokenizer = *tokenizer,
           .rule = questions.rule,
           .answer_tokens = questions.answer_tokens,
           .bos = chosen_bos(*tokenizer, bos_choice(run.options()))} {
  const QuestionExtent extent = question_extent(questions.samples, plan, run.config(), task);
  for (const std::string& note : extent.notes) run.note(note);
  longest = extent.longest;
}

}  // namespace kvs::inline run
