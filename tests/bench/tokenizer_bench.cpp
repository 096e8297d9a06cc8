// SPDX-License-Identifier: Apache-2.0
// Tokenises a text again and again on one core, checks that every id decodes back, and prints MB/s. With --ids it
// writes the ids as a JSON array for tokenizers_bench.py to compare with those of the `tokenizers` package.
//
// Usage: tokenizer_bench FILE TEXT [SECONDS] [--ids OUT.json]     (FILE: a tokenizer.json, *.model or *.gguf)
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "io/file.h"
#include "io/gguf.h"
#include "tests/bench/program.h"
#include "tokenizer/tokenizer.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::unique_ptr<kvs::Tokenizer> load(const std::filesystem::path& path) {
  if (path.extension() == ".gguf") return kvs::load_tokenizer_gguf(*kvs::GgufFile::open(path));
  if (path.extension() == ".model") return kvs::load_tokenizer_model(path);
  return kvs::load_tokenizer_json(path);
}

void write_ids(const std::string& path, const std::vector<std::int32_t>& ids) {
  std::ofstream file(path);
  for (std::size_t i = 0; i < ids.size(); ++i) file << (i == 0 ? '[' : ',') << ids[i];
  file << "]\n";
}

int run(int argc, char** argv) {
  const bool writes = argc > 4 && std::string(argv[argc - 2]) == "--ids";
  const int arguments = writes ? argc - 2 : argc;
  const double limit = arguments > 3 ? std::atof(argv[3]) : 3;
  auto start = Clock::now();
  const auto tokenizer = load(argv[1]);
  const double load_seconds = seconds_since(start);
  const std::string text = kvs::read_text_file(argv[2], 1UL << 30);
  double best = 1e30;
  std::vector<std::int32_t> ids;
  for (const auto begin = Clock::now(); seconds_since(begin) < limit || best == 1e30;) {
    start = Clock::now();
    ids = tokenizer->encode(text);
    best = std::min(best, seconds_since(start));
  }
  if (tokenizer->decode(ids) != text)
    std::printf("note: the ids do not decode to the text (a normalizer, or its prefix)\n");
  if (writes) write_ids(argv[argc - 1], ids);
  std::printf("ours: loaded in %.3f s; %zu bytes, %zu tokens, %.2f MB/s\n", load_seconds, text.size(), ids.size(),
              static_cast<double>(text.size()) / best / 1e6);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return kvs::bench::run_program(argc, argv, 2, "tokenizer_bench FILE TEXT [SECONDS] [--ids OUT.json]", run);
}
