// SPDX-License-Identifier: Apache-2.0
#include "eval/ablation_forward.h"

#include <algorithm>
#include <iterator>

#include "caches/token_rows.h"
#include "eval/perplexity.h"
#include "model/passes_together.h"

namespace kvs::inline eval {
namespace {

using View4 = BackendView<float, 4>;

TensorView<const double, 2> rows_of(TensorView<const double, 2> gains, std::size_t first, std::size_t count) {
  return {gains.span().subspan(first * gains.extent(1), count * gains.extent(1)), {count, gains.extent(1)}};
}

/// Returns one variant of a batch.
View4 member_of(const View4& batch, std::size_t member) {
  auto shape = batch.shape();
  const std::size_t size = batch.size() / shape[0];
  shape[0] = 1;
  return {batch.span().subspan(member * size, size), shape};
}

}  // namespace

/// Gains of one layer: [variant, bin].
struct AblationForward::LayerGains {
  TensorView<const double, 2> keys, values;
};

namespace {

/// The prefix's keys (rotated) and values of one layer from the unchanged model, or filtered variants of them if there
/// are any. It keeps the first group of tokens; later tokens read it and do not change it.
class PrefixLayer final : public LayerCache {
 public:
  void attend(LayerStates& states, const Operand& out) override {
    turn_later(states);  // filter() may undo the rotation
    rotate_at(states, states.first_position);
    if (own_.count() == 0) {
      attend_rows(states, {}, out);
      own_.add(states);
    } else {
      attend_rows(states, filtered_k_.view().empty() ? own_.held() : filtered(), out);
    }
  }
  CacheBytes bytes() const noexcept override { return own_.bytes(); }

  /// Switches to one filtered variant per row of gains.
  void filter(Backend& backend, SpectralOps& ops, const AblationSetup& setup, const RopeTable& rope,
              TensorView<const double, 2> key_gains, TensorView<const double, 2> value_gains) {
    TokenRows::Part source = own_.copy(backend, 0, own_.count());
    if (setup.before_rope) backend.rope(source.k.view(), rope, 0, RopeDirection::kInverse, {});
    auto shape = source.k.view().shape();
    shape[0] = key_gains.extent(0);
    filtered_k_ = BackendTensor<float, 4>(backend, shape);
    filtered_v_ = BackendTensor<float, 4>(backend, shape);
    const auto first = setup.first_filtered(), last = setup.last_filtered();
    ops.filter(source.k.view().slice(0), setup.transform, first, last, key_gains, filtered_k_.view());
    ops.filter(source.v.view().slice(0), setup.transform, first, last, value_gains, filtered_v_.view());
    if (setup.before_rope) backend.rope(filtered_k_.view(), rope, 0, RopeDirection::kForward, {});
  }
  void restore() {
    filtered_k_ = {};
    filtered_v_ = {};
  }

 private:
  PastKv filtered() const { return {filtered_k_.view(), filtered_v_.view(), own_.count()}; }

  TokenRows own_;
  BackendTensor<float, 4> filtered_k_, filtered_v_;  // [member, kv_head, prefix, head_dim]
};

}  // namespace

struct AblationForward::Prefix {
  explicit Prefix(const ModelConfig& model)
      : readers(model.layers()), cache([&] {
          std::vector<std::unique_ptr<LayerCache>> made;
          for (std::size_t n = 0; n < model.layers(); ++n) {
            auto layer = model.layer[n].has_attention() ? std::make_unique<PrefixLayer>() : nullptr;
            if (layer) readers[model.layer[n].attention.kv_layer.value_or(n)].push_back(layer.get());
            made.push_back(std::move(layer));
          }
          return Cache(std::move(made));
        }()) {}

  std::vector<std::vector<PrefixLayer*>> readers;  // [layer] the cache's layers that read its keys and values
  Cache cache;
};

/// In-place protocol: filters K and V of one layer during the pass, each member by its row of gains.
class AblationForward::FilterHook final : public StateHook {
 public:
  /// @param alike  members are equal before the layer and differ after it
  FilterHook(SpectralOps& ops, const AblationSetup& setup, std::size_t layer, const LayerGains& gains, bool alike)
      : ops_(ops), setup_(setup), layer_(layer), gains_(gains), alike_(alike) {}

  void before_rope(LayerStates& states) override {
    if (states.layer != layer_) return;
    apply(states.v, gains_.values);
    if (setup_.before_rope) apply(states.k, gains_.keys);
  }
  void after_rope(LayerStates& states) override {
    if (states.layer == layer_ && !setup_.before_rope) apply(states.k, gains_.keys);
  }

 private:
  void apply(const View4& x, TensorView<const double, 2> gains) {
    const auto filter = [&](const View4& from, TensorView<const double, 2> rows, const View4& to) {
      ops_.filter(from.slice(0), setup_.transform, setup_.first_filtered(), setup_.last_filtered(), rows, to);
    };
    if (alike_) return filter(x, gains, x);
    for (std::size_t member = 0; member < x.extent(0); ++member)
      filter(member_of(x, member), rows_of(gains, member, 1), member_of(x, member));
  }

