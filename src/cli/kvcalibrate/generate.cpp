#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "calibrate/config/config.h"
#include "cli/common/outputs.h"
#include "cli/common/progress.h"
#include "cli/kvcalibrate/cache_choice.h"
#include "cli/kvcalibrate/commands.h"
#include "core/error.h"
#include "core/utf8.h"
#include "eval/evaluation_report.h"
#include "eval/generation.h"
#include "io/finite.h"
#include "model/model_json.h"
#include "texts/text_source.h"
#include "version.h"

namespace kvs {
namespace {

constexpr std::int64_t kMostTokens = 1 << 24;
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
      .from(1, kMostTokens)
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

}  // namespace

void run_generate(Arguments arguments) {
  const auto options = generate_options().parse(arguments, std::cout);
  if (!options) return;
  const RunOptions run = run_options(*options);
  const auto count = static_cast<std::size_t>(options->integer("tokens", 1, kMostTokens));
  check_prompt(*options);
  auto source = open_model(*options);
  const CacheChoice choice = choose_cache(*options, *source, &kFullMethod);
  const auto tokenizer = load_tokenizer(*source, run);
  const std::int32_t bos = chosen_bos(*tokenizer, bos_choice(*options));
  const std::vector<std::int32_t> prompt = prompt_ids(*options, *tokenizer, bos);
  const ModelSession session = load_model(std::move(source), *options, run);
  Cache cache = cache_maker(choice, session, prompt.size() + count)();
  // Text is shown as it comes, but for the bytes of a character that is not whole yet.
  std::vector<std::int32_t> ids;
  std::size_t shown = 0;
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  const auto print = [&](std::string_view piece) {
    std::cout << (terminal ? printable_text(piece) : std::string(piece)) << std::flush;
  };
  const auto show = [&](std::int32_t id) {
    ids.push_back(id);
    const std::string text = tokenizer->decode(ids);
    const std::size_t whole = std::min(find_invalid_utf8(text), text.size());
    if (run.json || whole <= shown) return true;
    print(std::string_view(text).substr(shown, whole - shown));
    shown = whole;
    return true;
  };
  const Generation made = generate(*session.decoder, cache, prompt, count, show);
  const std::string text = tokenizer->decode(made.ids);
  const std::size_t shared = choice.shared_bytes();
  if (!run.json) {
    print(std::string_view(text).substr(shown));
    print("\n");
    remark(choice.name() + ": " + std::to_string(prompt.size()) + " tokens of prompt" + (bos < 0 ? "" : " with BOS") +
               ", " + std::to_string(count) + " generated, " + std::to_string(made.compressions) + " compressions, " +
               human_bytes(static_cast<double>(made.end.stored)) + " cache at the end" +
               (shared == 0 ? "" : ", besides " + shared_bytes_text(shared, prompt.size() + count)),
           run.quiet);
    return;
  }
  std::size_t replaced = 0;
  Json result{{"method", choice.name()},
              {"parameters", choice.given()},
              {"bos", bos_json(bos)},
              {"prompt_ids", prompt},
              {"ids", made.ids},
              {"text", replace_invalid_utf8(text, replaced)},
              {"bytes_end", made.end.stored},
              {"bytes_allocated", made.end.used + made.end.spare},
              {"compressions", made.compressions},
              {"prefill_tokens_per_second", per_second(prompt.size(), made.prefill_seconds)},
              {"decode_tokens_per_second", per_second(count - 1, made.decode_seconds)},
              {"dtype", name_of(session.backend->compute_type())},
              {"model", model_json(session.config(), session.source->sha256(), prompt.size() + count)},
              {"command", options->command()},
              {"tool_version", kToolVersion}};
  if (shared > 0) result["shared_bytes"] = shared;
  result.update(digests_of_configs(*options));
  print_result(run, result, "");
}

}  // namespace kvs
