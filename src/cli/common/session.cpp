#include "cli/common/session.h"

#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "cli/common/interruption.h"
#include "cli/common/progress.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/processor_quota.h"
#include "io/checkpoint.h"
#include "io/digest.h"
#include "kernels/instruction_set.h"
#include "kernels/libraries.h"
#include "model/config_json.h"
#include "tokenizer/tokenizer_digest.h"
#include "version.h"

namespace kvs {
namespace {

constexpr std::int64_t kMostWindow = 1 << 24, kMostThreads = 4096, kMostDocuments = std::int64_t{1} << 40;

/// "500MiB", "24GiB" or bytes.
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

/// Without --threads: OMP_NUM_THREADS, else the processors for this process. Of a rank beside others only the latter.
int standard_threads() {
  const char* const wanted = std::getenv("OMP_NUM_THREADS");
  const bool heeded = wanted != nullptr && std::strtol(wanted, nullptr, 10) > 0;
  if (program_launch().alone() && heeded) return omp_get_max_threads();
  const auto online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  // OMP_PROC_BIND leaves this thread one processor alone: OpenMP knows how many there were before.
  return own_processors(program_launch(),
                        {.online = online, .usable = omp_get_num_procs(), .quota = processor_quota()});
}

/// The threads that every parallel region has from here on.
int chosen_threads(const Options& options) {
  static const int standard = standard_threads();
  const int threads = options.has("threads") ? static_cast<int>(options.integer("threads", 1, kMostThreads)) : standard;
  omp_set_num_threads(threads);
  return threads;
}

/// --threads is a wish that the OpenMP environment may not grant.
void note_fewer_threads(const Options& options, bool quiet) {
  if (!options.has("threads")) return;
  const std::int64_t wanted = options.integer("threads", 1, kMostThreads);
  if (omp_get_max_threads() < wanted)
    remark("note: --threads " + std::to_string(wanted) + ": the environment (OMP_THREAD_LIMIT) leaves " +
               std::to_string(omp_get_max_threads()),
           quiet);
}

void warn_of_streaming(const WeightPlacement& placement, std::size_t layers, bool quiet) {
  if (placement.streamed_layers == 0) return;
  const double bytes = static_cast<double>(placement.streamed_layers) * static_cast<double>(placement.layer_bytes);
  remark("warning: there is no room for all weights: " + std::to_string(placement.streamed_layers) + " of " +
             std::to_string(layers) + " layers are read again in every pass, " + human_bytes(bytes) + " at " +
             human_bytes(bytes / placement.seconds_per_pass()) + "/s: about " +
             human_seconds(placement.seconds_per_pass()) + " a pass",
         quiet);
}

/// That there is one source of tokens, unless a command can do without.
void check_text_options(const Options& options) {
  const bool tokens = options.has("tokens-file");
  if (options.has("invalid-utf8")) (void)options.choice("invalid-utf8", std::array<std::string_view, 1>{"replace"});
  if (tokens) refuse_options(options, std::array<std::string_view, 2>{"text", "invalid-utf8"}, "--tokens-file");
  if (std::ranges::count(options.list("text"), "-") > 1) throw Error(ErrorCode::kUsage, "--text", "found - twice");
  if (!tokens && !options.has("text") && !options.has("capture") && !options.has("task")) miss_option("text", "PATH");
}

Json common_identity(const Options& options, const std::string& model_sha256, const Corpus& corpus) {
  Json identity{{"tool_version", kToolVersion},
                {"options", options.result_options()},
                {"instruction_set", name_of(instruction_set())},
                {"libraries", {{"products", product_library()}, {"functions", function_library()}}},
                {"model_sha256", model_sha256},
                {"text_sha256", corpus.text_sha256},
                {"tokens", digest_of_tokens(corpus)},
                {"documents", corpus.documents.size()}};
  if (!corpus.documents.empty()) identity["bos"] = bos_json(corpus.bos);
  identity.update(digests_of_configs(options));
  return identity;
}

void remark_notes(const Tokenizer& tokenizer, bool quiet) {
  for (const std::string& note : tokenizer.notes()) remark("note: " + note, quiet);
}

/// @return nullptr if none is needed. A file of tokens may belong to a tokenizer that cannot be read: nothing says then
/// what its windows begin with.
std::unique_ptr<Tokenizer> tokenizer_of(const ModelSource& model, bool has_tokens, BosChoice bos, bool quiet) {
  if (has_tokens && bos == BosChoice::kOff) return nullptr;
  if (!has_tokens || bos == BosChoice::kOn) return model.load_tokenizer();
  try {
    return model.load_tokenizer();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInput && error.code() != ErrorCode::kUnsupported) throw;
    remark("note: no begin-of-sequence token goes before the windows of --tokens-file: " + std::string(error.what()),
           quiet);
    return nullptr;
  }
}

}  // namespace

