// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/cache.h"

#include <algorithm>
#include <optional>

#include "caches/token_rows.h"

namespace kvs::inline calibrate {
namespace {

constexpr std::size_t kAbsorbed = 8;  // maximum number of tokens that attend in the latent space

/// Returns [heads, chunks], 1 if a chunk is not rotated. Several query heads may share a KV head's set.
std::vector<std::uint8_t> unrotated_chunks(const std::vector<std::vector<std::size_t>>& elite, std::size_t heads,
                                           std::size_t chunks) {
  std::vector<std::uint8_t> mask(heads * chunks, 1);
  for (std::size_t head = 0; head < heads; ++head)
    for (const std::size_t chunk : elite[head * elite.size() / heads]) mask[head * chunks + chunk] = 0;
  return mask;
}

std::unique_ptr<Weight> make_weight(Backend& backend, const std::vector<float>& rows, std::size_t columns,
                                    const std::vector<float>& bias = {}) {
  WeightSource source{rows.size() / columns, columns, {}, bias};
  source.read = [&](std::size_t first, std::size_t count, std::span<float> out) {
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(first * columns), count * columns, out.begin());
  };
  return backend.make_weight(source);
}

/// Returns `view` as a matrix of rows.
BackendView<float, 2> as_rows(const BackendView<float, 4>& view, std::size_t columns) {
  return view.reshape<2>({view.size() / columns, columns});
}

}  // namespace

/// A row of the cache: the first channels of every head's elite chunks, their second channels, the latent.
class EliteProducts {
 public:
  EliteProducts(Backend& owner, const EliteLayer& layer, const EliteLayerShape& shape)
      : backend(&owner),
        geometry(shape),
        unrotated_q(unrotated_chunks(layer.elite, shape.query_heads, shape.chunks)),
        unrotated_k(unrotated_chunks(layer.elite, shape.kv_heads, shape.chunks)),
        rank(layer.rank) {
    for (const auto& head : layer.elite) elite.insert(elite.end(), head.begin(), head.end());
    if (rank == 0) return;
    if (!layer.query_rows.empty()) query = make_weight(owner, layer.query_rows, shape.d_model, layer.query_bias);
    if (!layer.output.empty()) output = make_weight(owner, layer.output, shape.query_heads * shape.head_dim);
    make_compress(layer);
    make_expand(layer);
  }

  std::size_t width() const noexcept { return 2 * elite.size() + rank; }
  std::size_t group() const noexcept { return geometry.query_heads / geometry.kv_heads; }

  Backend* backend;
  EliteLayerShape geometry;
  std::vector<std::uint8_t> unrotated_q, unrotated_k;  // [head, chunk]
  std::size_t rank;
  std::vector<std::size_t> elite;                        // [kv_head · pick]
  std::unique_ptr<Weight> query;                         // replaces W_q, or null
  std::unique_ptr<Weight> output;                        // multiplies the attention's output, or null
  std::unique_ptr<Weight> compress;                      // [width, d_model]: x → row
  std::unique_ptr<Weight> expand;                        // [2 · kv_heads · head_dim, width]: row → K, V
  std::vector<std::unique_ptr<Weight>> absorb, restore;  // [kv_head]: [width, head_dim] and [head_dim, width]

 private:
  void make_compress(const EliteLayer& layer) {
    const std::size_t columns = geometry.d_model, picks = elite.size() / geometry.kv_heads;
    std::vector<float> rows, bias;
    for (const std::size_t half : {std::size_t{0}, geometry.chunks})
      for (std::size_t n = 0; n < elite.size(); ++n) {
        const std::size_t row = n / picks * geometry.head_dim + elite[n] + half;
        const auto from = layer.key_rows.begin() + static_cast<std::ptrdiff_t>(row * columns);
        rows.insert(rows.end(), from, from + static_cast<std::ptrdiff_t>(columns));
        bias.push_back(layer.key_bias.empty() ? 0 : layer.key_bias[row]);
      }
    rows.insert(rows.end(), layer.down.begin(), layer.down.end());
    bias.resize(width());
    compress = make_weight(*backend, rows, columns, layer.key_bias.empty() ? std::vector<float>() : bias);
  }

