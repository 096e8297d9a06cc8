// SPDX-License-Identifier: Apache-2.0
// Journals of hostile lines. After a first byte 'r' the bytes are a raw journal. After any other byte each line is a
// record and gets its right CRC, so that the fuzzer passes the checksums; the last line stays raw. An accepted journal
// is written and read back unchanged, also with a torn line at its end.
#include <cstdio>

#include "io/digest.h"
#include "io/journal.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using kvs::Journal;

/// @param crc  in: of the lines before; out: including this line
std::string line_of(std::string_view record, std::uint32_t& crc) {
  crc = kvs::crc32c(std::as_bytes(std::span(record)), crc);
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x", crc);
  return '[' + std::string(record) + ",\"" + digits + "\"]\n";
}

std::string with_checksums(std::string_view text) {
  std::string journal;
  std::uint32_t crc = 0;
  while (true) {
    const std::size_t newline = text.find('\n');
    if (newline == text.npos) return journal + std::string(text);
    journal += line_of(text.substr(0, newline), crc);
    text.remove_prefix(newline + 1);
  }
}

std::string written(const Journal::Content& content) {
  std::uint32_t crc = 0;
  std::string journal = line_of(kvs::dump_json(content.identity, -1), crc);
  for (const kvs::Json& record : content.records) journal += line_of(kvs::dump_json(record, -1), crc);
  return journal;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  kvs::fuzz::accept_or_refuse([&] {
    const Journal::Content content = Journal::parse(data[0] == 'r' ? std::string(text) : with_checksums(text), "input");
    const Journal::Content again = Journal::parse(written(content) + "[torn", "again");
    kvs::fuzz::require(again.identity == content.identity && again.records == content.records, "changed");
  });
  return 0;
}