void add_model_options(OptionTable& table) {
  table.group("Model")
      .value("model", "PATH", "GGUF file, or folder with config.json and safetensors")
      .value("device", "cpu|cuda|auto", "auto: cuda if there is one", "cpu")
      .value("dtype", "f32|bf16",
             std::string("the type of weights and matrix products; bf16 takes half of the memory and is ") +
                 (has_bf16_products() ? "faster on this processor" : "no faster on this processor"),
             "f32")
      .value("threads", "N", "processor threads (default: all that this process may use)")
      .from(1, kMostThreads)
      .value("weights-budget", "SIZE",
             "memory of the device for weights, such as 24GiB; what exceeds it is read from disk in every pass "
             "(default: most of a GPU's free memory, no limit on the CPU)")
      .check([](const Options& options) {
        if (!options.has("model") && !options.has("capture")) miss_option("model", "PATH");
        (void)weights_budget(options);
      });
}

BosChoice bos_choice(const Options& options) {
  static constexpr std::string_view kChoices[] = {"auto", "on", "off"};
  const std::string& choice = options.choice("bos", kChoices);
  return choice == "auto" ? BosChoice::kAuto : choice == "on" ? BosChoice::kOn : BosChoice::kOff;
}

Json bos_json(std::int32_t bos) { return bos < 0 ? Json() : Json(bos); }

void refuse_standard_input(const Options& options, const std::string& reader) {
  if (std::ranges::count(options.list("text"), "-") > 0)
    throw Error(ErrorCode::kUsage, "--text", "found -, expected files: " + reader + " reads the text a second time");
}

TextLeniency text_leniency(const Options& options) {
  return {.replace_invalid_utf8 = options.has("invalid-utf8"), .skip_bad_lines = options.flag("skip-bad-lines")};
}

void remark_leniency(std::size_t replaced_bytes, std::size_t skipped_lines, bool quiet) {
  if (replaced_bytes > 0) remark("text: replaced " + std::to_string(replaced_bytes) + " bytes of invalid UTF-8", quiet);
  if (skipped_lines > 0) remark("text: skipped " + std::to_string(skipped_lines) + " bad lines", quiet);
}

void add_text_options(OptionTable& table) {
  table.group("Text")
      .list("text", "PATH", "text file, folder, *.jsonl with a `text` field, or - ; may repeat")
      .value("tokens-file", "FILE", "instead of --text: one JSON array of token ids per line")
      .value("window", "T", "tokens per document; a text is cut into consecutive windows", "1024")
      .from(2, kMostWindow)
      .value("documents", "N", "at most so many documents in all (default: all)")
      .from(1, kMostDocuments)
      .value("windows", "A:B", "of each text its windows A to B-1; negative counts from its end (default: all)")
      .value("bos", "auto|on|off", kBosHelp, "auto")
      .value("invalid-utf8", "replace", "replace invalid UTF-8 by U+FFFD and count it, instead of stopping")
      .flag("skip-bad-lines", "skip and count malformed JSONL lines, instead of stopping")
      .check(check_text_options);
}

void add_seed_option(OptionTable& table, const std::string& help) { table.value("seed", "N", help, "0").from(0); }

void add_report_options(OptionTable& table) {
  table.group("Run").flag("quiet", "nothing on stderr but errors").flag("json", "print the result as JSON on stdout");
}

void add_run_options(OptionTable& table, bool resumable) {
  add_report_options(table);
  table.flag("force", "replace outputs that exist")
      .flag("no-lock", "do not lock the output (file systems without locks)");
  if (resumable) table.flag("resume", "go on with an interrupted run; needs the same options");
  table.check([](const Options& options) {
    if (options.flag("force")) refuse_options(options, std::array<std::string_view, 1>{"resume"}, "--force");
  });
}

