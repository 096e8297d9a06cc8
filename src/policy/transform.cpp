#include "policy/transform.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "core/error.h"
#include "policy/token_rows.h"
#include "policy/trellis_store.h"

namespace kvs {
namespace {

std::unique_ptr<Weight> make_weight(Backend& backend, std::size_t rows, std::size_t columns,
                                    const std::function<float(std::size_t row, std::size_t column)>& value,
                                    std::span<const float> bias = {}) {
  WeightSource source{rows, columns, {}, bias, true};
  source.read = [&](std::size_t first, std::size_t count, std::span<float> out) {
    for (std::size_t n = 0; n < count * columns; ++n) out[n] = value(first + n / columns, n % columns);
  };
  return backend.make_weight(source);
}

/// Rows [head, token] of states of one sequence as a matrix.
BackendView<float, 2> as_rows(const BackendView<float, 4>& states) {
  return states.reshape<2>({states.size() / states.extent(3), states.extent(3)});
}

/// Rows [token] of one head.
BackendView<float, 2> rows_of_head(const BackendView<float, 4>& states, std::size_t head) {
  const std::size_t tokens = states.extent(2), head_dim = states.extent(3);
  return {std::span(states.data() + head * tokens * head_dim, tokens * head_dim), {tokens, head_dim}};
}

StateStore outlier_store(std::size_t head_dim) {
  const RowFormat format{.kind = head_dim % 32 == 0 ? RowKind::kQ8_0 : RowKind::kF16};
  return {{format}, {format}};
}

}  // namespace

class TransformProducts {
 public:
  TransformProducts(Backend& backend, const TransformLayer& layer, const TransformShape& given)
      : shape(given),
        sinks(layer.sinks),
        threshold(layer.threshold),
        outliers(layer.outliers),
        weights(layer.weights),
        store(trellis_store(layer.books, layer.bits, layer.weights)) {
    const std::size_t values = layer.values(), head_dim = shape.head_dim;
    std::vector<float> bias(values);
    for (std::size_t n = 0; n < values; ++n) {
      double sum = 0;
      for (std::size_t i = 0; i < values; ++i)
        sum -= static_cast<double>(layer.analysis[n * values + i]) * static_cast<double>(layer.mean[i]);
      bias[n] = static_cast<float>(sum);
    }
    for (std::size_t first = 0; first < values; first += head_dim)
      analysis.push_back(make_weight(
          backend, values, head_dim,
          [&](std::size_t row, std::size_t column) { return layer.analysis[row * values + first + column]; },
          first == 0 ? std::span<const float>(bias) : std::span<const float>()));
    synthesis = make_weight(
        backend, values, values,
        [&](std::size_t row, std::size_t column) { return layer.synthesis[row * values + column]; }, layer.mean);
  }

  TransformShape shape;
  std::size_t sinks;
  double threshold, outliers;
  std::vector<float> weights;                     // [coefficient]
  RowStore store;                                 // of coefficients
  std::vector<std::unique_ptr<Weight>> analysis;  // of each head's keys, then of each head's values: [value, head_dim]
  std::unique_ptr<Weight> synthesis;              // [value, value]
};

namespace {

class TransformCache final : public LayerCache {
 public:
  explicit TransformCache(std::shared_ptr<const TransformProducts> products)
      : products_(std::move(products)), coded_(products_->store), outliers_(outlier_store(products_->shape.head_dim)) {}

  void attend(LayerStates& states, const Operand& out) override {
    if (states.members() > 1) throw Error(ErrorCode::kInternal, "cache", "coded rows of several members");
    const std::size_t before = count();
    add(states);
    rotate_at(states, states.first_position);
    if (before == 0) return attend_rows(states, {}, out);
    const TokenRows::Part past = read(states.backend, before);
    states.backend.rope(past.k.view(), states.rope, 0, RopeDirection::kForward, {});
    attend_rows(states, {past.k.view(), past.v.view(), before}, out);
  }

  /// Keeps the new tokens and leaves in `states` what they are held as.
  void add(const LayerStates& states) {
    Backend& backend = states.backend;
    const std::size_t tokens = states.tokens(), first = count(),
                      plain = std::min(tokens, products_->sinks - std::min(products_->sinks, first));
    if (plain > 0) sinks_.append(backend, states.k, states.v, 0, plain);
    if (plain == tokens) return;
    const BackendTensor<float, 4> fresh = coefficients(states);
    const std::size_t at = coded_.count(), count = tokens - plain;
    coded_.append(backend, fresh.view(), plain, count);
    const RowBuffer::Part held = coded_.copy(backend, at, count);
    const std::vector<double> costs = costs_of(backend, fresh.view(), plain, held.view());
    for (std::size_t token = 0; token < count; ++token)
      if (costs[token] > threshold(at + token)) {
        outliers_.append(backend, states.k, states.v, plain + token, 1);
        places_.push_back(static_cast<std::uint32_t>(at + token));
      }
    put(backend, expanded(backend, held.view()), states.k, states.v, plain);
    restore(backend, states.k, states.v, first);
  }

  CacheBytes bytes() const noexcept override {
    CacheBytes bytes = coded_.bytes();
    bytes += sinks_.bytes();
    bytes += outliers_.bytes();
    const std::size_t places = places_.size() * sizeof(std::uint32_t);
    return bytes += {.stored = places, .used = places};
  }

 private:
  std::size_t count() const noexcept { return sinks_.count() + coded_.count(); }

