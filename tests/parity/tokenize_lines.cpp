// SPDX-License-Identifier: Apache-2.0
// Reads one JSON string a line from standard input and writes its ids as one JSON array a line: what
// tests/parity/tokenizers_parity.py and auto_tokenizer_parity.py compare with other programs. Notes go to standard
// error.
//
// Usage: tokenize_lines FILE     (a tokenizer.json, a *.model of SentencePiece, or a *.gguf)
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>

#include "core/error.h"
#include "io/gguf.h"
#include "io/json.h"
#include "tokenizer/tokenizer.h"

namespace {

std::unique_ptr<kvs::Tokenizer> load(const std::filesystem::path& path) {
  if (path.extension() == ".gguf") return kvs::load_tokenizer_gguf(*kvs::GgufFile::open(path));
  if (path.extension() == ".model") return kvs::load_tokenizer_model(path);
  return kvs::load_tokenizer_json(path);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) throw kvs::Error(kvs::ErrorCode::kUsage, "tokenize_lines", "expected one file");
  const auto tokenizer = load(argv[1]);
  for (const std::string& note : tokenizer->notes()) std::fprintf(stderr, "note: %s\n", note.c_str());
  for (std::string line; std::getline(std::cin, line);) {
    const kvs::Json text = kvs::parse_json(line, "standard input");
    std::cout << kvs::Json(tokenizer->encode(text.get_ref<const std::string&>())).dump() << '\n';
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "tokenize_lines: error: %s\n", error.what());
  const auto* known = dynamic_cast<const kvs::Error*>(&error);
  return known == nullptr ? 70 : static_cast<int>(known->code());
}
