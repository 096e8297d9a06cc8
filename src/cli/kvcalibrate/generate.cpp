// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cache_options.h"
#include "calibrate/method_help.h"
#include "cli/kvcalibrate/commands.h"
#include "core/error.h"
#include "eval/generation.h"
#include "run/progress.h"
#include "run/run.h"
#include "run/text_stream.h"
#include "texts/text_source.h"

namespace kvs::inline cli {
namespace {

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

std::vector<std::int32_t> prompt_ids(const Options& options, const Tokenizer& tokenizer, std::int32_t bos) {
  std::vector<std::int32_t> ids = tokenizer.encode(options.text("prompt"));
  begin_with(bos, ids);
  if (ids.empty()) throw Error(ErrorCode::kUsage, "--prompt", "found no token, expected a text");
  return ids;
}

void run_generate(const Options& options) {
  Run run(options);
  run.open_model();
  const CacheChoice choice = choose_cache(options, run.model(), &kFullMethod);
  const auto tokenizer = load_tokenizer(run.model(), run.settings());
  const std::int32_t bos = chosen_bos(*tokenizer, bos_choice(options));
  const std::vector<std::int32_t> prompt = prompt_ids(options, *tokenizer, bos);
  const std::size_t count = options.count("max-new-tokens"), tokens = prompt.size() + count;
  run.load();
  Cache cache = cache_maker(choice, run.backend(), run.config(), tokens)();
  TextStream stream(*tokenizer);
  const bool json = run.settings().json;
  const Generation made = generate(run.decoder(), cache, prompt, count, [&](std::int32_t id) {
    if (!json) stream.add(id);
    return true;
  });
  const std::string text = tokenizer->decode(made.ids);
  std::size_t replaced = 0;
  GenerationResult result{.method = choice.name(),
                          .parameters = choice.given(),
                          .bos = bos < 0 ? std::nullopt : std::optional(bos),
                          .text = replace_invalid_utf8(text, replaced),
                          .shared_bytes = choice.shown_shared_bytes()};
  add_generation(made, prompt, result);
  run.describe(result, tokens);
  if (json) return run.print(to_json(result), "");
  stream.end(text);
  print_note(to_text(result), run.quiet());
}

}  // namespace

const Subcommand kGenerateCommand{"generate", generate_options, run_generate};

}  // namespace kvs::inline cli
