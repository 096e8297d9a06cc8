#include "eval/transform/sensitivity.h"

#include <numeric>

#include "core/interrupt.h"
#include "eval/layer_losses.h"
#include "policy/full.h"

namespace kvs {
namespace {

enum Candidate : std::size_t { kFull, kKeys, kValues };

/// Attention of a whole document over keys, or values, as the transform coder holds them, the other side as it comes.
class OneSide final : public LayerCache {
 public:
  OneSide(std::shared_ptr<const TransformProducts> products, bool keys) : products_(std::move(products)), keys_(keys) {}

  void attend(LayerStates& states, const Operand& out) override {
    const BackendView<float, 4>& other = keys_ ? states.v : states.k;
    const BackendTensor<float, 4> as_it_comes = copy_of<float, 4>(states.backend, other);
    hold_transformed(products_, states);
    states.backend.copy(other.data(), as_it_comes.view().data(), as_it_comes.bytes());
    rotate_at(states, states.first_position);
    attend_rows(states, {}, out);
  }
  CacheBytes bytes() const noexcept override { return {}; }

 private:
  std::shared_ptr<const TransformProducts> products_;
  bool keys_;
};

double mean(const std::vector<double>& losses) {
  return std::reduce(losses.begin(), losses.end()) / static_cast<double>(losses.size());
}

}  // namespace

std::vector<TransformScales> coding_losses(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents,
                                           const std::vector<TransformLayer>& layers,
                                           const std::function<void(std::size_t)>& done) {
  const ModelConfig& model = decoder.model().config();
  std::vector<std::size_t> indices;
  std::vector<std::shared_ptr<const TransformProducts>> products;
  for (const TransformLayer& layer : layers) {
    indices.push_back(layer.layer);
    products.push_back(make_transform_products(decoder.model().backend(), layer, {model.kv_heads, model.head_dim}));
  }
  LayerLosses losses(decoder, documents, indices,
                     [&](std::size_t n, std::size_t candidate) -> std::unique_ptr<LayerCache> {
                       if (candidate == kFull) return make_full_cache();
                       return std::make_unique<OneSide>(products[n], candidate == kKeys);
                     });
  std::vector<TransformScales> result;
  for (std::size_t n = 0; n < layers.size(); ++n) {
    done(n);
    check_interrupt();
    LayerChoice choice(layers.size(), kFull);
    choice[n] = kKeys;
    const double keys = mean(losses.divergence(choice));
    choice[n] = kValues;
    result.push_back({keys, mean(losses.divergence(choice))});
  }
  return result;
}

}  // namespace kvs
