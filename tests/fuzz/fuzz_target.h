#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/error.h"

namespace kvs::fuzz {

/// Ends the process the way that libFuzzer and ctest both count as a crash.
[[noreturn]] inline void report(const char* what) {
  std::fprintf(stderr, "fuzz target: %s\n", what);
  std::abort();
}

inline void require(bool holds, const char* what) {
  if (!holds) report(what);
}

/// Runs `act`, which reads hostile bytes. It may succeed or refuse them with an input, unsupported or data error of one
/// clean line; every other exception, kInternal included, is a find.
template <class Act>
void accept_or_refuse(Act&& act) {
  try {
    act();
  } catch (const Error& error) {
    const ErrorCode code = error.code();
    require(code == ErrorCode::kInput || code == ErrorCode::kUnsupported || code == ErrorCode::kData, error.what());
    for (const char c : std::string_view(error.what()))
      require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "a message with a control character");
  }
}

/// The input as a file in memory, for readers that take a path.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || ::write(descriptor_, data, size) != static_cast<ssize_t>(size)) report("memfd failed");
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace kvs::fuzz
