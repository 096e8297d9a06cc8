// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.h"

namespace kvs {

/// Steele, Lea and Flood's SplitMix64 (OOPSLA 2014) as a function of its counter.
inline std::uint64_t mixed(std::uint64_t counter) {
  std::uint64_t z = counter * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

/// Returns the first counter of a tensor's values.
inline std::uint64_t stream_of(const std::string& name, std::uint64_t seed) {
  std::uint64_t hash = mixed(seed + 1);
  for (const char letter : name) hash = mixed(hash ^ static_cast<unsigned char>(letter));
  return hash;
}

/// Returns a uniform value in [−1, 1).
inline float unit_value(std::uint64_t counter) { return static_cast<float>(mixed(counter) >> 40) * 0x1p-23F - 1.0F; }

/// A file whose error messages include its name.
class WrittenFile {
 public:
  explicit WrittenFile(const std::filesystem::path& path) : path_(path), stream_(path, std::ios::binary) { check(); }
  void write(const void* data, std::size_t bytes) {
    stream_.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    check();
  }
  void close() {
    stream_.close();
    check();
  }

 private:
  void check() const {
    if (!stream_) throw Error(ErrorCode::kEnvironment, path_.string(), "cannot write: " + std::string(strerror(errno)));
  }
  std::filesystem::path path_;
  std::ofstream stream_;
};

}  // namespace kvs
