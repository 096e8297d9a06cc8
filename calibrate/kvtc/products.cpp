// SPDX-License-Identifier: Apache-2.0
#include "calibrate/kvtc/products.h"

#include <algorithm>
#include <utility>

namespace kvs::inline calibrate {
namespace {

/// Where a head's values are in a pool's rows: values [first, first + head_dim).
struct HeadPlace {
  std::size_t layer, head, first;
};

std::vector<HeadPlace> places_of(std::span<const KvtcHeads> heads) {
  std::vector<HeadPlace> places;
  std::size_t first = 0;
  for (std::size_t layer = 0; layer < heads.size(); ++layer)
    for (std::size_t head = 0; head < heads[layer].kv_heads; ++head, first += heads[layer].head_dim)
      places.push_back({layer, head, first});
  return places;
}

/// x · Wᵀ of rows on the host. @param x  [row, column]
std::vector<float> product(Backend& backend, std::span<const float> x, std::size_t rows, const Weight& weight) {
  const std::size_t columns = x.size() / rows;
  const BackendTensor<float, 2> in(backend, {rows, columns}), out(backend, {rows, weight.rows()});
  backend.upload(in.view().data(), x.data(), x.size() * sizeof(float));
  backend.linear_f32(in.view(), weight, out.view(), false);
  return download(backend, out.view());
}

}  // namespace

KvtcProducts::Weights KvtcProducts::weights_of(Backend& backend, const KvtcSide& side) {
  const std::size_t values = side.values(), components = side.components();
  const std::span<const float> basis = side.basis;
  const auto rows = [=](std::size_t row, std::size_t count, std::span<float> out) {
    std::ranges::copy(basis.subspan(row * values, count * values), out.begin());
  };
  const auto columns = [=](std::size_t column, std::size_t count, std::span<float> out) {
    for (std::size_t n = 0; n < count; ++n)
      for (std::size_t row = 0; row < components; ++row) out[n * components + row] = basis[row * values + column + n];
  };
  return {backend.make_weight({components, values, rows, {}, true}),
          backend.make_weight({values, components, columns, {}, true})};
}

KvtcProducts::KvtcProducts(Backend& backend, KvtcPool pool, const KvtcTokens& tokens, std::vector<KvtcHeads> heads)
    : pool_(std::move(pool)),
      tokens_(tokens),
      heads_(std::move(heads)),
      keys_(weights_of(backend, pool_.keys)),
      values_(weights_of(backend, pool_.values)) {}

KvtcBlock KvtcProducts::encode(Backend& backend, std::span<const TokenRows::Part> states) const {
  const std::size_t tokens = states.front().k.view().extent(2);
  const std::vector<HeadPlace> places = places_of(heads_);
  const auto components = [&](RowBuffer::Part TokenRows::Part::*part, const KvtcSide& side, const Weight& analysis) {
    std::vector<std::vector<float>> layers;
    layers.reserve(states.size());
    for (const TokenRows::Part& layer : states) layers.push_back(download(backend, (layer.*part).view()));
    std::vector<float> rows(tokens * side.values());
    for (const auto& [layer, head, first] : places) {
      const std::size_t head_dim = heads_[layer].head_dim;
      for (std::size_t token = 0; token < tokens; ++token)
        for (std::size_t channel = 0; channel < head_dim; ++channel)
          rows[token * side.values() + first + channel] =
              layers[layer][(head * tokens + token) * head_dim + channel] - side.mean[first + channel];
    }
    return product(backend, rows, tokens, analysis);
  };
  return encode_block({components(&TokenRows::Part::k, pool_.keys, *keys_.analysis),
                       components(&TokenRows::Part::v, pool_.values, *values_.analysis)},
                      pool_, tokens);
}

std::vector<TokenRows::Part> KvtcProducts::decode(Backend& backend, const KvtcBlock& block) const {
  const KvtcRows decoded = decode_block(block, pool_);
  const std::vector<HeadPlace> places = places_of(heads_);
  std::vector<TokenRows::Part> parts;
  parts.reserve(heads_.size());
  for (const KvtcHeads& heads : heads_) {
    const auto empty = [&] { return RowBuffer::Part(backend, {1, heads.kv_heads, block.tokens, heads.head_dim}); };
    parts.push_back({empty(), empty()});
  }
  const auto restore = [&](RowBuffer::Part TokenRows::Part::*part, const KvtcSide& side, std::span<const float> of,
                           const Weight& synthesis) {
    const std::vector<float> rows = product(backend, of, block.tokens, synthesis);
    std::vector<std::vector<float>> layers;
    layers.reserve(heads_.size());
    for (const KvtcHeads& heads : heads_) layers.emplace_back(block.tokens * heads.values());
    for (const auto& [layer, head, first] : places) {
      const std::size_t head_dim = heads_[layer].head_dim;
      for (std::size_t token = 0; token < block.tokens; ++token)
        for (std::size_t channel = 0; channel < head_dim; ++channel)
          layers[layer][(head * block.tokens + token) * head_dim + channel] =
              rows[token * side.values() + first + channel] + side.mean[first + channel];
    }
    for (std::size_t n = 0; n < layers.size(); ++n)
      backend.upload((parts[n].*part).view().data(), layers[n].data(), layers[n].size() * sizeof(float));
  };
  restore(&TokenRows::Part::k, pool_.keys, decoded.keys, *keys_.synthesis);
  restore(&TokenRows::Part::v, pool_.values, decoded.values, *values_.synthesis);
  return parts;
}

}  // namespace kvs::inline calibrate
