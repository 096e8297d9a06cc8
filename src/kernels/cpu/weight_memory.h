// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace kvs::cpu {

/// Memory of a weight, aligned to a cache line. From kMappedBytes on it is a mapping of its own, aligned to huge pages,
/// and the system has it back as soon as the weight is dropped. In the heap, the pieces of a streamed layer would lie
/// between others, and those of the next layer would not fill all gaps.
class WeightMemory {
 public:
  static constexpr std::size_t kMappedBytes = std::size_t{1} << 20;

  /// @throws Error kEnvironment "out of memory for N bytes".
  explicit WeightMemory(std::size_t bytes);
  ~WeightMemory();
  WeightMemory(WeightMemory&& other) noexcept;
  WeightMemory(const WeightMemory&) = delete;
  WeightMemory& operator=(const WeightMemory&) = delete;

  void* data() const noexcept { return data_; }

 private:
  void* data_;
  std::size_t mapped_;  // bytes of the mapping; 0: in the heap
};

}  // namespace kvs::cpu
