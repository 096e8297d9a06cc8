#include "calibrate/faedkv.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>

#include "cli/common/estimate.h"
#include "cli/common/outputs.h"
#include "cli/common/progress.h"
#include "cli/common/session.h"
#include "cli/kvcalibrate/commands.h"
#include "cli/kvcalibrate/faedkv_figures.h"
#include "core/error.h"
#include "eval/ablation.h"
#include "io/file.h"
#include "io/journal.h"

namespace kvs {
namespace {

OptionTable faedkv_options() {
  OptionTable table("kvcalibrate faedkv --model PATH --text PATH --out FILE [options]",
                    "Ablates each chunk of each layer's spectrum and keeps, per layer, those whose loss hurts most.",
                    {"kvcalibrate faedkv --model SmolLM2.gguf --text book.txt --documents 8 --out faedkv.json",
                     "kvcalibrate faedkv --model SmolLM2.gguf --text book.txt --protocol in-place --chunks 8 "
                     "--sweep 4,8,16,22 --dtype bf16 --out faedkv.json"});
  table.value("out", "FILE", "the config to write; figures go beside it")
      .value("layers", "LIST", "layers to ablate, such as 0,14-16", "all")
      .value("chunks", "C", "chunks that the spectrum is cut into", "22")
      .value("sweep", "LIST", "also ablate with these chunk counts and draw perplexity against them")
      .value("keep", "r", "share of the chunks to keep", "0.5")
      .value("protocol", "NAME", "continuation or in-place", "continuation")
      .value("prefix", "P", "continuation: tokens that are prefilled and ablated (default: 3/4 of the window)")
      .value("sinks", "S", "first tokens left alone (in-place ablates with 0)", "10")
      .value("recent", "R", "last tokens of the prefix left alone (in-place ablates with 0)", "50")
      .value("transform", "NAME", "dft or dct", "dft")
      .value("key-space", "NAME", "k_post or k_pre", "k_post")
      .value("spectrum", "NAME", "half or full (the paper's literal N bins)", "half");
  add_model_options(table);
  add_text_options(table);
  add_run_options(table, true);
  return table;
}

/// What the options say, once the window is known.
struct Plan {
  AblationSetup setup;
  ChunkGrid grid;                         // of the config
  std::vector<std::size_t> chunk_counts;  // all that are ablated, the config's first
  std::vector<std::size_t> layers;
  std::size_t prefix = 0, sinks = 0, recent = 0;  // of the config's parameters
  double keep = 0.5;

