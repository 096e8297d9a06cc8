// SPDX-License-Identifier: Apache-2.0
#include "calibrate/kvtc/moments.h"

#include <Eigen/Core>
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "calibrate/common/saved_sums.h"
#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

using FloatRows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using SquareSums = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Index to_index(std::size_t n) { return static_cast<Eigen::Index>(n); }

/// Cuts a pool into neighbouring layers of at most kMaxPoolValues, or one layer.
std::vector<KvtcLayers> cut_pool(const KvtcLayers& pool) {
  const std::size_t parts = (pool.values() + kMaxPoolValues - 1) / kMaxPoolValues, count = pool.layers.size();
  std::vector<KvtcLayers> cut;
  cut.reserve(parts);
  for (std::size_t n = 0; n < std::min(parts, count); ++n) {
    const auto first = static_cast<std::ptrdiff_t>(n * count / parts),
               last = static_cast<std::ptrdiff_t>((n + 1) * count / parts);
    if (first == last) continue;
    cut.push_back({{pool.layers.begin() + first, pool.layers.begin() + last},
                   {pool.heads.begin() + first, pool.heads.begin() + last},
                   pool.window});
  }
  return cut;
}

/// sum += Σ x xᵀ, lower triangle, in blocks of columns. A document's products are in f32.
void add_products(const FloatRows& rows, std::vector<double>& sum) {
  constexpr std::size_t kBlock = 192;
  const auto values = static_cast<std::size_t>(rows.cols()), blocks = (values + kBlock - 1) / kBlock;
  Eigen::Map<SquareSums> all(sum.data(), rows.cols(), rows.cols());
#pragma omp parallel for schedule(dynamic)
  for (std::size_t pair = 0; pair < blocks * blocks; ++pair) {
    const std::size_t row = pair / blocks * kBlock, column = pair % blocks * kBlock;
    if (column > row) continue;
    const Eigen::Index height = to_index(std::min(kBlock, values - row)),
                       width = to_index(std::min(kBlock, values - column));
    const FloatRows product =
        rows.middleCols(to_index(row), height).transpose() * rows.middleCols(to_index(column), width);
    all.block(to_index(row), to_index(column), height, width) += product.cast<double>();
  }
}

}  // namespace

std::size_t KvtcLayers::values() const noexcept {
  std::size_t sum = 0;
  for (const KvtcHeads& each : heads) sum += each.values();
  return sum;
}

std::vector<KvtcLayers> kvtc_pools(const ModelConfig& model) {
  std::map<std::tuple<std::size_t, std::size_t>, KvtcLayers> kinds;  // [window, chunk]
  for (const std::size_t layer : model.cached_layers()) {
    const AttentionConfig& attention = model.layer[layer].attention;
    KvtcLayers& pool = kinds[{attention.window, attention.chunk}];
    pool.layers.push_back(layer);
    pool.heads.push_back({attention.kv_heads, attention.head_dim});
    pool.window = model.window(layer);
  }
  std::vector<KvtcLayers> pools;
  for (const auto& [kind, pool] : kinds) {
    std::vector<KvtcLayers> cut = cut_pool(pool);
    pools.insert(pools.end(), std::make_move_iterator(cut.begin()), std::make_move_iterator(cut.end()));
  }
  return pools;
}

KvtcMoments::KvtcMoments(std::vector<KvtcLayers> pools, std::size_t sinks, std::size_t run)
    : pools_(std::move(pools)), sinks_(sinks), run_(run), sums_(pools_.size()), counts_(1) {
  for (std::size_t pool = 0; pool < pools_.size(); ++pool)
    for (const Side side : {kKeys, kValues}) {
      const std::size_t values = pools_[pool].values();
      sums_[pool].sums[side].resize(values);
      sums_[pool].outers[side].resize(values * values);
    }
}

/// Returns the tokens of a document that are kept: runs at even distances, together kSamples of all documents.
std::vector<std::size_t> KvtcMoments::sampled(std::size_t document, std::size_t documents, std::size_t tokens) const {
  const std::size_t coded = tokens - sinks_, run = std::min(run_, coded), all = (kSamples + run - 1) / run,
                    share = (document + 1) * all / documents - document * all / documents,
                    runs = std::min(share, coded / run);
  std::vector<std::size_t> chosen;
  for (std::size_t n = 0; n < runs; ++n)
    for (std::size_t token = 0; token < run; ++token)
      chosen.push_back(sinks_ + n * coded / runs + (coded / runs - run) / 2 + token);
  return chosen;
}

