// SPDX-License-Identifier: Apache-2.0
#include "io/json_allocator.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>

#include "io/json.h"
#include "tests/io/sanitizer.h"

namespace kvs::test {
namespace {

void* volatile last_block;  // so that the compiler leaves no allocation out

/// Takes all the memory that this process may have.
void take_memory() {
  const rlimit nothing{};
  if (::setrlimit(RLIMIT_AS, &nothing) != 0) ::_exit(255);
  for (std::size_t bytes = 1UL << 20; bytes >= 16; bytes /= 2) {
    do last_block = std::malloc(bytes);
    while (last_block != nullptr);
  }
}

/// Makes containers of nulls and ends the process with 0. nlohmann's destructor of a container takes memory, and
/// without memory ends the program by std::terminate, which the programs turn into a status.
[[noreturn]] void fill_nulls_without_memory() {
  std::set_terminate([] { ::_exit(0); });
  take_memory();
  for (int n = 0; n < 100; ++n) {
    try {
      Json value;
      if (n % 2 == 0)
        value["key"] = n;
      else
        value.push_back(n);
    } catch (const std::bad_alloc&) {
    }
  }
  ::_exit(0);
}

/// Ends the process with 0 if empty containers find memory and their contents do not.
[[noreturn]] void allocate_without_memory() {
  take_memory();
  JsonAllocator<Json::object_t> objects;
  for (int n = 0; n < 100; ++n) objects.deallocate(objects.allocate(1), 1);
  try {
    JsonAllocator<Json>().allocate(1000);
  } catch (const std::bad_alloc&) {
    ::_exit(0);
  }
  ::_exit(1);
}

TEST(JsonAllocator, ANullThatFindsNoMemoryToBecomeAContainerFollowsNoNullPointer) {
  if (sanitized()) GTEST_SKIP() << "AddressSanitizer ends a program that has no memory left";
  EXPECT_EXIT(fill_nulls_without_memory(), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(allocate_without_memory(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace kvs::test
