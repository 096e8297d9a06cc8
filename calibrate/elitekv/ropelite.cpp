// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/ropelite.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/interrupt.h"

namespace kvs::inline calibrate {
namespace {

void check_count(std::size_t count, std::size_t chunks) {
  if (count == 0 || count > chunks)
    throw Error(
        ErrorCode::kUsage, "elite chunks",
        "found " + std::to_string(count) + ", expected 1 to " + std::to_string(chunks) + " (rotated channels / 2)");
}

/// The chunks of one head that are not rotated yet, and the squared error that they cause.
class Remainder {
 public:
  explicit Remainder(TensorView<const double, 2> gram) : gram_(gram), left_(gram.extent(0)), sums_(gram.extent(0)) {
    std::iota(left_.begin(), left_.end(), std::size_t{0});
    update();
  }

  const std::vector<std::size_t>& left() const noexcept { return left_; }
  double error() const noexcept { return error_; }
  /// Returns the error if `chunk` were rotated too.
  double error_without(std::size_t chunk) const noexcept { return error_ - 2 * sums_[chunk] + gram_(chunk, chunk); }
  void rotate(std::size_t chunk) {
    std::erase(left_, chunk);
    update();
  }

 private:
  void update() {
    error_ = 0;
    for (const std::size_t row : left_) {
      sums_[row] = 0;
      for (const std::size_t column : left_) sums_[row] += gram_(row, column);
      error_ += sums_[row];
    }
    error_ = std::max(error_, 0.0);  // a sum of squares; rounding may make it negative
  }

  TensorView<const double, 2> gram_;
  std::vector<std::size_t> left_;
  std::vector<double> sums_;  // [chunk]: sum of its row over the remaining chunks
  double error_ = 0;
};

/// Adds Σ over tokens of the length of each 2-D chunk. states: [head, token, head_dim]; sums: [head, chunk].
void add_norms(DeviceMemory& device, BackendView<const float, 3> view, std::size_t chunks, double* sums) {
  const auto [heads, tokens, head_dim] = view.shape();
  const std::vector<float> states = download(device, view);
  for (std::size_t head = 0; head < heads; ++head) {
    double* sum = sums + head * chunks;
    for (std::size_t token = 0; token < tokens; ++token) {
      const float* x = states.data() + (head * tokens + token) * head_dim;
      for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
        const double low = x[chunk], high = x[chunk + chunks];
        sum[chunk] += std::sqrt(low * low + high * high);
      }
    }
  }
}

std::size_t index_of(const std::vector<std::size_t>& layers, std::size_t layer) {
  const auto at = std::ranges::lower_bound(layers, layer);
  if (at == layers.end() || *at != layer)
    throw Error(ErrorCode::kInternal, "elite search", "layer " + std::to_string(layer) + " was not asked for");
  return static_cast<std::size_t>(at - layers.begin());
}

StateNeeds rope_needs(const EliteGeometry& geometry) {
  return {.layers = geometry.layers, .states = {StateKind::kQPre, StateKind::kKPre}};
}

}  // namespace

RopeStatistics::RopeStatistics(EliteGeometry shape, bool with_norms) : geometry(std::move(shape)) {
  const std::size_t per_chunk = geometry.layers.size() * geometry.chunks;
  gram.resize(per_chunk * geometry.query_heads * geometry.chunks);
  if (!with_norms) return;
  query_norms.resize(per_chunk * geometry.query_heads);
  key_norms.resize(per_chunk * geometry.kv_heads);
}