RunOptions run_options(const Options& options) {
  note_command(options);
  RunOptions run;
  run.force = options.flag("force");
  run.resume = options.flag("resume");
  run.quiet = options.flag("quiet") || !run.leads();
  run.json = options.flag("json");
  run.lock = !options.flag("no-lock") && run.leads();
  if (options.has("seed")) run.seed = options.integer("seed", 0, std::numeric_limits<std::int64_t>::max());
  return run;
}

namespace {

/// Says what a config of other weights leaves open.
void note_other_weights(const std::filesystem::path& path, const ModelSource& model, bool quiet) {
  const Json config = read_config(path);
  if (config.at("model").at("sha256") == model.sha256()) return;
  remark("note: " + path.string() + " was made for other weights, those of " +
             config.at("model").at("name").get<std::string>() + ": what it says of quality is not measured on these",
         quiet);
  if (!config.at("calibration").contains("tokenizer_sha256"))
    remark("note: " + path.string() + " does not say which tokenizer it was made with, so that this is not compared",
           quiet);
}

}  // namespace

std::unique_ptr<ModelSource> open_model(const Options& options) {
  chosen_threads(options);  // weights are read before there is a backend
  auto source = ModelSource::open(options.text("model"));
  if (options.flag("other-weights")) {
    source->take_other_weights();
    const bool quiet = options.flag("quiet") || !program_ranks().leads();
    for (const std::string name : {"config", "costs"})
      for (const std::string& path : options.list(name)) note_other_weights(path, *source, quiet);
  }
  return source;
}

std::unique_ptr<Backend> open_backend(const Options& options) {
  const DType type = *dtype_from_name(options.text("dtype"));
  auto backend = make_backend(options.text("device"), type, chosen_threads(options));
  const bool quiet = options.flag("quiet") || !program_ranks().leads();
  backend->on_note([quiet](const std::string& line) { remark("note: " + line, quiet); });
  if (backend->device() == "cpu") note_fewer_threads(options, quiet);
  return backend;
}

void require_agreement(const RunOptions& run, const Json& identity, const Backend& backend) {
  if (run.ranks->alone()) return;
  Json own = identity;
  own["device"] = backend.device();
  own["dtype"] = name_of(backend.compute_type());
  own["threads"] = backend.device() == "cpu" ? omp_get_max_threads() : 0;
  const std::vector<Json> all = run.ranks->gather(own);
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != own)
      throw Error(ErrorCode::kConflict, run.ranks->name(rank),
                  "differs from rank 0: " + identity_differences(own, all[rank]));
  const Json& source = identity.contains("capture") ? identity.at("capture") : identity;
  const auto documents = source.at("documents").get<std::size_t>();
  if (documents < run.ranks->size())
    remark("note: " + std::to_string(run.ranks->size()) + " ranks share fewer documents (" + std::to_string(documents) +
               "): those that get none wait for the others",
           run.quiet);
}

ModelSession load_model(std::unique_ptr<ModelSource> source, const Options& options, const RunOptions& run) {
  ModelSession session;
  session.backend = open_backend(options);
  session.source = std::move(source);
  for (const std::string& note : session.source->notes()) remark("note: " + note, run.quiet);
  Progress progress("loading " + session.config().name, static_cast<double>(session.config().layers), run.quiet);
  session.model = std::make_unique<Model>(
      *session.source, *session.backend,
      [&](std::size_t done, std::size_t) { progress.update(static_cast<double>(done)); }, weights_budget(options));
  for (const std::string& name : session.model->zero_projections())
    remark("warning: " + name + ": all weights are zero", run.quiet);
  warn_of_streaming(session.model->placement(), session.config().layers, run.quiet);
  session.decoder = std::make_unique<Decoder>(*session.model);
  return session;
}

std::unique_ptr<Tokenizer> load_tokenizer(const ModelSource& model, const RunOptions& run) {
  std::unique_ptr<Tokenizer> tokenizer = model.load_tokenizer();
  remark_notes(*tokenizer, run.quiet);
  return tokenizer;
}

