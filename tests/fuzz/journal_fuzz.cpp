// Journals of hostile lines. After a first byte 'r' the bytes are a journal as they are; after any other each line is
// taken for a record and gets its right CRC, so that the fuzzer comes past the checksums; the last line stays raw.
#include "io/digest.h"
#include "io/journal.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using kvs::Journal;
using kvs::fuzz::require;

std::string with_checksums(std::string_view text) {
  std::string journal;
  std::uint32_t sum = 0;
  while (true) {
    const std::size_t newline = text.find('\n');
    if (newline == text.npos) return journal + std::string(text);
    const std::string record(text.substr(0, newline));
    sum = kvs::crc32c(std::as_bytes(std::span(record)), sum);
    char crc[9];
    std::snprintf(crc, sizeof crc, "%08x", sum);
    journal += '[' + record + ",\"" + crc + "\"]\n";
    text.remove_prefix(newline + 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string bytes = data[0] == 'r' ? std::string(text) : with_checksums(text);
  const kvs::fuzz::MemoryFile file(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  kvs::fuzz::accept_or_refuse([&] {
    const Journal::Content before = Journal::read(file.path());
    Journal journal = Journal::resume(file.path(), before.identity);
    require(journal.records() == before.records, "resume() and read() differ");
    journal.append({{"appended", true}});
    const Journal::Content after = Journal::read(file.path());
    require(after.identity == before.identity && after.records == journal.records(), "an append was lost");
  });
  return 0;
}
