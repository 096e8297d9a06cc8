// SPDX-License-Identifier: Apache-2.0
// Runs every file given, or in a folder given, through the fuzz target once. No input at all is a failure.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int count, char** arguments) {
  namespace fs = std::filesystem;
  std::vector<fs::path> inputs;
  for (const char* argument : std::vector<const char*>(arguments + 1, arguments + count)) {
    if (fs::is_regular_file(argument)) inputs.emplace_back(argument);
    if (!fs::is_directory(argument)) continue;
    for (const auto& entry : fs::directory_iterator(argument))
      if (entry.is_regular_file()) inputs.push_back(entry.path());
  }
  std::sort(inputs.begin(), inputs.end());
  for (const fs::path& input : inputs) {
    std::ifstream in(input, std::ios::binary);
    std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    bytes.shrink_to_fit();  // so that a read past the end is also past the allocation, where AddressSanitizer sees it
    std::fprintf(stderr, "%s\n", input.c_str());
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  std::fprintf(stderr, "%zu inputs replayed\n", inputs.size());
  return inputs.empty() ? 1 : 0;
}