Corpus load_corpus(const Options& options, const RunOptions& run, const ModelSource& model,
                   const std::function<std::size_t(std::size_t)>& positions, const CorpusOptionNames& names) {
  CorpusOptions corpus;
  corpus.texts = options.list(names.text);
  if (options.has(names.tokens_file)) corpus.tokens_file = options.text(names.tokens_file);
  if (corpus.texts.empty() == !corpus.tokens_file)
    throw Error(ErrorCode::kUsage, "--" + names.text,
                std::string("found ") + (corpus.tokens_file ? "--tokens-file as well" : "nothing") +
                    ", expected either --text or --tokens-file");
  if (!run.ranks->alone() && std::ranges::find(corpus.texts, "-") != corpus.texts.end())
    throw Error(ErrorCode::kUsage, "--" + names.text, "found - with several ranks, expected files that each can read");
  corpus.window = static_cast<std::size_t>(options.integer(names.window, 2, kMostWindow));
  if (options.has(names.stride))
    corpus.stride =
        static_cast<std::size_t>(options.integer(names.stride, 1, static_cast<std::int64_t>(corpus.window) - 1));
  if (options.has(names.documents))
    corpus.documents = static_cast<std::size_t>(options.integer(names.documents, 1, kMostDocuments));
  if (options.has(names.windows))
    std::tie(corpus.windows_first, corpus.windows_last) = options.window_range(names.windows);
  corpus.leniency = text_leniency(options);

  const BosChoice bos = bos_choice(options);
  const auto tokenizer = tokenizer_of(model, corpus.tokens_file.has_value(), bos, run.quiet);
  if (tokenizer) {
    corpus.bos = chosen_bos(*tokenizer, bos);
    remark_notes(*tokenizer, run.quiet);
  }
  Corpus read = read_corpus(corpus, tokenizer.get(), model.config().vocabulary);
  if (tokenizer && !corpus.texts.empty()) read.tokenizer_sha256 = tokenizer_digest(*tokenizer);
  if (read.tokens_dropped > 0)
    remark("text: " + std::to_string(read.documents.size()) + " documents of " + std::to_string(corpus.window) +
               " tokens; " + std::to_string(read.tokens_dropped) + " of " + std::to_string(read.tokens_read) +
               " tokens left over at the ends of texts",
           run.quiet);
  if (read.bos >= 0 && names.windows == CorpusOptionNames().windows)
    remark("text: every window begins with the begin-of-sequence token, id " + std::to_string(read.bos) +
               ", one of its " + std::to_string(corpus.window) + " tokens (--bos)",
           run.quiet);
  remark_leniency(read.replaced_bytes, read.skipped_lines, run.quiet);
  if (read.repeated_texts > 0)
    remark("note: " + std::to_string(read.repeated_texts) + (read.repeated_texts == 1 ? " text has" : " texts have") +
               " the tokens of an earlier one: each text is read once",
           run.quiet);
  for (const std::string& name : read.json_like)
    remark("note: " + name + " begins like lines of JSON and is read as one text; expected the name *.jsonl for lines",
           run.quiet);
  if (model.config().exceeds_context(positions ? positions(corpus.window) : corpus.window))
    remark("text: windows of " + std::to_string(corpus.window) + " tokens are longer than the model's context of " +
               std::to_string(model.config().context),
           run.quiet);
  return read;
}

std::vector<std::size_t> captured_layers(const Options& options, std::span<const std::int32_t> stored) {
  std::vector<std::size_t> layers(stored.begin(), stored.end());
  if (options.text("layers") == "all") return layers;
  auto wanted = options.indices("layers", layers.back() + 1);
  for (const std::size_t layer : wanted)
    if (std::ranges::find(layers, layer) == layers.end())
      throw Error(ErrorCode::kUsage, "--layers",
                  "found " + std::to_string(layer) + ", expected layers that the capture holds");
  return wanted;
}

std::unique_ptr<CaptureSource> open_capture_source(CaptureReader& reader, Backend& backend, const Options& options,
                                                   const RunOptions& run) {
  if (!reader.has_checksums())
    remark("note: " + options.text("capture") +
               " has no manifest beside it, which holds its checksums: its data are not checked",
           run.quiet);
  auto source = std::make_unique<CaptureSource>(reader, backend, options.flag("skip-corrupt"));
  if (source->skipped() > 0)
    remark("note: left out " + std::to_string(source->skipped()) + " of " + std::to_string(reader.documents()) +
               " documents: their checksums do not match",
           run.quiet);
  return source;
}

