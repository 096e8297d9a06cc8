// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvs::inline calibrate {

/// What a reader of a cache can do with the stored bytes.
enum class CacheForm : std::uint8_t {  // in the order of kCacheFormNames
  kInAttention,                        // attention reads them as they are, or decodes the rows that it reads
  kRandomAccess,                       // every token decodes alone, in a product that attention does not contain
  kStorage,                            // they are decoded as a whole before attention reads them
};

inline constexpr std::array<std::string_view, 3> kCacheFormNames{"in attention", "random access", "storage"};

constexpr std::string_view form_name(CacheForm form) noexcept {
  return kCacheFormNames[static_cast<std::size_t>(form)];
}

}  // namespace kvs::inline calibrate
