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

namespace kvs {

/// Joint losses of a cache whose layers choose for themselves. Documents go through whole, each layer's cut by its own
/// cache alone (for_documents). The residual streams that enter each layer are kept, so a choice costs the layers from
/// the first one on that differs from the choice before it: memory tokens · d_model floats a document and layer.
class LayerLosses {
 public:
  /// The cache of layers[n] with one of its candidates.
  using MakeLayer = std::function<std::unique_ptr<LayerCache>(std::size_t n, std::size_t candidate)>;

  /// @param layers     ascending; the others keep everything
  /// @param prefix     of each document
  /// @param positions  of a document, as ResidualStream has them; 0: its tokens
  LayerLosses(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents, std::vector<std::size_t> layers,
              MakeLayer make, const Prefix& prefix = {}, std::size_t positions = 0);

  /// DocumentLoss::nll() and divergence() of each document.
  std::vector<double> nll(const LayerChoice& choice);
  std::vector<double> divergence(const LayerChoice& choice);
  /// Of one document, whichever others were asked for.
  double divergence(const LayerChoice& choice, std::size_t document);

 private:
  struct Document {
    DocumentLoss loss;
    std::vector<ResidualStream> entering;  // [n] the stream before layers[n]
    LayerChoice last = {};                 // that `entering` is of; empty: nothing yet
  };

  ResidualStream run(Document& document, const LayerChoice& choice);

  Decoder* decoder_;
  std::vector<std::size_t> layers_;
  MakeLayer make_;
  Prefix prefix_;
  std::vector<Document> documents_;
};

}  // namespace kvs