void KvtcMoments::add(StateSource& source, std::size_t document) {
  const std::size_t tokens = source.tokens();
  if (tokens <= sinks_) throw Error(ErrorCode::kInternal, "kvtc", "a document of sinks alone");
  StateNeeds needs{.layers = {}, .states = {StateKind::kKPre, StateKind::kV}};
  std::map<std::size_t, std::pair<std::size_t, std::size_t>> places;  // [layer]: pool, first value
  std::vector<std::array<std::vector<float>, 2>> rows(pools_.size());
  for (std::size_t pool = 0; pool < pools_.size(); ++pool) {
    std::size_t first = 0;
    for (std::size_t n = 0; n < pools_[pool].layers.size(); ++n) {
      needs.layers.push_back(pools_[pool].layers[n]);
      places[pools_[pool].layers[n]] = {pool, first};
      first += pools_[pool].heads[n].values();
    }
    for (std::vector<float>& side : rows[pool]) side.resize((tokens - sinks_) * first);
  }
  std::ranges::sort(needs.layers);
  source.visit(document, needs, [&](const DocumentStates& states) {
    const auto [pool, first] = places.at(states.layer);
    for (const Side side : {kKeys, kValues}) {
      const BackendView<const float, 3> view = states[side == kKeys ? StateKind::kKPre : StateKind::kV];
      const std::vector<float> of_layer = download(source.backend(), view);
      const std::size_t heads = view.extent(0), head_dim = view.extent(2), values = pools_[pool].values();
      for (std::size_t head = 0; head < heads; ++head)
        for (std::size_t token = sinks_; token < tokens; ++token)
          std::copy_n(&of_layer[(head * tokens + token) * head_dim], head_dim,
                      &rows[pool][side][(token - sinks_) * values + first + head * head_dim]);
    }
  });
  const std::vector<std::size_t> kept = sampled(document, source.documents(), tokens);
  for (std::size_t pool = 0; pool < pools_.size(); ++pool)
    for (const Side side : {kKeys, kValues}) add_rows(pool, side, rows[pool][side], kept);
  counts_[0] += static_cast<double>(tokens - sinks_);
}

/// @param rows  [token after the sinks, value]
void KvtcMoments::add_rows(std::size_t pool, Side side, const std::vector<float>& rows,
                           const std::vector<std::size_t>& sampled) {
  const std::size_t values = pools_[pool].values();
  PoolSums& sums = sums_[pool];
  for (const std::size_t token : sampled) {
    const auto row = rows.begin() + static_cast<std::ptrdiff_t>((token - sinks_) * values);
    sums.samples[side].insert(sums.samples[side].end(), row, row + static_cast<std::ptrdiff_t>(values));
  }
  const Eigen::Map<const FloatRows> x(rows.data(), to_index(rows.size() / values), to_index(values));
  Eigen::Map<Eigen::VectorXd>(sums.sums[side].data(), to_index(values)) += x.cast<double>().colwise().sum().transpose();
  add_products(x, sums.outers[side]);
}

std::vector<double> KvtcMoments::mean(std::size_t pool, Side side) const {
  std::vector<double> mean = sums_[pool].sums[side];
  for (double& value : mean) value /= counts_[0];
  return mean;
}

std::vector<double> KvtcMoments::covariance(std::size_t pool, Side side) const {
  const std::vector<double> center = mean(pool, side);
  std::vector<double> covariance = sums_[pool].outers[side];
  const std::size_t values = center.size();
  for (std::size_t row = 0; row < values; ++row)
    for (std::size_t column = 0; column <= row; ++column) {
      const double value = covariance[row * values + column] / counts_[0] - center[row] * center[column];
      covariance[row * values + column] = covariance[column * values + row] = value;
    }
  return covariance;
}

std::vector<float> KvtcMoments::samples(std::size_t pool, Side side) const {
  const std::vector<double>& rows = sums_[pool].samples[side];
  return {rows.begin(), rows.end()};
}

std::vector<std::span<const double>> KvtcMoments::state() const {
  std::vector<std::span<const double>> state{counts_};
  for (const PoolSums& pool : sums_)
    for (const Side side : {kKeys, kValues})
      state.insert(state.end(), {pool.sums[side], pool.outers[side], pool.samples[side]});
  return state;
}

void KvtcMoments::restore(std::span<const std::vector<double>> state) {
  std::vector<SavedSum> sums{{&counts_}};
  for (PoolSums& pool : sums_)
    for (const Side side : {kKeys, kValues})
      sums.insert(sums.end(), {{&pool.sums[side]}, {&pool.outers[side]}, {&pool.samples[side], true}});
  restore_sums(state, sums);
}

}  // namespace kvs::inline calibrate
