// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "core/quantile_sketch.h"

namespace kvs::inline calibrate {

/// How the magnitude at which a type saturates follows from the states of all documents.
enum class ScaleRule {
  kMax,    // the largest magnitude
  kP9999,  // the 99.99 % quantile of the magnitudes, within 0.5 %
  kP999,   // the 99.9 % quantile
  kEma     // m ← m + 0.01 (m_new − m) over the documents' extremes, starting from the first document: an average
};
inline constexpr std::array<std::string_view, 4> kScaleRuleNames{"max", "p99.99", "p99.9", "ema"};

/// Magnitudes of one layer's keys, or its values, and where they saturate.
/// Source of kMax and kEma: llm-compressor's observers of caches, static_minmax and minmax (observers/min_max.py).
class SideScales {
 public:
  /// @param groups  1, or the number of KV heads with separate scales
  explicit SideScales(std::size_t groups) : groups_(groups) {}

  /// Adds the next document's states [kv_head, token, head_dim] of `heads` heads. O(values).
  /// @throws Error kData naming the head and the token of a value that is not finite
  void add(std::span<const float> states, std::size_t heads, std::size_t head_dim);
  /// Returns [group]: the magnitude at which the group saturates.
  std::vector<double> limits(ScaleRule rule) const;
  /// Returns the share of the values whose magnitude exceeds their group's limit, but for values within 1 % of it.
  double saturated(std::span<const double> limits) const;
  /// Returns the largest magnitude over all documents and groups.
  double largest() const noexcept;

 private:
  struct Group {
    double low = 0, high = 0;                  // over all documents
    double average_low = 0, average_high = 0;  // kEma
    QuantileSketch magnitudes = {};
  };
  bool empty_ = true;
  std::vector<Group> groups_;
};

}  // namespace kvs::inline calibrate