  ChunkGrid grid_of(std::size_t chunks) const {
    ChunkGrid other = grid;
    other.chunks = chunks;
    return other;
  }
};

Plan make_plan(const Options& options, const ModelConfig& model, std::size_t tokens) {
  static constexpr std::string_view kProtocols[] = {"continuation", "in-place"}, kTransforms[] = {"dft", "dct"},
                                    kSpaces[] = {"k_post", "k_pre"}, kSpectra[] = {"half", "full"};
  Plan plan;
  const auto most = static_cast<std::int64_t>(tokens);
  const bool continuation = options.choice("protocol", kProtocols) == "continuation";
  plan.sinks = static_cast<std::size_t>(options.integer("sinks", 0, most));
  plan.recent = static_cast<std::size_t>(options.integer("recent", 0, most));
  plan.prefix =
      options.has("prefix") ? static_cast<std::size_t>(options.integer("prefix", 1, most - 2)) : tokens * 3 / 4;
  if (continuation && plan.sinks + plan.recent >= plan.prefix)
    throw Error(ErrorCode::kUsage, "--prefix",
                "found " + std::to_string(plan.prefix) + " tokens, expected more than sinks and recent together, " +
                    std::to_string(plan.sinks + plan.recent));
  if (continuation && plan.prefix + 2 > tokens)
    throw Error(ErrorCode::kUsage, "--window",
                "found " + std::to_string(tokens) + " tokens with a prefix of " + std::to_string(plan.prefix) +
                    ", expected at least 2 after the prefix: one is scored given the other");
  plan.setup = {continuation,
                tokens,
                plan.prefix,
                continuation ? plan.sinks : 0,
                continuation ? plan.recent : 0,
                options.choice("transform", kTransforms) == "dct" ? Transform::kDct : Transform::kDft,
                options.choice("key-space", kSpaces) == "k_pre"};
  plan.grid = {plan.setup.transform, options.choice("spectrum", kSpectra) == "full", 1, plan.setup.filtered()};
  const std::size_t bins = plan.grid.bins();
  plan.grid.chunks = static_cast<std::size_t>(options.integer("chunks", 1, static_cast<std::int64_t>(bins)));
  plan.chunk_counts = {plan.grid.chunks};
  if (options.has("sweep"))
    for (const std::size_t count : options.integers("sweep", 1, bins))
      if (std::ranges::find(plan.chunk_counts, count) == plan.chunk_counts.end()) plan.chunk_counts.push_back(count);
  plan.layers = options.indices("layers", model.layers);
  plan.keep = options.real("keep", 0, 1);
  return plan;
}

double ablation_flops(const Plan& plan, const ModelConfig& model) {
  const double scored = static_cast<double>(plan.setup.tokens - plan.setup.first_scored());
  const auto past = static_cast<double>(plan.setup.first_scored());
  double variants = 0;
  for (const std::size_t count : plan.chunk_counts) variants += static_cast<double>(count);
  double flops = forward_flops(model, static_cast<double>(plan.setup.tokens));
  for (const std::size_t layer : plan.layers)
    flops += variants *
             (static_cast<double>(model.layers - layer) * layer_flops(model, scored, past) + head_flops(model, scored));
  return flops;
}

/// The ablation's sums as the journal holds them: a unit is one document's layer under one chunk count, or its base.
class Units {
 public:
  explicit Units(const Journal& journal) {
    for (const Json& record : journal.records()) store(record);
  }
  bool has(std::size_t document, std::size_t layer, std::size_t chunks) const {
    return sums_.contains({document, layer, chunks});
  }
  /// True if a resumed run has nothing left to do for this document.
  bool complete(const Plan& plan, std::size_t document) const {
    for (const std::size_t layer : plan.layers)
      for (const std::size_t chunks : plan.chunk_counts)
        if (!has(document, layer, chunks)) return false;
    return has_base(document);
  }
  bool has_base(std::size_t document) const { return base_.contains(document); }
  void store(const Json& record) {
    const auto document = record.at("document").get<std::size_t>();
    if (record.contains("base")) {
      base_[document] = record.at("base").get<double>();
    } else {
      sums_[{document, record.at("layer").get<std::size_t>(), record.at("chunks").get<std::size_t>()}] =
          record.at("nll").get<std::vector<double>>();
    }
  }
  AblationSums collect(const Plan& plan, std::size_t chunks, std::size_t documents) const {
    AblationSums sums{plan.setup.scored(), {}, {}};
    for (std::size_t document = 0; document < documents; ++document) {
      sums.base.push_back(base_.at(document));
      auto& layers = sums.ablated.emplace_back();
      for (const std::size_t layer : plan.layers) layers.push_back(sums_.at({document, layer, chunks}));
    }
    return sums;
  }

