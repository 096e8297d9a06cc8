#include "eval/ablation.h"

#include <algorithm>

namespace kvs {
namespace {

using View4 = BackendView<float, 4>;
using ConstView4 = BackendView<const float, 4>;

TensorView<const double, 2> rows_of(TensorView<const double, 2> gains, std::size_t first, std::size_t count) {
  return {gains.span().subspan(first * gains.extent(1), count * gains.extent(1)), {count, gains.extent(1)}};
}

}  // namespace

/// The prefix's keys (rotated) and values of every layer, as the unchanged model left them; a layer may be overridden.
struct AblationForward::Prefix final : CachePolicy {
  struct Layer {
    BackendTensor<float, 4> k, v;                  // [1, kv_head, prefix, head_dim]
    BackendTensor<float, 4> changed_k, changed_v;  // [member, kv_head, prefix, head_dim] while overridden
  };
  Prefix(Backend& owner, std::size_t count) : backend(&owner), layers(count) {}

  Past past(std::size_t layer) override {
    const Layer& own = layers[layer];
    if (recording) return {};
    return own.changed_k.view().empty() ? Past{own.k.view(), own.v.view()}
                                        : Past{own.changed_k.view(), own.changed_v.view()};
  }
  void append(std::size_t layer, ConstView4 k, ConstView4 v) override {
    if (!recording) return;
    layers[layer].k = copy_of(*backend, k);
    layers[layer].v = copy_of(*backend, v);
  }
  std::size_t tokens_seen() const noexcept override {
    return layers.empty() || recording ? 0 : layers[0].k.view().extent(2);
  }
  std::size_t stored_reals() const noexcept override {
    std::size_t reals = 0;
    for (const Layer& layer : layers) reals += layer.k.view().size() + layer.v.view().size();
    return reals;
  }

  /// Replaces `layer`'s past by one filtered variant per row of gains.
  void change(std::size_t layer, SpectralOps& ops, const AblationSetup& setup, const RopeTable& rope,
              TensorView<const double, 2> gains) {
    Layer& own = layers[layer];
    auto shape = own.k.view().shape();
    BackendTensor<float, 4> source = copy_of(*backend, ConstView4(own.k.view()));
    if (setup.before_rope) backend->rope(source.view(), rope, 0, RopeDirection::kInverse, {});
    shape[0] = gains.extent(0);
    own.changed_k = BackendTensor<float, 4>(*backend, shape);
    own.changed_v = BackendTensor<float, 4>(*backend, shape);
    const auto first = setup.first_filtered(), last = setup.last_filtered();
    ops.filter(source.view().slice(0), setup.transform, first, last, gains, own.changed_k.view());
    ops.filter(own.v.view().slice(0), setup.transform, first, last, gains, own.changed_v.view());
    if (setup.before_rope) backend->rope(own.changed_k.view(), rope, 0, RopeDirection::kForward, {});
  }
  void restore(std::size_t layer) {
    layers[layer].changed_k = {};
    layers[layer].changed_v = {};
  }

  Backend* backend;
  std::vector<Layer> layers;
  bool recording = true;
};

/// In-place: filters K and V of some layers as they pass. Members enter a filtered layer equal and leave it as
/// variants.
class AblationForward::FilterHook final : public StateHook {
 public:
  FilterHook(SpectralOps& ops, const AblationSetup& setup, std::span<const std::size_t> layers,
             TensorView<const double, 2> gains)
      : ops_(ops), setup_(setup), layers_(layers), gains_(gains) {}

  void before_rope(LayerStates& states) override {
    if (!filters(states.layer)) return;
    apply(states, states.v);
    if (setup_.before_rope) apply(states, states.k);
  }
  void after_rope(LayerStates& states) override {
    if (filters(states.layer) && !setup_.before_rope) apply(states, states.k);
  }

 private:
  bool filters(std::size_t layer) const { return std::ranges::find(layers_, layer) != layers_.end(); }
  void apply(const LayerStates& states, View4 x) {
    // One layer: a row of gains per member. Several layers: one member, a row of gains per layer.
    const auto index = static_cast<std::size_t>(std::ranges::find(layers_, states.layer) - layers_.begin());
    const auto gains = layers_.size() == 1 ? gains_ : rows_of(gains_, index, 1);
    ops_.filter(x.slice(0), setup_.transform, setup_.first_filtered(), setup_.last_filtered(), gains, x);
  }

