// SPDX-License-Identifier: Apache-2.0
// The input is a quantization_config, a NUL byte, the header of a safetensors file, a NUL byte and its data. Every
// matrix that a checkpoint format finds for a module is decoded, all rows together and the last one alone.
#include <cstring>
#include <filesystem>
#include <set>

#include "io/safetensors_parse.h"
#include "model/checkpoints/checkpoints.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using kvs::StoredTensor;
using kvs::fuzz::require;

class Archive final : public kvs::TensorArchive {
 public:
  explicit Archive(std::vector<StoredTensor> tensors) : tensors_(std::move(tensors)) {}
  std::span<const StoredTensor> tensors() const noexcept override { return tensors_; }
  const std::filesystem::path& file_of(const StoredTensor&) const noexcept override { return path_; }
  void check_unchanged() const override {}

 private:
  std::vector<StoredTensor> tensors_;
  std::filesystem::path path_ = "input";
};

/// Returns the part of `input` before its first NUL byte, and removes both from it.
std::string_view take(std::string_view& input) {
  const std::string_view part = input.substr(0, input.find('\0'));
  input.remove_prefix(std::min(part.size() + 1, input.size()));
  return part;
}

/// Returns the names of weights that the tensors may stand for.
std::set<std::string> weights_of(const Archive& archive) {
  std::set<std::string> names;
  for (const StoredTensor& tensor : archive.tensors()) {
    names.insert(tensor.name);
    names.insert(tensor.name.substr(0, tensor.name.rfind('.')) + ".weight");
    names.insert(tensor.name.substr(0, tensor.name.rfind('_')));  // X_blocks
  }
  return names;
}

void read_matrix(const kvs::StoredMatrix& matrix) {
  const std::size_t rows = matrix.rows(), columns = matrix.columns();
  constexpr std::size_t kMostValues = 1 << 20;
  if (rows == 0 || columns == 0 || rows > kMostValues / columns) return;
  std::vector<float> all(rows * columns), last(columns);
  matrix.read(0, rows, all);
  matrix.read(rows - 1, 1, last);
  require(std::memcmp(last.data(), all.data() + all.size() - columns, columns * sizeof(float)) == 0, "rows differ");
  for (const std::size_t column : {std::min<std::size_t>(1, columns - 1), columns / 2, columns - 1}) {
    std::vector<float> end(columns - column);
    matrix.read_columns(rows - 1, column, end);
    require(std::memcmp(end.data(), last.data() + column, end.size() * sizeof(float)) == 0, "columns differ");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  kvs::fuzz::accept_or_refuse([&] {
    const kvs::Json config = kvs::parse_json(take(input), "config");
    const kvs::Json root{{"quantization_config", config}};
    std::vector<std::string> notes;
    const auto weights = kvs::read_quantization(kvs::JsonCursor(root, "config"), "/nowhere", notes);
    if (weights == nullptr) return;
    const std::string_view header = take(input);
    const std::uint64_t length = header.size();
    std::string file(8, '\0');
    std::memcpy(file.data(), &length, 8);
    file.append(header).append(input);
    const Archive archive(kvs::parse_safetensors(std::as_bytes(std::span(file)), "input"));
    for (const std::string& name : weights_of(archive)) {
      const auto matrix = weights->find(archive, name);
      if (matrix != nullptr) read_matrix(*matrix);
    }
  });
  return 0;
}