  void make_expand(const EliteLayer& layer) {
    const std::size_t head_dim = geometry.head_dim, states = geometry.kv_heads * head_dim,
                      picks = elite.size() / geometry.kv_heads;
    std::vector<float> rows(2 * states * width()), bias(2 * states);
    std::size_t next = 0;  // row of up
    const auto take = [&](std::size_t row, float factor) {
      for (std::size_t i = 0; i < rank; ++i)
        rows[row * width() + 2 * elite.size() + i] = factor * layer.up[next * rank + i];
      ++next;
    };
    for (std::size_t row = 0; row < states; ++row) {
      const std::size_t head = row / head_dim, channel = row % head_dim;
      const auto begin = elite.begin() + static_cast<std::ptrdiff_t>(head * picks),
                 end = begin + static_cast<std::ptrdiff_t>(picks);
      const auto pick = channel < 2 * geometry.chunks ? std::find(begin, end, channel % geometry.chunks) : end;
      if (pick == end) {
        take(row, geometry.rope_factor);
        if (!layer.key_bias.empty()) bias[row] = geometry.rope_factor * layer.key_bias[row];
      } else {
        const auto column = static_cast<std::size_t>(pick - elite.begin());
        rows[row * width() + column + (channel < geometry.chunks ? 0 : elite.size())] = 1;
      }
    }
    for (std::size_t row = states; row < 2 * states; ++row) {
      take(row, 1);
      if (!layer.value_bias.empty()) bias[row] = layer.value_bias[row - states];
    }
    const bool biased = !layer.key_bias.empty() || !layer.value_bias.empty();
    expand = make_weight(*backend, rows, width(), biased ? bias : std::vector<float>());
    for (std::size_t head = 0; head < geometry.kv_heads; ++head) {
      // The softmax does not depend on a key's bias, which adds the same value to all scores of a query; there are no
      // sinks (attend_rows_of).
      std::vector<float> transposed(width() * head_dim);
      for (std::size_t channel = 0; channel < head_dim; ++channel)
        for (std::size_t i = 0; i < width(); ++i)
          transposed[i * head_dim + channel] = rows[(head * head_dim + channel) * width() + i];
      absorb.push_back(make_weight(*backend, transposed, head_dim));
      const auto first = static_cast<std::ptrdiff_t>(states + head * head_dim),
                 count = static_cast<std::ptrdiff_t>(head_dim), columns = static_cast<std::ptrdiff_t>(width());
      const std::vector<float> values(rows.begin() + first * columns, rows.begin() + (first + count) * columns),
          value_bias(bias.begin() + first, bias.begin() + first + count);
      restore.push_back(
          make_weight(*backend, values, width(), layer.value_bias.empty() ? std::vector<float>() : value_bias));
    }
  }
};

namespace {

/// Overwrites q with the layer's own W_q, if it has one, applied to x.
void project_queries(const LayerStates& states, const EliteProducts& products) {
  if (!products.query) return;
  const auto [members, heads, tokens, head_dim] = states.q.shape();
  const BackendTensor<float, 2> rows(states.backend, {members * tokens, heads * head_dim});
  states.backend.linear(states.x, *products.query, rows.view(), false);
  const BackendView<float, 4> none(std::span<float>(), {members, 0, tokens, head_dim});
  states.backend.split_heads(rows.view(), states.q, none, none);
  if (!states.query_factors.empty()) states.backend.scale_tokens(states.q, states.query_factors);
}

void rotate_elite(const LayerStates& states, const BackendView<float, 4>& x,
                  const std::vector<std::uint8_t>& unrotated) {
  states.backend.rope(x, states.rope, states.first_position, RopeDirection::kForward, {});
  states.backend.rope(x, states.rope, states.first_position, RopeDirection::kUnrotate, unrotated);
}

/// Stores keys, rotated only in their elite chunks, and values.
class PartialRopeCache final : public LayerCache {
 public:
  PartialRopeCache(std::shared_ptr<const EliteProducts> products, const KvTypes& types)
      : products_(std::move(products)), rows_(types) {}

