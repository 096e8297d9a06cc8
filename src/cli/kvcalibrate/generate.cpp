#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "calibrate/config/config.h"
#include "cli/kvcalibrate/cache_choice.h"
#include "cli/kvcalibrate/commands.h"
#include "core/error.h"
#include "core/utf8.h"
#include "eval/cache_quality.h"
#include "eval/generation.h"
#include "io/finite.h"
#include "model/model_json.h"
#include "run/progress.h"
#include "run/run.h"
#include "texts/text_source.h"
#include "version.h"

namespace kvs {
namespace {

constexpr std::int64_t kMaxTokens = 1 << 24;
constexpr const char* kPromptBosHelp =
    "the model's begin-of-sequence token before the prompt; auto: where the model's files ask for it";

OptionTable generate_options() {
  OptionTable table(
      "kvcalibrate generate --model PATH --prompt TEXT [--config FILE | --method NAME …] [options]",
      "Continues a prompt with the most probable tokens and a cache at work, to see what a method does to "
      "text. Nothing stops it before --tokens.\n" +
          cache_method_lines(),
      {"kvcalibrate generate --model SmolLM2.gguf --prompt 'Light is' --tokens 64",
       "kvcalibrate generate --model SmolLM2.gguf --prompt 'Light is' --method freqkv --set "
       "cache_size=32 --json"});
  table.value("prompt", "TEXT", "what is continued; special tokens in it are parsed")
      .required()
      .value("tokens", "N", "tokens to generate", "64")
      .from(1, kMaxTokens)
      .value("bos", "auto|on|off", kPromptBosHelp, "auto");
  add_cache_options(table, &kFullMethod);
  add_model_options(table);
  add_report_options(table);
  return table;
}

/// @throws Error kUsage if --prompt is missing or is no UTF-8.
void check_prompt(const Options& options) {
  const std::string& prompt = options.text("prompt");
  if (find_invalid_utf8(prompt) != std::string_view::npos)
    throw Error(ErrorCode::kUsage, "--prompt", "found bytes that are not UTF-8");
}

std::vector<std::int32_t> prompt_ids(const Options& options, const Tokenizer& tokenizer, std::int32_t bos) {
  std::vector<std::int32_t> ids = tokenizer.encode(options.text("prompt"));
  begin_with(bos, ids);
  if (ids.empty()) throw Error(ErrorCode::kUsage, "--prompt", "found no token, expected a text");
  return ids;
}

/// null where the clock stood still.
Json per_second(std::size_t tokens, double seconds) {
  return tokens == 0 ? Json(0) : finite_or_null(static_cast<double>(tokens) / seconds);
}

/// What is continued, and with which cache.
struct GenerationPlan {
  CacheChoice choice;
  std::int32_t bos = -1;
  std::vector<std::int32_t> prompt = {};
  std::size_t count = 0;  // tokens to generate

  std::size_t tokens() const { return prompt.size() + count; }
};

GenerationPlan make_plan(const Options& options, CacheChoice choice, const Tokenizer& tokenizer) {
  GenerationPlan plan{.choice = std::move(choice), .bos = chosen_bos(tokenizer, bos_choice(options))};
  plan.prompt = prompt_ids(options, tokenizer, plan.bos);
  plan.count = static_cast<std::size_t>(options.integer("tokens", 1, kMaxTokens));
  return plan;
}

/// Shows text as it comes, but for the bytes of a character that is not whole yet.
class TextStream {
 public:
  explicit TextStream(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void add(std::int32_t id) {
    ids_.push_back(id);
    const std::string text = tokenizer_.decode(ids_);
    print(text, std::min(find_invalid_utf8(text), text.size()));
  }
  /// What is left, and the end of the line.
  void end(const std::string& text) {
    print(text, text.size());
    std::cout << std::endl;
  }

 private:
  void print(std::string_view text, std::size_t end) {
    if (end <= shown_) return;
    const std::string_view piece = text.substr(shown_, end - shown_);
    std::cout << (terminal_ ? printable_text(piece) : std::string(piece)) << std::flush;
    shown_ = end;
  }

  const Tokenizer& tokenizer_;
  std::vector<std::int32_t> ids_;
  std::size_t shown_ = 0;
  bool terminal_ = isatty(STDOUT_FILENO) == 1;
};

std::string summary(const GenerationPlan& plan, const Generation& made) {
  return plan.choice.name() + ": " + std::to_string(plan.prompt.size()) + " tokens of prompt" +
         (plan.bos < 0 ? "" : " with BOS") + ", " + std::to_string(plan.count) + " generated, " +
         std::to_string(made.compressions) + " compressions, " + human_bytes(static_cast<double>(made.end.stored)) +
         " cache at the end" +
         (plan.choice.shared_bytes() == 0
              ? ""
              : ", besides " + shared_bytes_text(plan.choice.shared_bytes(), plan.tokens()));
}

Json result_json(const GenerationPlan& plan, const Generation& made, const std::string& text, const Run& run) {
  std::size_t replaced = 0;
  Json result{{"method", plan.choice.name()},
              {"parameters", plan.choice.given()},
              {"bos", bos_json(plan.bos)},
              {"prompt_ids", plan.prompt},
              {"ids", made.ids},
              {"text", replace_invalid_utf8(text, replaced)},
              {"bytes_end", made.end.stored},
              {"bytes_allocated", made.end.used + made.end.spare},
              {"compressions", made.compressions},
              {"prefill_tokens_per_second", per_second(plan.prompt.size(), made.prefill_seconds)},
              {"decode_tokens_per_second", per_second(plan.count - 1, made.decode_seconds)},
              {"dtype", name_of(run.backend().compute_type())},
              {"model", model_json(run.config(), run.model().sha256(), plan.tokens())},
              {"command", run.options().command()},
              {"tool_version", kToolVersion}};
  if (plan.choice.shared_bytes() > 0) result["shared_bytes"] = plan.choice.shared_bytes();
  result.update(digests_of_configs(run.options()));
  return result;
}

}  // namespace

void run_generate(Arguments arguments) {
  const auto options = generate_options().parse(arguments, std::cout);
  if (!options) return;
  check_prompt(*options);
  Run run(*options);
  run.open_model();
  CacheChoice choice = choose_cache(*options, run.model(), &kFullMethod);
  const auto tokenizer = load_tokenizer(run.model(), run.settings());
  const GenerationPlan plan = make_plan(*options, std::move(choice), *tokenizer);
  run.load();
  Cache cache = cache_maker(plan.choice, run.session(), plan.tokens())();
  TextStream stream(*tokenizer);
  const bool json = run.settings().json;
  const Generation made = generate(run.decoder(), cache, plan.prompt, plan.count, [&](std::int32_t id) {
    if (!json) stream.add(id);
    return true;
  });
  const std::string text = tokenizer->decode(made.ids);
  if (json) return run.print(result_json(plan, made, text, run), "");
  stream.end(text);
  print_note(summary(plan, made), run.quiet());
}

}  // namespace kvs
