// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kvs::inline io {

/// Incremental SHA-256 (FIPS 180-4), computed by OpenSSL.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  void update(std::span<const std::byte> bytes);
  void update(std::string_view bytes) { update(std::as_bytes(std::span(bytes))); }
  /// Returns 64 lower-case hexadecimal digits. Call it once.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_of(std::string_view bytes);
/// @throws Error kInput if the file cannot be read.
std::string sha256_of_file(const std::filesystem::path& path);

/// CRC-32C (Castagnoli, RFC 3720 appendix B.4), continued from `crc` (0 to start). Uses SSE4.2 if the processor has it.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0) noexcept;
/// Like crc32c(), from a table of 256 words. crc32c() uses it on processors without SSE4.2. About 16 times slower.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t crc = 0) noexcept;

}  // namespace kvs::inline io