  void attend(LayerStates& states, const Operand& out) override {
    rotate_elite(states, states.q, products_->unrotated_q);
    rotate_elite(states, states.k, products_->unrotated_k);
    const PastKv past = rows_.add(states);
    attend_rows(states, past, out);
  }
  CacheBytes bytes() const noexcept override { return rows_.bytes(); }

 private:
  std::shared_ptr<const EliteProducts> products_;
  TokenRows rows_;
};

class EliteCache final : public LayerCache {
 public:
  EliteCache(std::shared_ptr<const EliteProducts> products, const RowType& types)
      : products_(std::move(products)), rows_(types) {}

  void attend(LayerStates& states, const Operand& out) override {
    Backend& backend = states.backend;
    project_queries(states, *products_);
    rotate_elite(states, states.q, products_->unrotated_q);
    const std::size_t width = products_->width();
    const BackendTensor<float, 4> own(backend, {states.members(), 1, states.tokens(), width});
    backend.linear(states.x, *products_->compress, as_rows(own.view(), width), false);
    backend.rope(own.view(), elite_table(states), states.first_position, RopeDirection::kForward, {});
    const StoredRows past = states.members() == 1 ? rows_.add(backend, own.view()) : rows_.held();
    if (!products_->output) return attend_rows_of(states, past, own.view(), out);
    const OperandBuffer attended(backend, out.rows, out.columns);
    attend_rows_of(states, past, own.view(), attended.get());
    const BackendTensor<float, 2> corrected(backend, {out.rows, out.columns});
    backend.linear(attended.get(), *products_->output, corrected.view(), false);
    backend.narrow(corrected.view(), out);
  }

  CacheBytes bytes() const noexcept override { return rows_.bytes(); }

 private:
  void attend_rows_of(LayerStates& states, const StoredRows& past, const BackendView<float, 4>& own,
                      const Operand& out) const {
    // The latent form leaves biases out of scores and sums: it holds for weights that sum to 1.
    const bool few = past.count > 0 && states.tokens() <= kAbsorbed && states.members() == 1 && states.sinks.empty();
    if (few && products_->width() <= states.backend.max_head_dim()) {
      attend_latent(states, past, own, out);
    } else {
      attend_expanded(states, past, own, out);
    }
  }

  /// Returns the columns of the layer's table for the rows' elite chunks, with all heads as one.
  RopeTable elite_table(const LayerStates& states) {
    const auto& [cosine, sine, factor] = states.rope;
    if (cosine.data() != table_of_ || cosine_.view().extent(0) != cosine.extent(0)) {
      cosine_ = columns(states.backend, cosine);
      sine_ = columns(states.backend, sine);
      table_of_ = cosine.data();
    }
    return {cosine_.view(), sine_.view(), factor};
  }

  BackendTensor<float, 2> columns(Backend& backend, const BackendView<const float, 2>& table) const {
    const std::vector<float> all = download(backend, table);
    const std::size_t positions = table.extent(0), chunks = table.extent(1);
    std::vector<float> picked;
    picked.reserve(positions * products_->elite.size());
    for (std::size_t position = 0; position < positions; ++position)
      for (const std::size_t chunk : products_->elite) picked.push_back(all[position * chunks + chunk]);
    BackendTensor<float, 2> result(backend, {positions, products_->elite.size()});
    backend.upload(result.view().data(), picked.data(), result.bytes());
    return result;
  }

