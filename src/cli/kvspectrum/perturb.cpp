#include <array>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "analyzers/perturbation.h"
#include "analyzers/perturbation_report.h"
#include "cli/common/estimate.h"
#include "cli/common/outputs.h"
#include "cli/common/progress.h"
#include "cli/common/session.h"
#include "cli/kvspectrum/commands.h"
#include "core/error.h"
#include "io/file.h"
#include "model/model_json.h"
#include "states/live_source.h"
#include "texts/perturbed_document.h"
#include "texts/wordnet.h"
#include "version.h"

namespace kvs {
namespace {

constexpr std::size_t kSpareShare = 16;  // of a window: what a perturbed version may lose without being too short

OptionTable perturb_options() {
  OptionTable table("kvspectrum perturb --model PATH --text PATH --out FILE [options]",
                    "How much a few synonyms change the low and the high frequencies of keys and values: each document "
                    "is run twice, as it is and with some of its words replaced.",
                    {"kvspectrum perturb --model SmolLM2.gguf --text book.txt --documents 100 --out perturb.json"});
  table.value("out", "FILE", "the JSON result; the figure goes beside it")
      .required()
      .value("share", "SHARE", "of the words, replaced by synonyms", "0.01")
      .value("tokens", "N", "both versions are cut to so many (default: 15/16 of --window)")
      .from(4)
      .value("layers", "LAYERS", "such as 0,14-16", "all")
      .value("wordnet", "DIR", "WordNet's database", WordNet::kDebianFolder);
  add_model_options(table);
  add_text_options(table);
  add_run_options(table, true);
  add_seed_option(table, "of the words and synonyms that are drawn");
  table.check([](const Options& options) {
    refuse_options(options, std::array<std::string_view, 1>{"tokens-file"}, "words to replace");
    if (options.has("tokens")) (void)options.integer("tokens", 4, options.integer("window", 4, 1 << 24));
  });
  return table;
}

PerturbationPlan make_plan(const Options& options, const RunOptions& run, const Corpus& corpus) {
  const std::size_t window = corpus.documents.front().tokens.size();
  PerturbationPlan plan;
  plan.share = options.share("share");
  plan.tokens = window - window / kSpareShare;
  if (options.has("tokens"))
    plan.tokens = static_cast<std::size_t>(options.integer("tokens", 4, static_cast<std::int64_t>(window)));
  plan.bos = corpus.bos;
  plan.seed = static_cast<std::uint64_t>(run.seed);
  return plan;
}

/// The documents' usable versions, one list each, with what is known of them before any pass.
struct Versions {
  std::vector<std::vector<std::int32_t>> original, perturbed;
  std::vector<PerturbedDocument> documents;
  std::size_t left_out = 0;
};

Versions make_versions(const Corpus& corpus, const Tokenizer& tokenizer, const PerturbationPlan& plan,
                       const WordNet& wordnet) {
  const Synonyms synonyms = [&](std::string_view word) { return wordnet.synonyms(word); };
  Versions versions;
  for (std::size_t n = 0; n < corpus.documents.size(); ++n) {
    DocumentVersions document = perturb_document(tokenizer, corpus.documents[n].tokens, n, plan, synonyms);
    if (!document.usable(plan)) {
      ++versions.left_out;
      continue;
    }
    versions.original.push_back(std::move(document.original));
    versions.perturbed.push_back(std::move(document.perturbed));
    versions.documents.push_back({document.replaced, document.same_count, {}});
  }
  if (versions.documents.empty())
    throw Error(ErrorCode::kData, "--text",
                "found no document in which a synonym fits before token " + std::to_string(plan.tokens) +
                    ", expected English text; all " + std::to_string(versions.left_out) + " were left out");
  return versions;
}

void compare(Versions& versions, Decoder& decoder, const std::vector<std::size_t>& layers, Journal& journal,
             const RunOptions& run) {
  const auto ops = make_spectral_ops(decoder.model().backend());
  LiveSource original(decoder, versions.original), perturbed(decoder, versions.perturbed);
  Progress progress("perturb", static_cast<double>(versions.documents.size()), run.quiet);
  for (std::size_t n = 0; n < versions.documents.size(); ++n) {
    PerturbedDocument& document = versions.documents[n];
    progress.update(static_cast<double>(n));
    if (n < journal.records().size()) {
      document = perturbed_document_from(journal.record(n), document, layers.size());
      continue;
    }
    document.layers = compare_versions(*ops, original, perturbed, n, layers);
    journal.append(perturbed_document_json(document));
  }
}

std::string heading(const ModelConfig& model, const PerturbationPlan& plan, std::size_t documents) {
  std::ostringstream text;
  text << model.name << " · " << 100 * plan.share << " % of words replaced by synonyms · " << documents << " × "
       << plan.tokens << " tokens";
  return text.str();
}

}  // namespace

void run_perturb(Arguments arguments) {
  const auto options = perturb_options().parse(arguments, std::cout);
  if (!options) return;
  const RunOptions run = run_options(*options);
  const std::filesystem::path out = options->text("out");
  check_outputs(out, figure_paths(out, ""), *options, run);
  const OutputLock lock(out, run.lock, figure_paths(out, ""));
  const WordNet wordnet(options->text("wordnet"));
  auto source = open_model(*options);
  const Corpus corpus = load_corpus(*options, run, *source);
  Json identity = run_identity(*options, *source, corpus);
  identity["wordnet_sha256"] = wordnet.sha256();
  if (is_finished(
          out, out, run, [&](const Json& json) { return is_of_run(json, "", *options, identity); },
          [&](const Json&) { return figure_paths(out, ""); }))
    return print_result(run, parse_json(read_text_file(out, std::size_t{1} << 30), out.string()),
                        out.string() + ": finished before\n");
  const std::size_t window = corpus.documents.front().tokens.size();
  const PerturbationPlan plan = make_plan(*options, run, corpus);
  const auto layers = options->indices("layers", source->config().layers);
  Versions versions = make_versions(corpus, *source->load_tokenizer(), plan, wordnet);
  if (versions.left_out > 0)
    remark("note: left out " + std::to_string(versions.left_out) + " of " + std::to_string(corpus.documents.size()) +
               " documents: no word to replace, or fewer than " + std::to_string(plan.tokens) + " tokens afterwards",
           run.quiet);
  check_journal(out, run);
  ModelSession session = load_model(std::move(source), *options, run);
  Journal journal = open_journal(out, identity, run);
  announce({.flops = 2 * static_cast<double>(versions.documents.size()) *
                     forward_flops(session.config(), static_cast<double>(plan.tokens)),
            .memory_bytes = session_memory(session, plan.tokens)},
           *session.backend, run);
  compare(versions, *session.decoder, layers, journal, run);

  const Provenance record = provenance(*options, run, corpus);
  Json result{{"format", "kvspectrum-perturbation"},
              {"version", 1},
              {"model", model_json(session.config(), session.source->sha256(), plan.tokens)},
              {"command", record.command},
              {"tool_version", record.tool_version},
              {"text_sha256", record.text_sha256},
              {"bos", bos_json(corpus.bos)},
              {"wordnet_sha256", wordnet.sha256()},
              {"seed", run.seed},
              {"share", plan.share},
              {"window", window},
              {"tokens", plan.tokens},
              {"layers", layers}};
  result.update(perturbation_json(versions.documents));
  result["documents"]["left_out"] = versions.left_out;
  write_outputs(out, result, run, [&] {
    return RunFigures{{"", perturbation_chart(heading(session.config(), plan, versions.documents.size()), layers,
                                              versions.documents)}};
  });
  journal.remove();
  print_result(run, result, perturbation_summary(versions.documents));
}

}  // namespace kvs
