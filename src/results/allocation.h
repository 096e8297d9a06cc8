#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "results/mean_loss.h"

namespace kvs {

/// Settings for a byte budget, what was tried and what documents held out said: `calibration.allocation` of a config.
struct AllocationResult {
  /// Of the winner from another contender on the documents held out.
  struct Change {
    double difference = 0;                              // of mean NLLs, nats
    std::optional<std::pair<double, double>> interval;  // 95 %, of the change of perplexity
    static void fields(auto& of, auto&& field) { field("difference", of.difference)("interval", of.interval); }
  };
  struct Contender {
    std::string name;  // layers, uniform or standard
    std::size_t bytes = 0;
    Json parameters;
    std::optional<MeanLoss> loss = {};  // where documents were held out
    std::optional<Change> change = {};  // not of the winner
    static void fields(auto& of, auto&& field) {
      field("name", of.name)("bytes", of.bytes)("parameters", of.parameters);
      field.inlined("ppl", of.loss);
      field.inlined("difference", of.change);
    }
  };
  struct Trial {
    Json parameters;
    std::size_t documents = 0;
    std::optional<double> divergence;       // mean over the documents; null where a pass met NaN or infinity
    std::optional<std::string> error = {};  // then why
    static void fields(auto& of, auto&& field) {
      field("parameters", of.parameters)("documents", of.documents)("divergence", of.divergence);
      field.absent_or("error", of.error);
    }
  };
  std::string winner;
  std::size_t held_documents = 0;
  std::vector<Contender> contenders;  // the winner first
  std::vector<Trial> trials;          // best first
  std::size_t measured = 0;           // losses of single documents that it took
  std::optional<std::string> verdict = {};
  std::optional<std::string> llama_cpp_cuda = {};  // which builds run the winner's types
  static void fields(auto& of, auto&& field) {
    field("winner", of.winner)("held_documents", of.held_documents)("contenders", of.contenders)("trials", of.trials)(
        "measured", of.measured);
    field.absent_or("verdict", of.verdict);
    field.absent_or("llama_cpp_cuda", of.llama_cpp_cuda);
  }
};

/// `quality` of such a config: the winner on the documents held out.
struct AllocationQuality {
  std::string text = "documents held out";
  MeanLoss loss;
  std::optional<double> ppl_full;
  double nll_full = 0, bytes_per_token = 0;
  static void fields(auto& of, auto&& field) {
    field("text", of.text);
    field.inlined(of.loss);
    field("ppl_full", of.ppl_full)("nll_full", of.nll_full)("bytes_per_token", of.bytes_per_token);
  }
};

}  // namespace kvs
