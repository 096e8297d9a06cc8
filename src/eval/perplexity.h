#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/decoder.h"

namespace kvs {

/// NLL sums of some documents; perplexity = exp(sum / tokens) over all scored tokens of all documents.
struct PerplexitySum {
  double nll = 0;  // nats, summed per document in document order, in double
  std::size_t scored = 0;
  std::vector<double> per_document;

  void add(double document_nll, std::size_t tokens);
  double mean() const noexcept { return nll / static_cast<double>(scored); }
  double perplexity() const noexcept;
};

/// Runs each document from scratch through `decoder` (with `hook`, if any) and scores its tokens 1 … T − 1.
/// @param done  called after each document with the number of documents done
PerplexitySum measure_perplexity(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents,
                                 StateHook* hook, const std::function<void(std::size_t)>& done = {});

}  // namespace kvs
