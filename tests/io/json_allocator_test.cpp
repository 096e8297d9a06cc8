#include "io/json_allocator.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include "io/json.h"

namespace kvs::test {
namespace {

void* volatile last_block;  // so that the compiler leaves no allocation out

/// Ends this process with the number of nulls, of `count`, that became neither an object nor an array.
[[noreturn]] void fill_nulls_without_memory(int count) {
  const rlimit nothing{};
  if (::setrlimit(RLIMIT_AS, &nothing) != 0) ::_exit(255);
  for (std::size_t bytes = 1UL << 20; bytes >= 16; bytes /= 2) {
    do last_block = std::malloc(bytes);
    while (last_block != nullptr);
  }
  int refused = 0;
  for (int n = 0; n < count; ++n) {
    try {
      Json value;
      if (n % 2 == 0)
        value["key"] = n;
      else
        value.push_back(n);
    } catch (const std::bad_alloc&) {
      ++refused;
    }
  }
  ::_exit(refused);
}

TEST(JsonAllocator, ANullThatFindsNoMemoryToBecomeAContainerIsRefused) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer ends a program that has no memory left";
#else
  EXPECT_EXIT(fill_nulls_without_memory(100), testing::ExitedWithCode(100), "");
#endif
}

}  // namespace
}  // namespace kvs::test