  SpectralOps& ops_;
  const AblationSetup& setup_;
  std::span<const std::size_t> layers_;
  TensorView<const double, 2> gains_;
};

AblationForward::AblationForward(Decoder& decoder, SpectralOps& ops, const AblationSetup& setup, std::size_t batch_rows)
    : decoder_(&decoder), ops_(&ops), setup_(setup), batch_rows_(batch_rows) {}
AblationForward::~AblationForward() = default;

void AblationForward::begin(std::span<const std::int32_t> tokens) {
  tokens_.assign(tokens.begin(), tokens.end());
  const std::size_t from = setup_.first_scored();
  targets_.assign(tokens_.begin() + static_cast<std::ptrdiff_t>(from) + 1, tokens_.end());
  targets_.push_back(-1);  // the last token predicts nothing that is known
  if (setup_.continuation) {
    const std::size_t layers = decoder_->model().config().layers;
    prefix_ = std::make_unique<Prefix>(decoder_->model().backend(), layers);
    Hidden prefix = decoder_->embed(std::span(tokens_).first(setup_.prefix), 0, setup_.tokens);
    decoder_->advance(prefix, layers, nullptr, prefix_.get());
    prefix_->recording = false;
  }
  restart();
}

void AblationForward::restart() {
  const std::size_t from = setup_.first_scored();
  hidden_ = decoder_->embed(std::span(tokens_).subspan(from), from);
}

double AblationForward::sum_nll(const Hidden& hidden, std::vector<double>* per_member) {
  const std::vector<float> nll = decoder_->nll(hidden, targets_);
  const std::size_t tokens = hidden.tokens();
  double last = 0;
  for (std::size_t member = 0; member < hidden.members(); ++member) {
    last = 0;
    for (std::size_t t = 0; t < tokens; ++t) last += nll[member * tokens + t];
    if (per_member != nullptr) per_member->push_back(last);
  }
  return last;
}

std::vector<double> AblationForward::variants(std::size_t layer, TensorView<const double, 2> gains) {
  const std::size_t layers = decoder_->model().config().layers;
  decoder_->advance(hidden_, layer, nullptr, prefix_.get());
  const std::size_t batch = std::max<std::size_t>(1, batch_rows_ / hidden_.tokens());
  const RopeTable rope = decoder_->model().rope(layer, setup_.tokens);
  std::vector<double> sums;
  for (std::size_t first = 0; first < gains.extent(0); first += batch) {
    const auto chosen = rows_of(gains, first, std::min(batch, gains.extent(0) - first));
    Hidden members = decoder_->repeat(hidden_, chosen.extent(0));
    if (prefix_) {
      prefix_->change(layer, *ops_, setup_, rope, chosen);
      decoder_->advance(members, layer + 1, nullptr, prefix_.get());
      prefix_->restore(layer);
    } else {
      FilterHook hook(*ops_, setup_, std::span(&layer, 1), chosen);
      decoder_->advance(members, layer + 1, &hook);
    }
    decoder_->advance(members, layers, nullptr, prefix_.get());
    sum_nll(members, &sums);
  }
  return sums;
}

double AblationForward::base() {
  decoder_->advance(hidden_, decoder_->model().config().layers, nullptr, prefix_.get());
  return sum_nll(hidden_);
}

double AblationForward::filtered(std::span<const std::size_t> layers, TensorView<const double, 2> gains) {
  restart();
  const std::size_t count = decoder_->model().config().layers;
  if (!prefix_) {
    FilterHook hook(*ops_, setup_, layers, gains);
    decoder_->advance(hidden_, count, &hook);
    return sum_nll(hidden_);
  }
  for (std::size_t n = 0; n < layers.size(); ++n) {
    const RopeTable rope = decoder_->model().rope(layers[n], setup_.tokens);
    prefix_->change(layers[n], *ops_, setup_, rope, rows_of(gains, n, 1));
  }
  decoder_->advance(hidden_, count, nullptr, prefix_.get());
  for (const std::size_t layer : layers) prefix_->restore(layer);
  return sum_nll(hidden_);
}

}  // namespace kvs
