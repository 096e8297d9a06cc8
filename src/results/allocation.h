// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "results/mean_loss.h"

namespace kvs::inline results {

/// The settings for a byte budget, the trials, and the losses on held-out documents: `calibration.allocation` of a
/// config.
struct AllocationResult {
  /// The change from another contender to the winner on the held-out documents.
  struct Change {
    double difference = 0;                              // difference of the mean NLLs, nats
    std::optional<std::pair<double, double>> interval;  // 95 % interval of the change of perplexity
    static void fields(auto& of, auto&& field) { field("difference", of.difference)("interval", of.interval); }
  };
  struct Contender {
    std::string name;  // layers, uniform or standard
    std::size_t bytes = 0;
    Json parameters;
    std::optional<MeanLoss> loss = {};  // set if documents were held out
    std::optional<Change> change = {};  // not set for the winner
    static void fields(auto& of, auto&& field) {
      field("name", of.name)("bytes", of.bytes)("parameters", of.parameters);
      field.inlined("ppl", of.loss);
      field.inlined("difference", of.change);
    }
  };
  struct Trial {
    Json parameters;
    std::size_t documents = 0;
    std::optional<double> divergence;       // mean over the documents; null if a pass produced NaN or infinity
    std::optional<std::string> error = {};  // the reason for a null divergence
    static void fields(auto& of, auto&& field) {
      field("parameters", of.parameters)("documents", of.documents)("divergence", of.divergence);
      field.absent_or("error", of.error);
    }
  };
  std::string winner;
  std::size_t held_documents = 0;
  std::vector<Contender> contenders;  // the winner is first
  std::vector<Trial> trials;          // best first
  std::size_t measured = 0;           // number of single-document losses that were measured
  std::optional<std::string> verdict = {};
  std::optional<std::string> llama_cpp_cuda = {};  // the llama.cpp builds that support the winner's types
  static void fields(auto& of, auto&& field) {
    field("winner", of.winner)("held_documents", of.held_documents)("contenders", of.contenders)("trials", of.trials)(
        "measured", of.measured);
    field.absent_or("verdict", of.verdict);
    field.absent_or("llama_cpp_cuda", of.llama_cpp_cuda);
  }
};

/// `quality` of a config with `calibration.allocation`: the winner's loss on the held-out documents.
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

}  // namespace kvs::inline results
