#include "calibrate/transform/codes.h"

#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

/// Returns rows [head, token] of states of one sequence as a matrix.
BackendView<float, 2> as_rows(const BackendView<float, 4>& states) {
  return states.reshape<2>({states.size() / states.extent(3), states.extent(3)});
}

/// Returns rows [token] of one head.
BackendView<float, 2> rows_of_head(const BackendView<float, 4>& states, std::size_t head) {
  const std::size_t tokens = states.extent(2), head_dim = states.extent(3);
  return {std::span(states.data() + head * tokens * head_dim, tokens * head_dim), {tokens, head_dim}};
}

/// Returns a table whose first position is `position`.
RopeTable from_position(RopeTable table, std::size_t position) {
  if (table.cosine.empty()) return table;
  const auto [positions, chunks] = table.cosine.shape();
  const auto rest = [&](const BackendView<const float, 2>& of) {
    return BackendView<const float, 2>(std::span(of.data() + position * chunks, (positions - position) * chunks),
                                       {positions - position, chunks});
  };
  table.cosine = rest(table.cosine);
  table.sine = rest(table.sine);
  return table;
}

/// TransformRows::kLayer: rows of coefficients, [1, 1, token, value].
class LayerCodes final : public TransformCodes {
 public:
  explicit LayerCodes(std::shared_ptr<const TransformProducts> products)
      : products_(std::move(products)), rows_(products_->types.k) {}

  std::size_t count() const noexcept override { return rows_.count(); }
  CacheBytes bytes() const noexcept override { return rows_.bytes(); }
  void drop_front(Backend& backend, std::size_t count) override { rows_.drop_front(backend, count); }
  TokenRows::Part copy(Backend& backend) const override {
    return states_of(backend, rows_.copy(backend, 0, rows_.count()).view());
  }

  Coded append(Backend& backend, const BackendView<float, 4>& k, const BackendView<float, 4>& v,
               std::size_t first) override {
    const BackendTensor<float, 4> fresh = coefficients(backend, k, v);
    const std::size_t at = rows_.count(), count = k.extent(2) - first;
    rows_.append(backend, fresh.view(), first, count);
    const RowBuffer::Part held = rows_.copy(backend, at, count);
    return {states_of(backend, held.view()), costs_of(backend, fresh.view(), first, held.view())};
  }

 private:
  BackendTensor<float, 4> coefficients(Backend& backend, const BackendView<float, 4>& k,
                                       const BackendView<float, 4>& v) const {
    const std::size_t tokens = k.extent(2), heads = products_->shape.kv_heads;
    BackendTensor<float, 4> rows(backend, {1, 1, tokens, products_->weights.size()});
    for (std::size_t n = 0; n < 2 * heads; ++n)
      backend.linear_f32(rows_of_head(n < heads ? k : v, n % heads), *products_->analysis[n], as_rows(rows.view()),
                         n > 0);
    return rows;
  }

  TokenRows::Part states_of(Backend& backend, const BackendView<float, 4>& rows) const {
    const std::size_t tokens = rows.extent(2), values = rows.extent(3);
    const BackendTensor<float, 2> states(backend, {tokens, values});
    backend.linear_f32(as_rows(rows), *products_->synthesis.front(), states.view(), false);
    TokenRows::Part part = empty_part(backend, products_->shape, tokens);
    const BackendView<float, 4> no_queries(std::span<float>(), {1, 0, tokens, products_->shape.head_dim});
    backend.split_heads(states.view(), no_queries, part.k.view(), part.v.view());
    return part;
  }

  /// Returns the cost of the errors of each token of `held`; token n is row `first` + n of `fresh`.
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

  std::shared_ptr<const TransformProducts> products_;
  RowBuffer rows_;
};

/// TransformRows::kHead: rows of keys, and of the values' coefficients, [1, kv_head, token, head_dim].
class HeadCodes final : public TransformCodes {
 public:
  explicit HeadCodes(std::shared_ptr<const TransformProducts> products)
      : products_(std::move(products)), rows_(products_->types) {}

