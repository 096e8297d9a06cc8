// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "eval/cached_run.h"
#include "eval/divergence.h"
#include "eval/perplexity.h"
#include "io/journal.h"
#include "ranks/ranks.h"

namespace kvs::inline eval {

/// Losses of a contiguous part of a document's scored tokens, nats per token.
struct PartLoss {
  double nll = 0, full_nll = 0;  // of the cache and of the full cache
  double kl = 0;                 // divergence from the full cache's predictions
};

/// How documents are evaluated.
struct EvaluationPlan {
  std::function<Cache()> make;  // creates a fresh cache for a document
  bool compare = false;         // also runs the full cache: NLL, KL divergence and agreement per token; one more pass
  std::size_t last = 0;         // scores only the last tokens of a document; 0: all after its prefix
  std::size_t decode = 0;       // number of tokens at the end that are processed one at a time
  std::size_t parts = 0;        // contiguous parts of scored tokens with separate losses; needs a reference
  /// The first token whose prediction of its successor is scored, in a prefix too; instead of `last`.
  std::optional<std::size_t> first = {};
  RecordedStart start = {};  // of the document; its tokens are not scored
  std::size_t length = 0;    // tokens of a document for which rotations are computed; 0: those that it has
  /// Called with each scored token and its losses, in order; needs a reference.
  std::function<void(std::size_t token, const PartLoss&)> each = {};
};

/// The full cache on the same documents.
struct FullReference {
  PerplexitySum sum;
  Divergence divergence;  // of the other cache's predictions from the full cache's
  std::vector<double> kl_per_document = {}, agreed_per_document = {};
  double seconds = 0;  // of the forward passes

  FullReference& operator+=(const FullReference& next);
};

/// Evaluation of a cache on some documents, with the full cache if requested.
struct Evaluation {
  PerplexitySum sum;
  CacheReport cache;  // of all documents
  std::optional<FullReference> full;
  std::vector<std::vector<PartLoss>> parts = {};  // [document][part]; empty unless requested

  /// Adds the evaluation of the next documents.
  Evaluation& operator+=(const Evaluation& next);
};

/// The full cache's pass over a document, with which any number of caches may be compared.
struct ReferencePass {
  ResidualStream hidden;  // finished
  PerplexitySum sum;
  std::vector<float> nll = {};  // [token], NLL of its successor
  double seconds = 0;           // of the forward pass
  /// Of the scored tokens, if they are kept: they save a product with the head in each comparison.
  std::optional<KeptLogits> logits = {};
};
/// @param prefix  tokens that are not scored
ReferencePass reference_pass(Decoder& decoder, std::span<const std::int32_t> tokens, std::size_t prefix,
                             const EvaluationPlan& plan);
/// Keeps the logits of the tokens that the plan scores. Memory: scored tokens · vocabulary floats.
void keep_logits(Decoder& decoder, std::size_t prefix, const EvaluationPlan& plan, ReferencePass& pass);
/// Evaluates one document. @param reference  nullptr: computed here if plan.compare is set
Evaluation evaluate_document(Decoder& decoder, std::span<const std::int32_t> tokens, const EvaluationPlan& plan,
                             const ReferencePass* reference = nullptr);

/// Returns the FLOPs of evaluate_document() with `tokens` tokens.
double evaluation_flops(const EvaluationPlan& plan, const ModelConfig& model, std::size_t tokens);

/// Converts a document's evaluation to a journal record.
Json to_record(const Evaluation& document);
/// @throws Error kInput
Evaluation evaluation_from(const JsonCursor& record);

/// Evaluates documents. Perplexity is over the scored tokens: those that have a previous token and follow the prefix.
/// @param done     called after each document with the number of documents done
/// @param journal  receives finished documents; documents that it already holds are not run again
/// @param ranks    share the documents, and rank 0 has the result; nullptr: this process runs all
/// @throws Error kData if a document has no scored token
Evaluation evaluate(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents, const EvaluationPlan& plan,
                    const std::function<void(std::size_t)>& done = {}, Journal* journal = nullptr,
                    Ranks* ranks = nullptr);

}  // namespace kvs::inline eval
