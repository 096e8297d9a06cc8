#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/safetensors_writer.h"
#include "tests/io/temporary_directory.h"

namespace kvs::test {

/// A tensor in memory, f32.
struct NamedTensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::vector<float> values;
};

/// The bytes of a safetensors file.
inline std::string safetensors_bytes(std::span<const NamedTensor> tensors, const SafetensorsMetadata& metadata = {}) {
  std::vector<OutputTensor> held;
  for (const NamedTensor& tensor : tensors) held.push_back(held_tensor(tensor.name, tensor.shape, tensor.values));
  const TemporaryDirectory directory;
  const auto file = directory.write("f", "");
  write_safetensors(file, held, metadata);
  return read_all(file);
}

}  // namespace kvs::test
