// SPDX-License-Identifier: Apache-2.0
// The input is a state file of llama.cpp. The rows of an accepted file fill it.
#include <cstdint>
#include <span>

#include "export/slots/state_file.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using kvs::StateRows;
using kvs::fuzz::require;

/// Returns the bytes of a state: of its head, and of each cache.
std::size_t bytes_of(const kvs::StateFile& state) {
  std::size_t bytes = 12 + 4 * state.tokens.size();
  for (const kvs::StateCache& cache : state.caches) {
    const std::size_t cells = cache.positions.size();
    require(cells > 0 && cache.stream < cache.streams, "a cache without cells");
    bytes += 4 + 4 * cache.streams + 12 * cells + 8 + cache.layers.size() * 24;
    for (const auto& [keys, values] : cache.layers)
      for (const StateRows* const rows : {&keys, &values}) {
        require(rows->bytes.size() == cells * rows->values * kvs::item_size(rows->type), "rows of other cells");
        bytes += rows->bytes.size();
      }
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  kvs::fuzz::accept_or_refuse([&] {
    const std::span<const std::byte> file{reinterpret_cast<const std::byte*>(data), size};
    require(bytes_of(kvs::parse_state(file, "input")) == size, "the rows do not fill the file");
  });
  return 0;
}