void RopeStatistics::add(CalibrationOps& ops, StateSource& source, std::size_t document) {
  const std::size_t heads = geometry.query_heads, chunks = geometry.chunks;
  const auto grams = ops.rope_grams({gram, {geometry.layers.size(), heads, chunks, chunks}});
  source.visit(document, rope_needs(geometry), [&](const DocumentStates& states) {
    check_interrupt();
    const std::size_t layer = index_of(geometry.layers, states.layer);
    grams->add(layer, states[StateKind::kQPre], states[StateKind::kKPre], source.rope(states.layer), 0);
    if (query_norms.empty()) return;
    Backend& backend = source.backend();
    add_norms(backend, states[StateKind::kQPre], chunks, query_norms.data() + layer * heads * chunks);
    add_norms(backend, states[StateKind::kKPre], chunks, key_norms.data() + layer * geometry.kv_heads * chunks);
  });
  grams->finish();
  tokens += static_cast<double>(source.tokens());
}

std::vector<double> RopeStatistics::grams(std::size_t layer, Granularity granularity) const {
  const std::size_t size = geometry.chunks * geometry.chunks, heads = geometry.heads(granularity);
  const double* from = gram.data() + layer * geometry.query_heads * size;
  std::vector<double> result(heads * size);
  for (std::size_t head = 0; head < geometry.query_heads; ++head) {
    double* to = result.data() + head * heads / geometry.query_heads * size;
    for (std::size_t i = 0; i < size; ++i) to[i] += from[head * size + i];
  }
  return result;
}

std::vector<double> RopeStatistics::contributions(std::size_t layer, Granularity granularity) const {
  const std::size_t chunks = geometry.chunks, heads = geometry.heads(granularity);
  std::vector<double> result(heads * chunks);
  for (std::size_t head = 0; head < geometry.query_heads; ++head) {
    const double* q = query_norms.data() + (layer * geometry.query_heads + head) * chunks;
    double* to = result.data() + head * heads / geometry.query_heads * chunks;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) to[chunk] += q[chunk];
  }
  const double shared = static_cast<double>(geometry.query_heads / heads);
  for (std::size_t head = 0; head < heads; ++head) {
    const double* k = key_norms.data() + (layer * geometry.kv_heads + head * geometry.kv_heads / heads) * chunks;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk)
      result[head * chunks + chunk] *= k[chunk] / (tokens * tokens * shared);
  }
  return result;
}

ElitePicks pick_elite(TensorView<const double, 2> gram, std::size_t count) {
  check_count(count, gram.extent(0));
  Remainder remainder(gram);
  ElitePicks picks;
  while (picks.chunks.size() < count) {
    const std::size_t best = *std::ranges::min_element(
        remainder.left(), {}, [&](std::size_t chunk) { return remainder.error_without(chunk); });
    remainder.rotate(best);
    picks.chunks.push_back(best);
    picks.errors.push_back(remainder.error());
  }
  return picks;
}

ElitePicks errors_of(TensorView<const double, 2> gram, std::vector<std::size_t> chunks) {
  Remainder remainder(gram);
  ElitePicks picks{std::move(chunks), {}};
  for (const std::size_t chunk : picks.chunks) {
    remainder.rotate(chunk);
    picks.errors.push_back(remainder.error());
  }
  return picks;
}

std::vector<std::size_t> baseline_chunks(EliteBaseline baseline, std::size_t chunks, std::size_t count,
                                         std::span<const double> contributions) {
  check_count(count, chunks);
  std::vector<std::size_t> result(count);
  switch (baseline) {
    case EliteBaseline::kUniform:
      for (std::size_t i = 0; i < count; ++i) result[i] = count == 1 ? 0 : i * (chunks - 1) / (count - 1);
      break;
    case EliteBaseline::kHigh:
      std::iota(result.begin(), result.end(), std::size_t{0});
      break;
    case EliteBaseline::kLow:
      std::iota(result.begin(), result.end(), chunks - count);
      break;
    case EliteBaseline::kContribution: {
      std::vector<std::size_t> order(chunks);
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t chunk) { return contributions[chunk]; });
      std::copy_n(order.begin(), count, result.begin());
      break;
    }
  }
  return result;
}

DistanceSearch::DistanceSearch(EliteGeometry geometry, Granularity granularity, std::size_t count)
    : geometry_(std::move(geometry)), granularity_(granularity), count_(count) {
  check_count(count, geometry_.chunks);
  picks_.assign(geometry_.layers.size(), std::vector<ElitePicks>(geometry_.heads(granularity)));
  sums_.resize(geometry_.layers.size() * geometry_.query_heads * geometry_.chunks);
  rotated_.resize(sums_.size());
}

