// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "results/comparison.h"
#include "results/evaluation.h"

namespace kvs::inline results {

/// The cache that suits a model, an engine and a context (docs/recommend.md).
struct Recommendation {
  /// A measured cache.
  struct Cache {
    std::string label = {};
    Json settings = Json::object();
    double bytes = 0;  // of a document of `sized` tokens
    std::size_t documents = 0;
    ScoredLoss loss = {};
    std::optional<Retrieval> retrieval = {};

    static void fields(auto& cache, auto&& field) {
      field("label", cache.label)("settings", cache.settings)("bytes", cache.bytes)("documents", cache.documents)(
          "loss", cache.loss);
      field.absent_or("retrieval", cache.retrieval);
    }
  };
  ResultHead head = {};
  std::string engine = {}, engine_version = {};
  std::size_t context = 0;               // asked for
  std::size_t sized = 0;                 // tokens of the document that bytes are stated for
  std::size_t tokens = 0, scored = 0;    // of each document that was measured
  std::optional<double> max_bytes = {};  // of --budget
  double max_kl = 0;                     // of --max-kl; without effect if max_bytes is set
  double full_bytes = 0;                 // of the full cache at 16 bits, at `sized` tokens
  std::optional<Cache> chosen = {};      // nothing: no measured cache is within max_kl or max_bytes
  /// Neighbours of the chosen cache. Without a chosen cache `safer` is the cache of least divergence.
  std::optional<Cache> smaller = {}, safer = {};
  std::vector<Cache> unsafe = {};  // not to be used, the largest first
  std::string refusal = {};        // why the model has no cache of the engine; empty if it has one
  /// Labels of the caches that the time limit left out, and of those that were measured on fewer documents.
  std::vector<std::string> unmeasured = {}, shortened = {};
  std::optional<EngineUse> use = {};    // of the chosen cache
  std::vector<std::string> files = {};  // that were written, with their folder

  static void fields(auto& one, auto&& field) {
    field.inlined(one.head);
    field("engine", one.engine)("engine_version", one.engine_version)("context", one.context)("tokens", one.tokens)(
        "scored", one.scored)("max_bytes", one.max_bytes)("max_kl", one.max_kl)("full_bytes", one.full_bytes)(
        "chosen", one.chosen)("smaller", one.smaller)("safer", one.safer)("unsafe", one.unsafe)("use", one.use)(
        "files", one.files);
    field.newer("sized", one.sized);
    field.newer("refusal", one.refusal);
    field.newer("unmeasured", one.unmeasured);
    field.newer("shortened", one.shortened);
  }
};

/// Returns the recommendation in one sentence: the cache, its bytes and the rule, or why no cache is recommended.
std::string advice(const Recommendation& recommendation);
/// Returns the documents that the caches were measured on, in words; "" if no cache was measured.
std::string measured_text(const Recommendation& recommendation);
/// Returns a screen: the setting and what it costs in words, then the table of the caches around it.
std::string to_text(const Recommendation& recommendation);

}  // namespace kvs::inline results
