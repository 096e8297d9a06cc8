#include "eval/ablation.h"

#include <algorithm>

#include "policy/token_rows.h"

namespace kvs {
namespace {

using View4 = BackendView<float, 4>;

TensorView<const double, 2> rows_of(TensorView<const double, 2> gains, std::size_t first, std::size_t count) {
  return {gains.span().subspan(first * gains.extent(1), count * gains.extent(1)), {count, gains.extent(1)}};
}

}  // namespace

namespace {

/// The prefix's keys (rotated) and values of one layer, as the unchanged model left them, or filtered variants of them
/// while there are any. It takes the first group of tokens; what comes later reads it and leaves it as it is.
class PrefixLayer final : public LayerCache {
 public:
  void attend(LayerStates& states, const Operand& out) override {
    rotate_at(states, states.first_position);
    if (own_.count() == 0) {
      attend_rows(states, {}, out);
      own_.add(states);
    } else {
      attend_rows(states, filtered_k_.view().empty() ? own_.held() : filtered(), out);
    }
  }
  CacheBytes bytes() const noexcept override { return own_.bytes(); }

  /// From here on one filtered variant per row of gains.
  void filter(Backend& backend, SpectralOps& ops, const AblationSetup& setup, const RopeTable& rope,
              TensorView<const double, 2> gains) {
    TokenRows::Part source = own_.copy(backend, 0, own_.count());
    if (setup.before_rope) backend.rope(source.k.view(), rope, 0, RopeDirection::kInverse, {});
    auto shape = source.k.view().shape();
    shape[0] = gains.extent(0);
    filtered_k_ = BackendTensor<float, 4>(backend, shape);
    filtered_v_ = BackendTensor<float, 4>(backend, shape);
    const auto first = setup.first_filtered(), last = setup.last_filtered();
    ops.filter(source.k.view().slice(0), setup.transform, first, last, gains, filtered_k_.view());
    ops.filter(source.v.view().slice(0), setup.transform, first, last, gains, filtered_v_.view());
    if (setup.before_rope) backend.rope(filtered_k_.view(), rope, 0, RopeDirection::kForward, {});
  }
  void restore() {
    filtered_k_ = {};
    filtered_v_ = {};
  }

 private:
  KeyRows filtered() const { return {filtered_k_.view(), filtered_v_.view(), own_.count()}; }

  TokenRows own_;
  BackendTensor<float, 4> filtered_k_, filtered_v_;  // [member, kv_head, prefix, head_dim]
};

}  // namespace

struct AblationForward::Prefix {
  explicit Prefix(std::size_t count)
      : cache([&] {
          std::vector<std::unique_ptr<LayerCache>> made;
          for (std::size_t n = 0; n < count; ++n) {
            auto layer = std::make_unique<PrefixLayer>();
            layers.push_back(layer.get());
            made.push_back(std::move(layer));
          }
          return Cache(std::move(made));
        }()) {}

  std::vector<PrefixLayer*> layers;  // the cache's
  Cache cache;
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
    prefix_ = std::make_unique<Prefix>(layers);
    ResidualStream prefix = decoder_->embed(std::span(tokens_).first(setup_.prefix), 0, setup_.tokens);
    decoder_->advance(prefix, layers, nullptr, &prefix_->cache);
  }
  restart();
}

Cache* AblationForward::cache() { return prefix_ ? &prefix_->cache : nullptr; }

void AblationForward::restart() {
  const std::size_t from = setup_.first_scored();
  hidden_ = decoder_->embed(std::span(tokens_).subspan(from), from);
}

double AblationForward::sum_nll(const ResidualStream& hidden, std::vector<double>* per_member) {
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
  decoder_->advance(hidden_, layer, nullptr, cache());
  const std::size_t batch = std::max<std::size_t>(1, batch_rows_ / hidden_.tokens());
  const RopeTable rope = decoder_->model().rope(layer, setup_.tokens);
  std::vector<double> sums;
  for (std::size_t first = 0; first < gains.extent(0); first += batch) {
    const auto chosen = rows_of(gains, first, std::min(batch, gains.extent(0) - first));
    ResidualStream members = decoder_->repeat(hidden_, chosen.extent(0));
    if (prefix_) {
      prefix_->layers[layer]->filter(decoder_->model().backend(), *ops_, setup_, rope, chosen);
      decoder_->advance(members, layer + 1, nullptr, cache());
      prefix_->layers[layer]->restore();
    } else {
      FilterHook hook(*ops_, setup_, std::span(&layer, 1), chosen);
      decoder_->advance(members, layer + 1, &hook);
    }
    decoder_->advance(members, layers, nullptr, cache());
    sum_nll(members, &sums);
  }
  return sums;
}

double AblationForward::base() {
  decoder_->advance(hidden_, decoder_->model().config().layers, nullptr, cache());
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
    prefix_->layers[layers[n]]->filter(decoder_->model().backend(), *ops_, setup_, rope, rows_of(gains, n, 1));
  }
  decoder_->advance(hidden_, count, nullptr, cache());
  for (const std::size_t layer : layers) prefix_->layers[layer]->restore();
  return sum_nll(hidden_);
}

}  // namespace kvs
