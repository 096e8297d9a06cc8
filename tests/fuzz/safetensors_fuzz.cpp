// SPDX-License-Identifier: Apache-2.0
// After a first byte 'i' the input is an index, after 'h' a header, a NUL byte and data, after any other byte a raw
// file. An accepted file has tensors in order of names that fill the data section; every tensor that can be decoded is
// decoded.
#include <algorithm>
#include <cstring>

#include "io/safetensors_parse.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using kvs::StoredTensor;
using kvs::fuzz::require;

/// Reads all rows at once and the last one alone: the same numbers.
void read_tensor(const StoredTensor& tensor) {
  if (tensor.type == nullptr) return;
  const std::uint64_t rows = tensor.rows(), columns = tensor.columns();
  std::vector<float> all(rows * columns);
  kvs::read_rows(tensor, 0, rows, all);
  if (all.empty()) return;
  std::vector<float> last(columns);
  kvs::read_rows(tensor, rows - 1, 1, last);
  require(std::memcmp(last.data(), all.data() + all.size() - columns, columns * sizeof(float)) == 0, "rows differ");
}

void read_file(std::span<const std::byte> file) {
  const auto tensors = kvs::parse_safetensors(file, "input");
  std::size_t bytes = 0;
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    require(index == 0 || tensors[index - 1].name < tensors[index].name, "names out of order");
    bytes += tensors[index].bytes.size();
    read_tensor(tensors[index]);
  }
  std::uint64_t header = 0;
  std::memcpy(&header, file.data(), sizeof header);
  require(8 + header + bytes == file.size(), "the tensors do not fill the file");
}

/// A header, a NUL byte and data as a file, so that the fuzzer need not keep the header's length right.
std::string with_length(std::string_view input) {
  const std::string_view header = input.substr(0, input.find('\0'));
  const std::uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  file += header;
  return file.append(input.substr(std::min(header.size() + 1, input.size())));
}

void read_index(std::string_view text) {
  for (const auto& [tensor, shard] : kvs::parse_safetensors_index(text, "input").shard_of)
    require(!shard.empty() && shard.find('/') == shard.npos && shard != "..", "a shard outside the folder");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  kvs::fuzz::accept_or_refuse([&] {
    if (data[0] == 'i') return read_index(input);
    const std::string file = data[0] == 'h' ? with_length(input) : std::string(input);
    read_file(std::as_bytes(std::span(file)));
  });
  return 0;
}
