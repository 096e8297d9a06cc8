#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kvs::inline calibrate {

/// How the extremes of documents are combined.
enum class ExtremeRule {
  kMax,  // maximum over documents
  kEma   // m ← m + 0.01 (m_new − m), starting from the first document: an average, so that outliers saturate
};

/// Computes the scales s of an fp8 cache x' = e4m3(x / s) · s: the largest magnitude divided by 448, e4m3's largest
/// number. For one layer's keys, or its values.
/// Source: llm-compressor's observers of caches, static_minmax and minmax (observers/min_max.py).
class Fp8Scales {
 public:
  /// @param groups  1, or the number of KV heads with separate scales
  Fp8Scales(ExtremeRule rule, std::size_t groups) : rule_(rule), low_(groups), high_(groups) {}

  /// Adds the next document's states [kv_head, token, head_dim] of `heads` heads. O(values).
  /// @throws Error kData naming the head and the token of a value that is not finite
  void add(std::span<const float> states, std::size_t heads, std::size_t head_dim);
  /// Returns [group], positive.
  std::vector<double> scales() const;
  /// Returns the largest magnitude over all documents and groups.
  double largest() const noexcept { return largest_; }

 private:
  ExtremeRule rule_;
  bool empty_ = true;
  std::vector<double> low_, high_;
  double largest_ = 0;
};

}  // namespace kvs::inline calibrate
