// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/codes.h"

#include "calibrate/transform/coder.h"
#include "calibrate/transform/storage_codes.h"
#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

/// Returns a table whose first position is `position`.
RopeTable from_position(RopeTable table, std::size_t position) {
  if (table.cosine.empty()) return table;
  const std::size_t positions = table.cosine.extent(0), chunks = table.cosine.extent(1);
  const auto rest = [&](const BackendView<const float, 2>& of) {
    return BackendView<const float, 2>(std::span(of.data() + position * chunks, (positions - position) * chunks),
                                       {positions - position, chunks});
  };
  table.cosine = rest(table.cosine);
  table.sine = rest(table.sine);
  return table;
}

/// TransformForm::kRandomAccess.
class LayerCodes final : public JointCodes {
 public:
  explicit LayerCodes(std::shared_ptr<const TransformProducts> of)
      : JointCodes(std::move(of)), rows_(products().types.k) {}

  std::size_t count() const noexcept override { return rows_.count(); }
  CacheBytes bytes() const noexcept override { return rows_.bytes(); }
  void drop_front(Backend& backend, std::size_t count) override { rows_.drop_front(backend, count); }

  std::vector<double> append(Backend& backend, std::span<const TokenStates> layers, std::size_t first,
                             const BackendView<const float, 4>& inputs) override {
    BackendCoding ops(backend);
    const RowValues fresh = row_values(ops, products(), layers, inputs);
    const std::size_t at = rows_.count(), count = fresh.k.extent(2) - first;
    rows_.append(backend, fresh.k, first, count);
    return error_costs(ops, products(), fresh, first, rows_.copy(backend, at, count));
  }

 private:
  RowBuffer::Part decode(Backend& backend, std::size_t first, std::size_t count) const override {
    return rows_.copy(backend, first, count);
  }

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
  TokenRows::Part copy(Backend& backend, std::size_t, std::size_t first, std::size_t count,
                       const BackendView<const float, 4>&) override {
    BackendCoding ops(backend);
    return states_of(ops, *products_, rows_.copy(backend, first, count));
  }
  bool attends() const noexcept override { return true; }

  std::vector<double> append(Backend& backend, std::span<const TokenStates> layers, std::size_t first,
                             const BackendView<const float, 4>&) override {
    BackendCoding ops(backend);
    const RowValues fresh = row_values(ops, *products_, layers);
    rows_.append(backend, fresh.k, fresh.v, first, fresh.k.extent(2) - first);
    return {};
  }

  /// Σ p v = S Σ p y + mean, because the weights p of a query sum to 1: values are read as coefficients y.
  void attend(const LayerStates& states, std::size_t first, const TokenRows::Part& late, const Operand& out) override {
    Backend& backend = states.backend;
    BackendCoding ops(backend);
    const RowBuffer::Part late_v = head_products(ops, products_->analysis, late.v.view()),
                          own_v = head_products(ops, products_->analysis, states.v);
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
  std::shared_ptr<const TransformProducts> products_;
  TokenRows rows_;
};

}  // namespace

void TransformCodes::attend(const LayerStates&, std::size_t, const TokenRows::Part&, const Operand&) {
  throw Error(ErrorCode::kInternal, "cache", "attention over codes that it cannot read");
}

TokenRows::Part JointCodes::copy(Backend& backend, std::size_t layer, std::size_t first, std::size_t count,
                                 const BackendView<const float, 4>& inputs) {
  BackendCoding ops(backend);
  if (products_->layers() == 1) return layer_states(ops, *products_, decode(backend, first, count).view(), 0, inputs);
  if (layer == 0) all_ = decode(backend, first, count);
  TokenRows::Part states = layer_states(ops, *products_, all_.view(), layer, inputs);
  if (layer + 1 == products_->layers()) all_ = {};
  return states;
}

std::unique_ptr<TransformCodes> make_transform_codes(std::shared_ptr<const TransformProducts> products) {
  if (products->entropy != nullptr) return make_storage_codes(std::move(products));
  if (products->rows == TransformRows::kLayer) return std::make_unique<LayerCodes>(std::move(products));
  return std::make_unique<HeadCodes>(std::move(products));
}

}  // namespace kvs::inline calibrate
