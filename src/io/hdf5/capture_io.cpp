// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5/capture_io.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/error.h"
#include "io/descriptor.h"
#include "io/digest.h"

namespace kvs::inline io {
namespace {}  // namespace

void read_at(int descriptor, const std::filesystem::path& path, std::span<std::byte> out, std::uint64_t offset) {
  while (!out.empty()) {
    const ssize_t got = ::pread(descriptor, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno(code_of_read_errno(errno), path, "cannot read", errno);
    if (got == 0)
      throw Error(ErrorCode::kInput, path.native(),
                  "the file ends at offset " + std::to_string(offset) + ", expected " + std::to_string(out.size()) +
                      " more bytes");
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

std::uint32_t stored_checksum(int descriptor, const std::filesystem::path& path, std::uint64_t offset,
                              std::uint64_t bytes) {
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(kCaptureBlock, bytes)));
  std::uint32_t checksum = 0;
  for (std::uint64_t done = 0; done < bytes; done += kCaptureBlock) {
    const std::span block(buffer.data(), static_cast<std::size_t>(std::min(kCaptureBlock, bytes - done)));
    read_at(descriptor, path, block, offset + done);
    checksum = crc32c(block, checksum);
  }
  return checksum;
}

std::string metadata_digest(int descriptor, const std::filesystem::path& path, std::span<const FileRange> ranges,
                            std::optional<std::uint64_t> zeroed) {
  std::vector<std::byte> buffer(kCaptureBlock);
  Sha256 digest;
  for (const auto& [first, last] : ranges)
    for (std::uint64_t at = first; at < last; at += kCaptureBlock) {
      const std::span block(buffer.data(), static_cast<std::size_t>(std::min(kCaptureBlock, last - at)));
      read_at(descriptor, path, block, at);
      if (zeroed) {
        const std::uint64_t from = std::max(*zeroed, at), to = std::min(*zeroed + kCompleteBytes, at + block.size());
        for (std::uint64_t i = from; i < to; ++i) block[static_cast<std::size_t>(i - at)] = std::byte{0};
      }
      digest.update(block);
    }
  return digest.finish();
}

}  // namespace kvs::inline io