DistanceSearch::DistanceSearch(EliteGeometry geometry, Granularity granularity,
                               std::vector<std::vector<std::vector<std::size_t>>> orders)
    : DistanceSearch(std::move(geometry), granularity, orders.empty() ? 0 : orders.front().front().size()) {
  orders_ = std::move(orders);
}

void DistanceSearch::add(CalibrationOps& ops, StateSource& source, std::size_t document) {
  const std::array shape{geometry_.query_heads, geometry_.chunks};
  const std::size_t size = shape[0] * shape[1];
  source.visit(document, rope_needs(geometry_), [&](const DocumentStates& states) {
    check_interrupt();
    const std::size_t first = index_of(geometry_.layers, states.layer) * size;
    const std::span<const std::uint8_t> rotated(rotated_.data() + first, size);
    ops.accumulate_rope_distance(states[StateKind::kQPre], states[StateKind::kKPre], source.rope(states.layer), 0,
                                 TensorView<const std::uint8_t, 2>(rotated, shape),
                                 TensorView<double, 2>(std::span(sums_).subspan(first, size), shape));
  });
}

std::size_t DistanceSearch::pick(std::size_t layer, std::size_t head, std::span<const double> errors) const {
  if (!orders_.empty()) return orders_[layer][head][pass_];
  const std::vector<std::size_t>& taken = picks_[layer][head].chunks;
  std::size_t best = geometry_.chunks;
  for (std::size_t chunk = 0; chunk < geometry_.chunks; ++chunk) {
    const bool free = std::ranges::find(taken, chunk) == taken.end();
    if (free && (best == geometry_.chunks || errors[chunk] < errors[best])) best = chunk;
  }
  return best;
}

void DistanceSearch::finish_pass() {
  const std::size_t heads = geometry_.heads(granularity_), group = geometry_.query_heads / heads;
  const std::size_t chunks = geometry_.chunks;
  std::vector<double> errors(chunks);
  for (std::size_t layer = 0; layer < geometry_.layers.size(); ++layer) {
    for (std::size_t head = 0; head < heads; ++head) {
      const std::size_t first = (layer * geometry_.query_heads + head * group) * chunks;
      std::ranges::fill(errors, 0.0);
      for (std::size_t i = 0; i < group * chunks; ++i) errors[i % chunks] += sums_[first + i];
      const std::size_t best = pick(layer, head, errors);
      picks_[layer][head].chunks.push_back(best);
      picks_[layer][head].errors.push_back(errors[best]);
      for (std::size_t member = 0; member < group; ++member) rotated_[first + member * chunks + best] = 1;
    }
  }
  std::ranges::fill(sums_, 0.0);
  ++pass_;
}

void DistanceSearch::restore(std::vector<std::vector<ElitePicks>> picks, std::span<const double> sums) {
  const std::size_t heads = geometry_.heads(granularity_), group = geometry_.query_heads / heads;
  if (picks.size() != geometry_.layers.size() || picks.front().size() != heads || sums.size() != sums_.size())
    throw Error(ErrorCode::kInternal, "DistanceSearch", "the saved state is not of this search");
  std::ranges::copy(sums, sums_.begin());
  std::ranges::fill(rotated_, std::uint8_t{0});
  picks_ = std::move(picks);
  pass_ = picks_.front().front().chunks.size();
  for (std::size_t layer = 0; layer < picks_.size(); ++layer)
    for (std::size_t head = 0; head < heads; ++head)
      for (const std::size_t chunk : picks_[layer][head].chunks)
        for (std::size_t member = 0; member < group; ++member)
          rotated_[(layer * geometry_.query_heads + head * group + member) * geometry_.chunks + chunk] = 1;
}

}  // namespace kvs::inline calibrate