  /// Returns keys and values of rows [member, 1, count, width].
  TokenRows::Part expanded(Backend& backend, const BackendView<float, 4>& rows) const {
    const EliteLayerShape& shape = products_->geometry;
    const auto [members, one, count, width] = rows.shape();
    const OperandBuffer operand(backend, members * count, width);
    backend.narrow(as_rows(rows, width), operand.get());
    const BackendTensor<float, 2> kv(backend, {members * count, products_->expand->rows()});
    backend.linear(operand.get(), *products_->expand, kv.view(), false);
    const std::array<std::size_t, 4> states{members, shape.kv_heads, count, shape.head_dim};
    TokenRows::Part part{BackendTensor<float, 4>(backend, states), BackendTensor<float, 4>(backend, states)};
    const BackendView<float, 4> no_queries(std::span<float>(), {members, 0, count, shape.head_dim});
    backend.split_heads(kv.view(), no_queries, part.k.view(), part.v.view());
    return part;
  }

  void attend_expanded(LayerStates& states, const StoredRows& past, const BackendView<float, 4>& own,
                       const Operand& out) const {
    Backend& backend = states.backend;
    const TokenRows::Part fresh = expanded(backend, own);
    states.k = fresh.k.view();
    states.v = fresh.v.view();
    if (past.count == 0) return attend_rows(states, {}, out);
    const TokenRows::Part states_before = expanded(backend, rows_.copy(backend, 0, past.count).view());
    attend_rows(states, {states_before.k.view(), states_before.v.view(), past.count}, out);
  }

  void attend_latent(const LayerStates& states, const StoredRows& past, const BackendView<float, 4>& own,
                     const Operand& out) const {
    Backend& backend = states.backend;
    const EliteLayerShape& shape = products_->geometry;
    const std::size_t tokens = states.tokens(), width = products_->width(), group = products_->group();
    const OperandBuffer queries(backend, shape.query_heads * tokens, shape.head_dim);
    backend.narrow(as_rows(states.q, shape.head_dim), queries.get());
    const BackendTensor<float, 4> absorbed(backend, {1, shape.query_heads, tokens, width});
    for (std::size_t head = 0; head < shape.kv_heads; ++head) {
      const std::size_t first = head * group * tokens, count = group * tokens;
      backend.linear(operand_rows(backend, queries.get(), first, count), *products_->absorb[head],
                     {absorbed.view().span().subspan(first * width, count * width), {count, width}}, false);
    }
    const OperandBuffer mixed(backend, tokens * shape.query_heads, width);
    backend.attention({.q = absorbed.view(),
                       .k = own,
                       .v = own,
                       .past = {past, past},
                       .scale = states.scale,
                       .window = states.window,
                       .chunk = states.chunk,
                       .first_position = states.chunk > 0 ? states.first_position - past.count : 0,
                       .softcap = states.softcap},
                      {mixed.get().data, tokens, shape.query_heads * width});
    const BackendTensor<float, 2> values(backend, {tokens, shape.query_heads * shape.head_dim});
    for (std::size_t token = 0; token < tokens; ++token)
      for (std::size_t head = 0; head < shape.kv_heads; ++head) {
        const std::size_t first = token * shape.query_heads + head * group;
        const auto to = values.view().span().subspan(first * shape.head_dim, group * shape.head_dim);
        backend.linear(operand_rows(backend, mixed.get(), first, group), *products_->restore[head],
                       {to, {group, shape.head_dim}}, false);
      }
    backend.narrow(values.view(), out);
  }

  std::shared_ptr<const EliteProducts> products_;
  RowBuffer rows_;  // [1, 1, token, width]
  BackendTensor<float, 2> cosine_, sine_;
  const float* table_of_ = nullptr;
};

}  // namespace

std::shared_ptr<const EliteProducts> make_elite_products(Backend& backend, const EliteLayer& layer,
                                                         const EliteLayerShape& geometry) {
  return std::make_shared<EliteProducts>(backend, layer, geometry);
}

std::unique_ptr<LayerCache> make_elitekv_cache(std::shared_ptr<const EliteProducts> products, const KvTypes& types) {
  if (products->rank == 0) return std::make_unique<PartialRopeCache>(std::move(products), types);
  RowType rows = types.k;
  rows.format.split = static_cast<std::uint32_t>(2 * products->elite.size());
  return std::make_unique<EliteCache>(std::move(products), rows);
}

}  // namespace kvs::inline calibrate