  SpectralOps& ops_;
  const AblationSetup& setup_;
  std::size_t layer_;
  const LayerGains& gains_;
  bool alike_;
};

std::string AblationSetup::subject() const {
  return std::string(continuation ? "continuation" : "in-place") + ", " + (before_rope ? "k_pre" : "k_post") + ", " +
         (transform == Transform::kDct ? "DCT" : "DFT");
}

AblationForward::AblationForward(Decoder& decoder, SpectralOps& ops, const AblationSetup& setup, std::size_t batch_rows)
    : decoder_(&decoder), ops_(&ops), setup_(setup), batch_rows_(batch_rows) {}
AblationForward::~AblationForward() = default;

std::size_t AblationForward::together() const {
  const std::size_t row = decoder_->model().config().d_model * sizeof(float);
  return passes_together(decoder_->model(), setup_.tokens, (batch_rows_ + setup_.tokens) * row);
}

void AblationForward::begin(std::span<const std::int32_t> tokens) {
  tokens_.assign(tokens.begin(), tokens.end());
  const std::size_t from = setup_.first_scored();
  targets_.assign(tokens_.begin() + static_cast<std::ptrdiff_t>(from) + 1, tokens_.end());
  targets_.push_back(-1);  // the successor of the last token is unknown
  if (setup_.continuation) {
    const std::size_t layers = decoder_->model().config().layers();
    prefix_ = std::make_unique<Prefix>(decoder_->model().config());
    ResidualStream prefix = decoder_->embed(std::span(tokens_).first(setup_.prefix), 0, setup_.tokens);
    decoder_->advance(prefix, layers, nullptr, &prefix_->cache);
    prefix_->cache.hold_recurrent_states();
  }
  restart();
}

Cache* AblationForward::cache() { return prefix_ ? &prefix_->cache : nullptr; }

void AblationForward::restart() {
  const std::size_t from = setup_.first_scored();
  hidden_ = decoder_->embed(std::span(tokens_).subspan(from), from);
}

double AblationForward::sum_nll(const ResidualStream& hidden, std::vector<double>* sums, std::vector<double>* squares) {
  const std::vector<float> nll = decoder_->nll(hidden, targets_);
  const std::size_t tokens = hidden.tokens();
  double last = 0;
  for (std::size_t member = 0; member < hidden.members(); ++member) {
    TokenSums of_member;
    of_member.add(std::span(nll).subspan(member * tokens, tokens));
    last = of_member.nll;
    if (sums != nullptr) sums->push_back(of_member.nll);
    if (squares != nullptr) squares->push_back(of_member.squares);
  }
  return last;
}

std::size_t AblationForward::batch_members() const { return std::max<std::size_t>(1, batch_rows_ / hidden_.tokens()); }

/// Runs `layer` with each member filtered by its row of gains.
void AblationForward::advance_filtered(ResidualStream& members, std::size_t layer, const LayerGains& gains,
                                       bool alike) {
  if (!prefix_) {
    FilterHook hook(*ops_, setup_, layer, gains, alike);
    decoder_->advance(members, layer + 1, &hook);
    return;
  }
  const RopeTable rope = decoder_->model().rope(layer, setup_.tokens);
  for (PrefixLayer* const reader : prefix_->readers[layer])
    reader->filter(decoder_->model().backend(), *ops_, setup_, rope, gains.keys, gains.values);
  decoder_->advance(members, layer + 1, nullptr, cache());
  prefix_->readers[layer].front()->restore();
}

/// Runs the layers that are left; readers of filtered layers see what these saw.
void AblationForward::finish(ResidualStream& members) {
  decoder_->advance(members, decoder_->model().config().layers(), nullptr, cache());
  if (!prefix_) return;
  for (const auto& layer : prefix_->readers)
    for (PrefixLayer* const reader : layer) reader->restore();
}

std::vector<double> AblationForward::variants(std::size_t layer, TensorView<const double, 2> gains) {
  decoder_->advance(hidden_, layer, nullptr, cache());
  std::vector<double> sums;
  for (std::size_t first = 0; first < gains.extent(0); first += batch_members()) {
    const auto chosen = rows_of(gains, first, std::min(batch_members(), gains.extent(0) - first));
    ResidualStream members = decoder_->repeat(hidden_, chosen.extent(0));
    advance_filtered(members, layer, {chosen, chosen}, true);
    finish(members);
    sum_nll(members, &sums);
  }
  return sums;
}

double AblationForward::base(std::vector<double>* squares) {
  decoder_->advance(hidden_, decoder_->model().config().layers(), nullptr, cache());
  return sum_nll(hidden_, nullptr, squares);
}

std::vector<double> AblationForward::filtered(std::span<const std::size_t> layers, TensorView<const double, 4> gains,
                                              std::vector<double>* squares) {
  restart();
  decoder_->advance(hidden_, layers.front(), nullptr, cache());
  const std::size_t bins = gains.extent(3);
  std::vector<double> sums, keys, values;
  for (std::size_t first = 0; first < gains.extent(0); first += batch_members()) {
    const std::size_t count = std::min(batch_members(), gains.extent(0) - first);
    ResidualStream members = decoder_->repeat(hidden_, count);
    for (std::size_t n = 0; n < layers.size(); ++n) {
      keys.clear();
      values.clear();
      for (std::size_t variant = first; variant < first + count; ++variant) {
        const auto of_variant = gains.slice(variant);
        std::ranges::copy(of_variant.slice(0).slice(n).span(), std::back_inserter(keys));
        std::ranges::copy(of_variant.slice(1).slice(n).span(), std::back_inserter(values));
      }
      decoder_->advance(members, layers[n], nullptr, cache());
      advance_filtered(members, layers[n], {{keys, {count, bins}}, {values, {count, bins}}}, n == 0);
    }
    finish(members);
    sum_nll(members, &sums, squares);
  }
  return sums;
}

}  // namespace kvs::inline eval