  std::size_t count() const noexcept override { return rows_.count(); }
  CacheBytes bytes() const noexcept override { return rows_.bytes(); }
  void drop_front(Backend& backend, std::size_t count) override { rows_.drop_front(backend, count); }
  TokenRows::Part copy(Backend& backend) const override { return states_of(backend, 0, rows_.count()); }
  bool attends() const noexcept override { return true; }

  Coded append(Backend& backend, const BackendView<float, 4>& k, const BackendView<float, 4>& v,
               std::size_t first) override {
    const std::size_t at = rows_.count(), count = k.extent(2) - first;
    rows_.append(backend, k, multiplied(backend, v, products_->analysis).view(), first, count);
    return {states_of(backend, at, count), {}};
  }

  /// Σ p v = S Σ p y + mean, because the weights p of a query sum to 1: values are read as coefficients y.
  void attend(const LayerStates& states, std::size_t first, const TokenRows::Part& late, const Operand& out) override {
    Backend& backend = states.backend;
    const RowBuffer::Part late_v = multiplied(backend, late.v.view(), products_->analysis),
                          own_v = multiplied(backend, states.v, products_->analysis);
    const std::size_t tokens = late.k.view().extent(2);
    PastKv past(rows_.held().k, rows_.held().v, {late.k.view(), tokens}, {late_v.view(), tokens});
    past.slots = from_position(states.rope, first);
    LayerStates by_coefficients = states;
    by_coefficients.v = own_v.view();
    attend_rows(by_coefficients, past, out);
    const std::size_t heads = states.q.extent(1), head_dim = states.q.extent(3),
                      group = heads / products_->shape.kv_heads;
    const BackendTensor<float, 2> results(backend, {heads, head_dim});
    for (std::size_t head = 0; head < products_->results.size(); ++head)
      backend.linear(operand_rows(backend, {out.data, heads, head_dim}, head * group, group), *products_->results[head],
                     {std::span(results.view().data() + head * group * head_dim, group * head_dim), {group, head_dim}},
                     false);
    backend.narrow(results.view().reshape<2>({1, heads * head_dim}), out);
  }

 private:
  /// Multiplies each head's rows by its weight.
  static RowBuffer::Part multiplied(Backend& backend, const BackendView<float, 4>& v,
                                    const TransformProducts::Weights& weights) {
    RowBuffer::Part part(backend, v.shape());
    for (std::size_t head = 0; head < weights.size() && v.extent(2) > 0; ++head)
      backend.linear_f32(rows_of_head(v, head), *weights[head], rows_of_head(part.view(), head), false);
    return part;
  }

  TokenRows::Part states_of(Backend& backend, std::size_t first, std::size_t count) const {
    TokenRows::Part part = rows_.copy(backend, first, count);
    part.v = multiplied(backend, part.v.view(), products_->synthesis);
    return part;
  }

  std::shared_ptr<const TransformProducts> products_;
  TokenRows rows_;
};

}  // namespace

void TransformCodes::attend(const LayerStates&, std::size_t, const TokenRows::Part&, const Operand&) {
  throw Error(ErrorCode::kInternal, "cache", "attention over codes that it cannot read");
}

TokenRows::Part empty_part(Backend& backend, const TransformShape& shape, std::size_t tokens) {
  const auto [heads, head_dim] = shape;
  return {BackendTensor<float, 4>(backend, {1, heads, tokens, head_dim}),
          BackendTensor<float, 4>(backend, {1, heads, tokens, head_dim})};
}

std::unique_ptr<TransformCodes> make_transform_codes(std::shared_ptr<const TransformProducts> products) {
  if (products->rows == TransformRows::kLayer) return std::make_unique<LayerCodes>(std::move(products));
  return std::make_unique<HeadCodes>(std::move(products));
}

}  // namespace kvs::inline calibrate
