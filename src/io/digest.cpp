// SPDX-License-Identifier: Apache-2.0
#include "io/digest.h"

#include <openssl/evp.h>

#include <array>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "io/descriptor.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace kvs::inline io {
namespace {

constexpr std::uint32_t kCastagnoli = 0x82F63B78;  // the polynomial 0x1EDC6F41 with its bits reversed

constexpr std::array<std::uint32_t, 256> make_table() noexcept {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? kCastagnoli : 0);
    table[byte] = rest;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kTable = make_table();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_sse42(std::span<const std::byte> bytes,
                                                                std::uint32_t crc) noexcept {
  std::uint64_t state = ~crc;
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    state = _mm_crc32_u64(state, word);
  }
  auto tail = static_cast<std::uint32_t>(state);
  for (; at < bytes.size(); ++at) tail = _mm_crc32_u8(tail, std::to_integer<std::uint8_t>(bytes[at]));
  return ~tail;
}
#endif

void check_openssl(int result) {
  if (result != 1) throw Error(ErrorCode::kEnvironment, "SHA-256", "OpenSSL failed");
}

}  // namespace

struct Sha256::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  if (state_->context == nullptr) throw Error(ErrorCode::kEnvironment, "SHA-256", "out of memory");
  check_openssl(EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr));
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  check_openssl(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()));
}

std::string Sha256::finish() {
  std::array<unsigned char, 32> digest{};
  check_openssl(EVP_DigestFinal_ex(state_->context.get(), digest.data(), nullptr));
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) text += {kHex[byte >> 4], kHex[byte & 15]};
  return text;
}

std::string sha256_of(std::string_view bytes) {
  Sha256 digest;
  digest.update(bytes);
  return digest.finish();
}

std::string sha256_of_file(const std::filesystem::path& path) {
  // Uses read, not mmap: a file that shrinks while it is read must not kill the process by SIGBUS.
  struct stat status {};
  const Descriptor file = open_regular(path, status);
  Sha256 digest;
  std::vector<std::byte> piece(1UL << 20);
  for (;;) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno(code_of_read_errno(errno), path, "cannot read", errno);
    if (got == 0) return digest.finish();
    digest.update(std::span(piece).first(static_cast<std::size_t>(got)));
  }
}

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t crc) noexcept {
  crc = ~crc;
  for (const std::byte byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xff];
  return ~crc;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) noexcept {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return crc32c_by_sse42(bytes, crc);
#endif
  return crc32c_by_table(bytes, crc);
}

}  // namespace kvs::inline io