std::vector<std::vector<std::int32_t>> tokens_of(const Corpus& corpus) {
  std::vector<std::vector<std::int32_t>> tokens;
  for (const Document& document : corpus.documents) tokens.push_back(document.tokens);
  return tokens;
}

std::vector<std::vector<std::int32_t>> documents_in_turn(const Corpus& corpus) {
  std::vector<std::pair<std::size_t, const Document*>> order;
  std::map<std::string, std::size_t> seen;
  for (const Document& document : corpus.documents) order.emplace_back(seen[document.source]++, &document);
  std::ranges::stable_sort(order, {}, &std::pair<std::size_t, const Document*>::first);
  std::vector<std::vector<std::int32_t>> documents;
  documents.reserve(order.size());
  for (const auto& [turn, document] : order) documents.push_back(document->tokens);
  return documents;
}

Json digests_of_configs(const Options& options) {
  Json digests = Json::object();
  const auto add = [&](const std::string& name, const std::vector<std::string>& found) {
    if (!found.empty()) digests[name + "_sha256"] = found.size() == 1 ? Json(found.front()) : Json(found);
  };
  for (const std::string name : {"config", "costs"}) {
    std::vector<std::string> files, models;
    for (const std::string& path : options.list(name)) {
      files.push_back(sha256_of_file(path));
      if (options.flag("other-weights"))
        models.push_back(read_config(path).at("model").at("sha256").get<std::string>());
    }
    add(name, files);
    add(name + "_model", models);
  }
  return digests;
}

void add_other_weights(OptionTable& table) {
  table.flag(
      "other-weights",
      "take a config of the same model's other weights, such as bf16 for a Q4 file: geometry, RoPE and tokenizer "
      "must be equal");
  table.check([](const Options& options) {
    const bool costs = options.takes("costs");
    require_partner(options, std::array<std::string_view, 1>{"other-weights"},
                    std::array<std::string_view, 1>{costs ? "costs" : "config"});
  });
}

void add_decompositions(Json& identity) { identity["libraries"]["decompositions"] = decomposition_library(); }

std::string digest_of_tokens(const Corpus& corpus) {
  Sha256 digest;
  for (const Document& document : corpus.documents) digest.update(std::as_bytes(std::span(document.tokens)));
  return digest.finish();
}

Json run_identity(const Options& options, const ModelSource& model, const Corpus& corpus) {
  Json identity = common_identity(options, model.sha256(), corpus);
  identity["model_config"] = config_json(model.config());
  return identity;
}

Json run_identity(const Options& options, CaptureReader& capture, const Corpus& corpus) {
  Json identity = common_identity(options, capture.header().model_sha256, corpus);
  identity["capture_sha256"] = capture.sha256();
  return identity;
}

Json texts_of_capture(const Options& options, const CaptureReader& capture) {
  Json texts = Json::object();
  if (!capture.identity().is_object()) return texts;
  const JsonCursor identity(capture.identity(), options.text("capture"), "/identity");
  if (identity.has("bos")) (void)identity.at("bos").unsigned_integer(std::numeric_limits<std::int32_t>::max());
  if (identity.has("tokenizer_sha256")) (void)identity.at("tokenizer_sha256").string();
  for (const char* name : {"bos", "tokenizer_sha256"})
    if (identity.value().contains(name)) texts[name] = identity.at(name).value();
  return texts;
}

Provenance provenance(const Options& options, const RunOptions& run, const Corpus& corpus) {
  Provenance record{
      options.command(),          kToolVersion, corpus.text_sha256, corpus.documents.size(), 0, 0, run.seed,
      digests_of_configs(options)};
  if (!corpus.tokenizer_sha256.empty()) record.inputs["tokenizer_sha256"] = corpus.tokenizer_sha256;
  if (!corpus.documents.empty()) record.window = corpus.documents.front().tokens.size();
  for (const Document& document : corpus.documents) record.tokens += document.tokens.size();
  if (!corpus.documents.empty()) record.bos = bos_json(corpus.bos);
  return record;
}

}  // namespace kvs