  /// [1, 1, token, value]
  BackendTensor<float, 4> coefficients(const LayerStates& states) const {
    Backend& backend = states.backend;
    const std::size_t tokens = states.tokens(), heads = products_->shape.kv_heads;
    BackendTensor<float, 4> rows(backend, {1, 1, tokens, products_->weights.size()});
    for (std::size_t n = 0; n < 2 * heads; ++n)
      backend.linear_f32(rows_of_head(n < heads ? states.k : states.v, n % heads), *products_->analysis[n],
                         as_rows(rows.view()), n > 0);
    return rows;
  }

  /// For coded token `token`, when those before it are held.
  double threshold(std::size_t token) const {
    const double excess = static_cast<double>(places_.size()) - products_->outliers * static_cast<double>(token);
    if (excess > kMoreOutliers - 1) return std::numeric_limits<double>::infinity();
    return products_->threshold * std::exp2(std::max(0.0, excess));
  }

  /// What the errors of each token of `held` cost; token n is row `first` + n of `fresh`.
  std::vector<double> costs_of(Backend& backend, const BackendView<float, 4>& fresh, std::size_t first,
                               const BackendView<float, 4>& held) const {
    const std::vector<float> wanted = download(backend, fresh), found = download(backend, held);
    const std::size_t values = held.extent(3);
    std::vector<double> costs;
    for (std::size_t token = 0; token < held.extent(2); ++token) {
      double cost = 0;
      for (std::size_t n = 0; n < values; ++n) {
        const double error =
            static_cast<double>(found[token * values + n]) - static_cast<double>(wanted[(first + token) * values + n]);
        cost += static_cast<double>(products_->weights[n]) * error * error;
      }
      costs.push_back(cost);
    }
    return costs;
  }

  /// Keys before RoPE and values that coefficients [1, 1, token, value] stand for.
  TokenRows::Part expanded(Backend& backend, const BackendView<float, 4>& rows) const {
    const std::size_t tokens = rows.extent(2), values = rows.extent(3);
    const auto [heads, head_dim] = products_->shape;
    const BackendTensor<float, 2> states(backend, {tokens, values});
    backend.linear_f32(as_rows(rows), *products_->synthesis, states.view(), false);
    TokenRows::Part part{BackendTensor<float, 4>(backend, {1, heads, tokens, head_dim}),
                         BackendTensor<float, 4>(backend, {1, heads, tokens, head_dim})};
    const BackendView<float, 4> no_queries(std::span<float>(), {1, 0, tokens, head_dim});
    backend.split_heads(states.view(), no_queries, part.k.view(), part.v.view());
    return part;
  }

  /// Overwrites tokens of k and v [1, head, token, head_dim] from `first` on.
  static void put(Backend& backend, const TokenRows::Part& part, const BackendView<float, 4>& k,
                  const BackendView<float, 4>& v, std::size_t first) {
    const auto [one, heads, count, head_dim] = part.k.view().shape();
    for (std::size_t head = 0; head < heads; ++head)
      for (const auto& [from, to] : {std::pair(part.k.view(), k), std::pair(part.v.view(), v)})
        backend.copy(to.data() + (head * to.extent(2) + first) * head_dim, from.data() + head * count * head_dim,
                     count * head_dim * sizeof(float));
  }

  /// Overwrites sinks and outliers among the tokens from position `first` on.
  void restore(Backend& backend, const BackendView<float, 4>& k, const BackendView<float, 4>& v,
               std::size_t first) const {
    const std::size_t tokens = k.extent(2), sinks = sinks_.count();
    if (first < sinks) put(backend, sinks_.copy(backend, first, std::min(tokens, sinks - first)), k, v, 0);
    const auto row_of = [&](std::size_t position) {
      const auto place = static_cast<std::uint32_t>(std::max(position, sinks) - sinks);
      return static_cast<std::size_t>(std::ranges::lower_bound(places_, place) - places_.begin());
    };
    for (std::size_t row = row_of(first), end = row_of(first + tokens); row < end; ++row)
      put(backend, outliers_.copy(backend, row, 1), k, v, sinks + places_[row] - first);
  }

  /// The first `tokens` tokens, keys before RoPE.
  TokenRows::Part read(Backend& backend, std::size_t tokens) const {
    const auto [heads, head_dim] = products_->shape;
    const std::size_t plain = std::min(tokens, sinks_.count());
    TokenRows::Part part{BackendTensor<float, 4>(backend, {1, heads, tokens, head_dim}),
                         BackendTensor<float, 4>(backend, {1, heads, tokens, head_dim})};
    if (plain < tokens)
      put(backend, expanded(backend, coded_.copy(backend, 0, tokens - plain).view()), part.k.view(), part.v.view(),
          plain);
    restore(backend, part.k.view(), part.v.view(), 0);
    return part;
  }

  std::shared_ptr<const TransformProducts> products_;
  RowBuffer coded_;                    // [1, 1, token, value], from the token after the sinks on
  TokenRows sinks_, outliers_;         // keys before RoPE
  std::vector<std::uint32_t> places_;  // in coded_ of the tokens in outliers_, ascending
};

}  // namespace

std::shared_ptr<const TransformProducts> make_transform_products(Backend& backend, const TransformLayer& layer,
                                                                 const TransformShape& shape) {
  return std::make_shared<TransformProducts>(backend, layer, shape);
}

std::unique_ptr<LayerCache> make_transform_cache(std::shared_ptr<const TransformProducts> products) {
  return std::make_unique<TransformCache>(std::move(products));
}

void hold_transformed(std::shared_ptr<const TransformProducts> products, const LayerStates& states) {
  TransformCache(std::move(products)).add(states);
}

std::size_t outlier_bytes(const TransformShape& shape) noexcept {
  const std::size_t head = rows_bytes(outlier_store(shape.head_dim).k.format, shape.head_dim, 1);
  return 2 * shape.kv_heads * head + sizeof(std::uint32_t);
}

}  // namespace kvs
