// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "calibrate/common/layer_budget.h"
#include "eval/document_loss.h"
#include "model/decoder.h"

namespace kvs::inline calibrate {

/// Joint losses of a cache whose layers are chosen separately. Documents are processed whole; each layer's own cache
/// cuts them for itself (for_documents()). The residual streams that enter each layer are kept, so a choice runs only
/// the layers from the first one whose choice changed. Memory: tokens · d_model floats per document and layer. Passes
/// of documents run in turns if the model is streamed.
class LayerLosses {
 public:
  /// Creates the cache of layers[n] with one of its candidates.
  using MakeLayer = std::function<std::unique_ptr<LayerCache>(std::size_t n, std::size_t candidate)>;

  /// @param layers     ascending; the other layers keep everything
  /// @param prefix     of each document
  /// @param positions  of a document, as in ResidualStream; 0: its tokens
  LayerLosses(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents, std::vector<std::size_t> layers,
              MakeLayer make, const Prefix& prefix = {}, std::size_t positions = 0);

  /// DocumentLoss::nll() and divergence() of each document.
  std::vector<double> nll(const LayerChoice& choice);
  std::vector<double> divergence(const LayerChoice& choice);
  /// Like divergence(), with loss_or_overflow().
  std::vector<double> divergence_or_overflow(const LayerChoice& choice);
  /// Divergence of one document, independent of previous calls. Calls for several documents may run in turns.
  double divergence(const LayerChoice& choice, std::size_t document);

 private:
  struct Document {
    DocumentLoss loss;
    std::vector<ResidualStream> entering;  // [n] the residual stream before layers[n]
    LayerChoice last = {};                 // the choice of `entering`; empty: none yet
  };

  ResidualStream run(Document& document, const LayerChoice& choice);
  std::vector<double> of_each(const std::function<double(Document&)>& measure);

  Decoder* decoder_;
  std::vector<std::size_t> layers_;
  MakeLayer make_;
  Prefix prefix_;
  std::vector<Document> documents_;
  std::size_t together_;  // documents whose passes run in turns
};

}  // namespace kvs::inline calibrate
