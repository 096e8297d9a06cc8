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

namespace kvs {

/// How documents are evaluated.
struct EvaluationPlan {
  std::function<Cache()> make;  // a fresh cache for a document
  bool compare = false;         // also run the full cache: NLL, KL divergence and agreement per token, one more pass
  std::size_t last = 0;         // score the last tokens of a document alone; 0: all after its prefix
  std::size_t decode = 0;       // so many at the end go one at a time
  std::size_t parts = 0;        // contiguous ones of the scored tokens whose losses are kept apart, beside a reference
};

/// Losses of a contiguous part of a document's scored tokens, nats a token.
struct PartLoss {
  double nll = 0, full_nll = 0;  // of the cache and of the full cache
  double kl = 0;                 // divergence from the full cache's predictions
};

/// The full cache on the same documents.
struct FullReference {
  PerplexitySum sum;
  Divergence divergence;  // of the other cache's predictions from this one's
  std::vector<double> kl_per_document = {};
  double seconds = 0;  // of the forward passes
};

/// A cache at work on some documents, beside the full cache where that was asked for.
struct Evaluation {
  PerplexitySum sum;
  CacheReport cache;  // of all documents
  std::optional<FullReference> full;
  std::vector<std::vector<PartLoss>> parts = {};  // [document][part]; no document unless they were asked for

  /// Adds the next documents' evaluation.
  Evaluation& operator+=(const Evaluation& next);
};

/// The full cache's pass over a document, which any number of caches may be compared with.
struct ReferencePass {
  ResidualStream hidden;  // finished
  PerplexitySum sum;
  std::vector<float> nll = {};  // [token] of its successor
  double seconds = 0;           // of the forward pass
};
/// @param prefix  tokens that are not scored
ReferencePass reference_pass(Decoder& decoder, std::span<const std::int32_t> tokens, std::size_t prefix,
                             const EvaluationPlan& plan);
/// One document. @param reference  nullptr: made here if plan.compare asks for it
Evaluation evaluate_document(Decoder& decoder, std::span<const std::int32_t> tokens, const EvaluationPlan& plan,
                             const ReferencePass* reference = nullptr);

/// A document's evaluation as a record of a journal.
Json to_record(const Evaluation& document);
/// @throws Error kInput
Evaluation evaluation_from(const JsonCursor& record);

/// Perplexity is over the scored tokens: those that have a token before them and follow the prefix.
/// @param done     called after each document with the number of documents done
/// @param journal  keeps the documents that are done; those that it holds are not run again
/// @param ranks    share the documents, and rank 0 has the result; nullptr: this process runs all
/// @throws Error kData if no token of a document is scored
Evaluation evaluate(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents, const EvaluationPlan& plan,
                    const std::function<void(std::size_t)>& done = {}, Journal* journal = nullptr,
                    Ranks* ranks = nullptr);

}  // namespace kvs
