// SPDX-License-Identifier: Apache-2.0
// The input is a GGUF file. An accepted file has tensors in order of names that lie inside the file, aligned and
// without overlap; every tensor that can be decoded is decoded.
#include <algorithm>

#include "io/gguf_parse.h"
#include "io/gguf_split.h"
#include "tests/fuzz/fuzz_target.h"

using kvs::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  kvs::fuzz::accept_or_refuse([&] {
    const kvs::GgufContents contents = kvs::parse_gguf(file, "input");
    (void)kvs::gguf_split_of(contents.metadata, "input");
    std::vector<std::span<const std::byte>> ranges;
    for (const kvs::StoredTensor& tensor : contents.tensors) {
      require(tensor.bytes.data() >= file.data() && tensor.bytes.size() <= file.size() &&
                  tensor.bytes.data() + tensor.bytes.size() <= file.data() + file.size(),
              "a tensor outside the file");
      ranges.push_back(tensor.bytes);
      if (tensor.type == nullptr) continue;
      std::vector<float> row(tensor.columns());
      for (std::uint64_t index = 0; index < tensor.rows(); ++index) kvs::read_rows(tensor, index, 1, row);
    }
    const auto twin = std::ranges::adjacent_find(contents.tensors, std::greater_equal<>(), &kvs::StoredTensor::name);
    require(twin == contents.tensors.end(), "names out of order or repeated");
    std::ranges::sort(ranges, {}, [](const auto& range) { return range.data(); });
    for (std::size_t index = 1; index < ranges.size(); ++index)
      require(ranges[index - 1].data() + ranges[index - 1].size() <= ranges[index].data(), "tensors overlap");
  });
  return 0;
}
