#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "calibrate/layer_budget.h"
#include "model/decoder.h"

namespace kvs {

/// Joint losses of a cache whose layers choose for themselves. Documents go through whole. The residual streams that
/// enter each layer are kept, so a choice costs the layers from the first one on that differs from the choice before
/// it: memory tokens · d_model floats a document and layer.
class LayerLosses {
 public:
  /// The cache of layers[n] with one of its candidates.
  using MakeLayer = std::function<std::unique_ptr<LayerCache>(std::size_t n, std::size_t candidate)>;

  /// @param layers  ascending; the others keep everything
  /// @param make    caches that take a document as one group
  LayerLosses(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents, std::vector<std::size_t> layers,
              MakeLayer make);

  /// Mean NLL of each document.
  std::vector<double> nll(const LayerChoice& choice);
  /// Mean KL divergence, in nats, of each document's predictions from those of the full cache. Its mean over texts like
  /// the model's own is what the NLL loses; it varies far less from document to document, since it does not depend on
  /// which token came.
  std::vector<double> divergence(const LayerChoice& choice);

 private:
  struct Document {
    std::span<const std::int32_t> tokens;
    std::vector<ResidualStream> entering;     // [n] the stream before layers[n]
    std::optional<ResidualStream> reference;  // of the full cache, finished
  };

  std::vector<double> measure(const LayerChoice& choice,
                              const std::function<double(Document&, const ResidualStream&)>& loss);
  ResidualStream run(Document& document, const LayerChoice& choice, std::size_t first);

  Decoder* decoder_;
  std::vector<std::size_t> layers_;
  MakeLayer make_;
  std::vector<Document> documents_;
  LayerChoice last_;  // that `entering` is of; empty: nothing yet
};

}  // namespace kvs
