// SPDX-License-Identifier: Apache-2.0
#include "run/trace_input.h"

#include <algorithm>
#include <cstdint>

#include "core/error.h"
#include "io/digest.h"
#include "io/file.h"
#include "model/conversation.h"
#include "tasks/prompt_file.h"

namespace kvs::inline run {
namespace {

constexpr std::size_t kMostTraceBytes = std::size_t{1} << 30;

TraceSettings settings_of(const Run& run) {
  const Options& options = run.options();
  std::string error;
  const auto tokenizer = find_tokenizer(run.model(), error);
  TraceSettings settings{.tokens = options.count("trace"), .end_tokens = end_tokens_of(run.model(), tokenizer.get())};
  if (!options.has("temperature")) return settings;
  settings.temperature = options.real("temperature");
  settings.seed = static_cast<std::uint64_t>(run.settings().seed);
  return settings;
}

ChatFormat chat_format(const ModelSource& model, const Tokenizer& tokenizer) {
  const std::string bos = tokenizer.bos() < 0 ? "" : tokenizer.decode({tokenizer.bos()});
  return ChatFormat::of_template(chat_template_of(model), model.path().string() + ": chat template", bos);
}

/// Reads --prompts.
void read_prompt_file(const Run& run, TraceInput& input) {
  const Options& options = run.options();
  const auto tokenizer = load_tokenizer(run.model(), run.settings());
  std::optional<ChatFormat> chat;
  if (options.flag("chat")) {
    chat = chat_format(run.model(), *tokenizer);
    input.record.chat = chat->name();
  }
  // A chat template writes the begin-of-sequence token by itself.
  const std::int32_t bos = chat ? -1 : chosen_bos(*tokenizer, bos_choice(options));
  PromptFile file = read_prompts(options.text("prompts"), *tokenizer, chat ? &*chat : nullptr, bos);
  input.prompts = std::move(file.prompts);
  input.record.text_sha256 = {std::move(file.sha256)};
  if (!chat) input.record.bos = bos_record(bos);
}

/// Uses the windows of the texts as prompts.
void read_text_prompts(Run& run, TraceInput& input) {
  run.read_texts();
  input.prompts = run.documents();
  input.record.text_sha256 = run.corpus().text_sha256;
  input.record.bos = bos_record(run.corpus().bos);
}

void check_ids(const JsonCursor& list, const TokenIds& ids, std::size_t vocabulary) {
  for (std::size_t n = 0; n < ids.size(); ++n)
    if (ids[n] < 0 || static_cast<std::size_t>(ids[n]) >= vocabulary)
      list.at(n).fail("an id from 0 to " + std::to_string(vocabulary - 1));
}

/// Reads --trace-from.
void read_traces(const Run& run, TraceInput& input) {
  const std::string& path = run.options().text("trace-from");
  const Json json = parse_json(read_text_file(path, kMostTraceBytes), path);
  const JsonCursor root(json, path);
  auto file = from_json<TraceFile>(root);
  if (file.model.sha256 != run.model().sha256())
    throw Error(ErrorCode::kConflict, path + ": /model/sha256",
                "found " + file.model.sha256 + " (" + file.model.name + "), expected " + run.model().sha256() +
                    " of the model");
  const std::size_t vocabulary = run.config().vocabulary;
  for (std::size_t n = 0; n < file.traces.size(); ++n) {
    Trace& trace = file.traces[n];
    const JsonCursor at = root.at("traces").at(n);
    check_ids(at.at("prompt"), trace.prompt, vocabulary);
    check_ids(at.at("ids"), trace.ids, vocabulary);
    input.prompts.push_back(std::move(trace.prompt));
    input.traces.push_back({std::move(trace.ids), trace.ended});
  }
  input.settings = std::move(file.settings);
  input.record = std::move(file.prompts);
  if (const std::string digest = digest_of_lists(input.prompts); digest != input.record.prompts_sha256)
    root.at("prompts_sha256").fail(digest + ", that of its prompts");
}

/// Refuses a file of traces whose prompts are not those of --prompts or of the texts.
void check_same_prompts(const Run& run, const TraceInput& wanted, const TraceInput& found) {
  const std::string digest = digest_of_lists(wanted.prompts);
  if (digest != found.record.prompts_sha256)
    throw Error(ErrorCode::kConflict, run.options().text("trace-from") + ": /prompts_sha256",
                "found " + found.record.prompts_sha256 + ", expected " + digest + ", that of the command's prompts");
}

void set_identity(Run& run, const TraceInput& input) {
  if (run.identity().is_null() || !input.traces.empty()) run.identify(input.record.text_sha256);
  run.identity()["prompts_sha256"] = input.record.prompts_sha256;
  run.identity()["documents"] = input.prompts.size();
  if (!input.traces.empty()) run.identity()["trace_sha256"] = digest_of_traces(input.traces);
}

}  // namespace

std::string digest_of_lists(std::span<const TokenIds> lists) {
  Sha256 digest;
  for (const TokenIds& ids : lists) {
    const std::uint64_t count = ids.size();
    digest.update(std::as_bytes(std::span(&count, 1)));
    digest.update(std::as_bytes(std::span(ids)));
  }
  return digest.finish();
}

std::string digest_of_traces(std::span<const Continuation> traces) {
  std::vector<TokenIds> lists;
  lists.reserve(traces.size());
  for (const Continuation& trace : traces) lists.push_back(trace.ids);
  return digest_of_lists(lists);
}

TraceInput read_trace_input(Run& run) {
  const Options& options = run.options();
  const bool reused = options.has("trace-from");
  TraceInput input;
  if (options.has("prompts"))
    read_prompt_file(run, input);
  else if (!reused || options.has("text") || options.has("tokens-file"))
    read_text_prompts(run, input);
  if (reused) {
    TraceInput found;
    read_traces(run, found);
    if (!input.prompts.empty()) check_same_prompts(run, input, found);
    input = std::move(found);
  } else {
    input.record.prompts_sha256 = digest_of_lists(input.prompts);
    input.settings = settings_of(run);
  }
  for (const TokenIds& prompt : input.prompts) input.longest = std::max(input.longest, prompt.size());
  if (run.config().exceeds_context(input.length()))
    run.note("prompts and traces of " + std::to_string(input.length()) +
             " tokens are longer than the model's context of " + std::to_string(run.config().context));
  set_identity(run, input);
  return input;
}

}  // namespace kvs::inline run
