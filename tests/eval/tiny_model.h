// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "model/decoder.h"
#include "tests/cli/program.h"

namespace kvs {

/// The end-to-end tests' random model, loaded on the CPU in f32.
struct TinyModel {
  explicit TinyModel(testing::TinyKind kind = testing::TinyKind::kPlain) {
    testing::write_tiny_model(folder / "model", kind);
    source = ModelSource::open(folder / "model");
    backend = make_backend("cpu", DType::kF32, 1);  // threads would only wait in passes this small
    model = std::make_unique<Model>(*source, *backend);
    decoder = std::make_unique<Decoder>(*model);
  }
  static std::vector<std::int32_t> tokens(std::size_t count) {
    std::vector<std::int32_t> ids(count);
    for (std::size_t n = 0; n < count; ++n) ids[n] = static_cast<std::int32_t>((n * n + 3 * n) % 61);
    return ids;
  }

  testing::TemporaryFolder folder;
  std::unique_ptr<ModelSource> source;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
  std::unique_ptr<Decoder> decoder;
};

/// The largest difference of two runs' per-token NLL.
inline double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t n = 0; n < a.size(); ++n) largest = std::max(largest, static_cast<double>(std::abs(a[n] - b[n])));
  return largest;
}

/// Returns the successor of each of `count` tokens from `first` on; -1 after the last.
inline std::vector<std::int32_t> successors(std::span<const std::int32_t> tokens, std::size_t first,
                                            std::size_t count) {
  std::vector<std::int32_t> targets;
  for (std::size_t t = first + 1; t <= first + count; ++t) targets.push_back(t < tokens.size() ? tokens[t] : -1);
  return targets;
}

}  // namespace kvs