 private:
  std::map<std::array<std::size_t, 3>, std::vector<double>> sums_;
  std::map<std::size_t, double> base_;
};

void ablate_document(AblationForward& forward, const Plan& plan, std::size_t document,
                     const std::vector<std::int32_t>& tokens, Units& units, Journal& journal,
                     const std::function<void()>& unit_done) {
  const auto record = [&](const Json& unit) {
    journal.append(unit);
    units.store(unit);
  };
  if (units.complete(plan, document)) {
    for (std::size_t n = 0; n < plan.layers.size() * plan.chunk_counts.size(); ++n) unit_done();
    return;
  }
  forward.begin(tokens);
  for (const std::size_t layer : plan.layers) {
    for (const std::size_t chunks : plan.chunk_counts) {
      if (!units.has(document, layer, chunks)) {
        const std::vector<double> gains = ablation_gains(plan.grid_of(chunks));
        const auto nll = forward.variants(layer, {gains, {chunks, gains.size() / chunks}});
        record({{"document", document}, {"layer", layer}, {"chunks", chunks}, {"nll", nll}});
      }
      unit_done();
    }
  }
  if (!units.has_base(document)) record({{"document", document}, {"base", forward.base()}});
}

/// Every unit that the journal does not hold yet.
Units ablate(AblationForward& forward, const Plan& plan, const std::vector<std::vector<std::int32_t>>& documents,
             Journal& journal, const RunOptions& run) {
  Units units(journal);
  std::size_t done = 0;
  Progress progress("faedkv", static_cast<double>(documents.size() * plan.layers.size() * plan.chunk_counts.size()),
                    run.quiet);
  for (std::size_t n = 0; n < documents.size(); ++n)
    ablate_document(forward, plan, n, documents[n], units, journal,
                    [&] { progress.update(static_cast<double>(++done)); });
  return units;
}

std::vector<std::vector<std::size_t>> choose_chunks(const AblationResult& result, double keep) {
  std::vector<std::vector<std::size_t>> kept;
  for (const auto& delta : result.delta) kept.push_back(most_important(delta, kept_count(keep, delta.size())));
  return kept;
}

/// For each chunk count, the perplexity of the documents with every layer cut down to its best chunks.
Json kept_perplexities(AblationForward& forward, const Plan& plan, const Units& units,
                       const std::vector<std::vector<std::int32_t>>& documents) {
  std::vector<std::vector<double>> gains;  // [chunk count][layer · bin]
  for (const std::size_t count : plan.chunk_counts) {
    auto& all = gains.emplace_back();
    const auto kept = choose_chunks(ablation_result(units.collect(plan, count, documents.size())), plan.keep);
    for (const auto& chunks : kept) {
      const auto row = gains_keeping(plan.grid_of(count), chunks);
      all.insert(all.end(), row.begin(), row.end());
    }
  }
  std::vector<double> nll(gains.size());
  for (const auto& tokens : documents) {
    forward.begin(tokens);
    for (std::size_t n = 0; n < gains.size(); ++n)
      nll[n] += forward.filtered(plan.layers, {gains[n], {plan.layers.size(), gains[n].size() / plan.layers.size()}});
  }
  Json points = Json::array();
  for (std::size_t n = 0; n < nll.size(); ++n)
    points.push_back({{"chunks", plan.chunk_counts[n]},
                      {"ppl", std::exp(nll[n] / static_cast<double>(plan.setup.scored() * documents.size()))}});
  return points;
}

Json interval_json(const AblationResult& result) {
  Json layers = Json::array();
  for (const auto& row : result.interval) {
    Json& chunks = layers.emplace_back(Json::array());
    for (const auto& interval : row)
      chunks.push_back(interval ? Json::array({interval->first, interval->second}) : Json());
  }
  return layers;
}

Json parameters_json(const Plan& plan, const std::vector<std::vector<std::size_t>>& kept) {
  return {{"layers", plan.layers},
          {"prefix", plan.prefix},
          {"sinks", plan.sinks},
          {"recent", plan.recent},
          {"chunks", plan.grid.chunks},
          {"kept", kept},
          {"transform", plan.setup.transform == Transform::kDct ? "dct" : "dft"},
          {"spectrum", plan.grid.full_spectrum ? "full" : "half"},
          {"key_space", plan.setup.before_rope ? "k_pre" : "k_post"},
          {"update", "corrected"},
          {"age", "off"}};
}

Json ablation_json(const Plan& plan, const AblationResult& result) {
  return {{"protocol", plan.setup.continuation ? "continuation" : "in-place"},
          {"key_space", plan.setup.before_rope ? "k_pre" : "k_post"},
          {"chunks", plan.grid.chunks},
          {"layers", plan.layers},
          {"scored_per_document", plan.setup.scored()},
          {"ppl_base", result.ppl_base},
          {"delta", result.delta},
          {"interval", interval_json(result)}};
}

std::string findings(const Plan& plan, const AblationResult& result, double ppl_kept) {
  struct Cell {
    double delta;
    std::size_t layer, chunk;
  };
  std::vector<Cell> cells;
  std::size_t harmless = 0;
  for (std::size_t n = 0; n < plan.layers.size(); ++n)
    for (std::size_t chunk = 0; chunk < plan.grid.chunks; ++chunk) {
      cells.push_back({result.delta[n][chunk], plan.layers[n], chunk});
      harmless += std::abs(result.delta[n][chunk]) < 0.001 ? 1 : 0;
    }
  std::ranges::sort(cells, std::greater{}, &Cell::delta);
  std::ostringstream text;
  text.precision(4);
  text << "faedkv: perplexity " << result.ppl_base << ", with the best " << kept_count(plan.keep, plan.grid.chunks)
       << " of " << plan.grid.chunks << " chunks per layer " << ppl_kept << " ("
       << (plan.setup.continuation ? "continuation" : "in-place") << ")\n  chunks that matter most:";
  for (std::size_t n = 0; n < std::min<std::size_t>(3, cells.size()); ++n)
    text << (n > 0 ? "," : "") << " layer " << cells[n].layer << " chunk " << cells[n].chunk << " (+"
         << 100 * cells[n].delta << " %)";
  text << "\n  chunks whose loss changes perplexity by less than 0.1 %: " << harmless << " of " << cells.size() << '\n';
  return text.str();
}

std::string heading(const Plan& plan, const ModelConfig& model, std::size_t documents) {
  return model.name + " · " + (plan.setup.continuation ? "continuation" : "in-place") + ", " +
         (plan.setup.before_rope ? "k_pre" : "k_post") + ", " +
         (plan.setup.transform == Transform::kDct ? "DCT" : "DFT") + " · " + std::to_string(documents) + " × " +
         std::to_string(plan.setup.tokens) + " tokens";
}

std::vector<std::filesystem::path> figure_files(const std::filesystem::path& out, bool sweep) {
  std::vector<std::filesystem::path> files;
  for (const char* suffix : {"_ablation", "_filtering", "_chunks"})
    if (sweep || std::string_view(suffix) != "_chunks")
      for (const auto& path : figure_paths(out, suffix)) files.push_back(path);
  return files;
}

}  // namespace

void run_faedkv(Arguments arguments) {
  const auto options = faedkv_options().parse(arguments, std::cout);
  if (!options) return;
  const RunOptions run = run_options(*options);
  const std::filesystem::path out = options->text("out");
  check_outputs(out, figure_files(out, options->has("sweep")), *options, run);
  const OutputLock lock(out, run.lock);
  auto source = open_model(*options);
  const Corpus corpus = load_corpus(*options, run, *source);
  const auto documents = tokens_of(corpus);
  const Plan plan = make_plan(*options, source->config(), documents.front().size());
  const Json identity = run_identity(*options, source->sha256(), corpus);
  check_journal(out, run);
  ModelSession session = load_model(std::move(source), *options, run);
  Journal journal = open_journal(out, identity, run);  // after loading, which may refuse the device or the weights
  announce({.flops = static_cast<double>(documents.size()) * ablation_flops(plan, session.config()),
            .memory_bytes = ablation_memory(session.config(), static_cast<double>(session.model->weight_bytes()),
                                            plan.setup.tokens),
            .disk_bytes = 0},
           *session.backend, run);

  const auto ops = make_spectral_ops(*session.backend);
  AblationForward forward(*session.decoder, *ops, plan.setup);
  const Units units = ablate(forward, plan, documents, journal, run);

  const AblationResult result = ablation_result(units.collect(plan, plan.grid.chunks, documents.size()));
  const auto kept = choose_chunks(result, plan.keep);
  const Json sweep = kept_perplexities(forward, plan, units, documents);
  Json calibration{{"ablation", ablation_json(plan, result)}};
  const double ppl_kept = sweep[0].at("ppl").get<double>();
  Json quality{
      {"text", "calibration documents"}, {"ppl_full", result.ppl_base}, {"ppl", ppl_kept}, {"keep", plan.keep}};
  if (sweep.size() > 1) quality["sweep"] = sweep;
  const Json config = make_config("faedkv", session.config(), session.source->sha256(), parameters_json(plan, kept),
                                  std::move(calibration), provenance(*options, run, corpus), std::move(quality), {});
  const std::size_t middle = plan.layers.size() / 2;
  FaedkvFigures figures{heading(plan, session.config(), documents.size()),
                        plan.layers,
                        result,
                        {},
                        documents.front(),
                        plan.layers[middle],
                        gains_keeping(plan.grid, kept[middle])};
  for (const Json& point : sweep)
    figures.sweep.emplace_back(point.at("chunks").get<std::size_t>(), point.at("ppl").get<double>());
  write_faedkv_figures(out, figures, plan.setup, *session.decoder, *ops, run);
  write_file_atomically(out, dump_json(config) + "\n", run.force);
  journal.remove();
  print_result(run, config, findings(plan, result, ppl_kept));
}

}  // namespace kvs
