// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "calibrate/cache_options.h"
#include "calibrate/method_help.h"
#include "cli/kvcalibrate/commands.h"
#include "core/error.h"
#include "core/utf8.h"
#include "eval/generation.h"
#include "io/finite.h"
#include "model/model_json.h"
#include "results/evaluation.h"
#include "results/generation.h"
#include "run/progress.h"
#include "run/run.h"
#include "run/text_stream.h"
#include "texts/text_source.h"
#include "version.h"

namespace kvs::inline cli {
namespace {

constexpr std::int64_t kMaxTokens = 1 << 24;
constexpr const char* kPromptBosHelp =
    "put the begin-of-sequence token before the prompt; auto: if the model's files ask for it";

OptionTable generate_options() {
  OptionTable table("kvcalibrate generate --model PATH --prompt TEXT [--config FILE | --method NAME …] [options]",
                    "Continues a prompt with the most probable tokens and a compressed cache. Generates exactly "
                    "--max-new-tokens tokens.\n" +
                        cache_method_lines(),
                    {"kvcalibrate generate --model SmolLM2.gguf --prompt 'Light is' --max-new-tokens 64",
                     "kvcalibrate generate --model SmolLM2.gguf --prompt 'Light is' --method freqkv --set "
                     "cache_size=32 --json"});
  table.value("prompt", "TEXT", "the text to continue; special tokens in it are parsed")
      .required()
      .value("max-new-tokens", "N", "tokens to generate", "64")
      .formerly("tokens")
      .from(1, kMaxTokens)
      .value("bos", "auto|on|off", kPromptBosHelp, "auto");
  add_cache_options(table, &kFullMethod);
  add_other_weights(table);
  add_model_options(table);
  add_report_options(table);
  return table;
}

/// @throws Error kUsage if --prompt is missing or is not valid UTF-8.
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

/// The prompt to continue, and the cache to use.
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
  plan.count = static_cast<std::size_t>(options.integer("max-new-tokens", 1, kMaxTokens));
  return plan;
}

std::string summary(const GenerationPlan& plan, const Generation& made) {
  return plan.choice.name() + ": " + std::to_string(plan.prompt.size()) + " tokens of prompt" +
         (plan.bos < 0 ? "" : " with BOS") + ", " + std::to_string(plan.count) + " generated, " +
         std::to_string(made.compressions) + " compressions, " + human_bytes(static_cast<double>(made.end.stored)) +
         " cache at the end" +
         (plan.choice.shared_bytes() == 0
              ? ""
              : ", besides " + shared_bytes_text(plan.choice.shared_bytes(), plan.tokens()));
}

GenerationResult result_of(const GenerationPlan& plan, const Generation& made, const std::string& text,
                           const Run& run) {
  const auto rate = [](std::size_t tokens, double seconds) {
    return tokens == 0 ? std::optional(0.0) : if_finite(static_cast<double>(tokens) / seconds);
  };
  std::size_t replaced = 0;
  GenerationResult result{.method = plan.choice.name(),
                          .parameters = plan.choice.given(),
                          .bos = plan.bos < 0 ? std::nullopt : std::optional(plan.bos),
                          .prompt_ids = plan.prompt,
                          .ids = made.ids,
                          .text = replace_invalid_utf8(text, replaced),
                          .bytes_end = made.end.stored,
                          .bytes_allocated = made.end.used + made.end.spare,
                          .compressions = made.compressions,
                          .prefill_tokens_per_second = rate(plan.prompt.size(), made.prefill_seconds),
                          .decode_tokens_per_second = rate(plan.count - 1, made.decode_seconds),
                          .dtype = std::string(name_of(run.backend().compute_type())),
                          .model = model_record(run.config(), run.model().sha256(), plan.tokens()),
                          .command = run.options().command(),
                          .tool_version = kToolVersion,
                          .inputs = run.input_digests()};
  if (plan.choice.shared_bytes() > 0) result.shared_bytes = plan.choice.shared_bytes();
  return result;
}

void run_generate(const Options& options) {
  check_prompt(options);
  Run run(options);
  run.open_model();
  CacheChoice choice = choose_cache(options, run.model(), &kFullMethod);
  const auto tokenizer = load_tokenizer(run.model(), run.settings());
  const GenerationPlan plan = make_plan(options, std::move(choice), *tokenizer);
  run.load();
  Cache cache = cache_maker(plan.choice, run.backend(), run.config(), plan.tokens())();
  TextStream stream(*tokenizer);
  const bool json = run.settings().json;
  const Generation made = generate(run.decoder(), cache, plan.prompt, plan.count, [&](std::int32_t id) {
    if (!json) stream.add(id);
    return true;
  });
  const std::string text = tokenizer->decode(made.ids);
  if (json) return run.print(to_json(result_of(plan, made, text, run)), "");
  stream.end(text);
  print_note(summary(plan, made), run.quiet());
}

}  // namespace

const Subcommand kGenerateCommand{"generate", generate_options, run_generate};

}  // namespace kvs::inline cli
