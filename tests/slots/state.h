// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "export/slots/state_file.h"
#include "tests/io/temporary_directory.h"
#include "tests/kernels/support.h"

namespace kvs::test {

/// A state with random rows, and their memory.
struct TestState {
  StateFile state;
  std::vector<std::vector<std::byte>> rows;
};

/// Sets the rows of all layers of a cache to random f16 values.
inline void fill_rows(TestState& to, StateCache& cache, std::size_t values) {
  for (StateLayer& layer : cache.layers)
    for (StateRows* const rows : {&layer.keys, &layer.values}) {
      const auto random =
          random_values(cache.positions.size() * values, static_cast<std::uint32_t>(to.rows.size() + 1));
      std::vector<std::byte>& bytes = to.rows.emplace_back(2 * random.size());
      for (std::size_t n = 0; n < random.size(); ++n) {
        const std::uint16_t half = f32_to_f16(random[n]);
        std::copy_n(reinterpret_cast<const std::byte*>(&half), 2, bytes.begin() + static_cast<std::ptrdiff_t>(2 * n));
      }
      *rows = {.type = DType::kF16, .values = values, .bytes = bytes};
    }
}

/// A state of one cache whose cells hold tokens 0, 1, ….
inline TestState random_state(std::size_t tokens, std::size_t layers, std::size_t values, bool transposed = false) {
  TestState made;
  made.rows.reserve(2 * layers);
  StateCache& cache = made.state.caches.emplace_back();
  cache.transposed = transposed;
  for (std::size_t token = 0; token < tokens; ++token) {
    made.state.tokens.push_back(static_cast<std::int32_t>(token * 7 % 64));
    cache.positions.push_back(static_cast<std::int32_t>(token));
  }
  cache.layers.resize(layers);
  fill_rows(made, cache, values);
  return made;
}

/// Returns the bytes of a state's file.
inline std::string state_bytes(const TemporaryDirectory& folder, const StateFile& state) {
  const std::filesystem::path path = folder / "state.bin";
  std::filesystem::remove(path);
  write_state(path, state);
  return read_all(path);
}

inline StateFile parsed(const std::string& bytes) { return parse_state(std::as_bytes(std::span(bytes)), "slot"); }

}  // namespace kvs::test
