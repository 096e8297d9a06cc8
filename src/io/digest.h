#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kvs {

/// Incremental SHA-256 (FIPS 180-4), by OpenSSL.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  void update(std::span<const std::byte> bytes);
  void update(std::string_view bytes) { update(std::as_bytes(std::span(bytes))); }
  /// 64 lower-case hexadecimal digits. Call once.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_of(std::string_view bytes);
/// @throws Error kInput if the file cannot be read.
std::string sha256_of_file(const std::filesystem::path& path);

/// CRC-32C (Castagnoli, RFC 3720 appendix B.4), continued from `crc` (0 to start). By SSE4.2 where the processor has
/// it.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0) noexcept;
/// The same by a table of 256 words: what crc32c() uses on other processors. About a sixteenth of its speed.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t crc = 0) noexcept;

}  // namespace kvs
