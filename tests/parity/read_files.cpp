// SPDX-License-Identifier: Apache-2.0
// Opens each file that standard input names, one per line, as weights, and writes "ok" or the error as a line. With
// --digest a sound file's line is "ok" and the SHA-256 of its tensors' values in f32, in byte order of names.
// tests/parity/mutated_files.py and random_blocks.py compare these lines with other readers.
#include <filesystem>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "io/digest.h"
#include "io/gguf.h"
#include "io/tensor_archive.h"

namespace {

std::unique_ptr<kvs::TensorArchive> open(const std::filesystem::path& path) {
  if (path.extension() == ".gguf") return kvs::GgufFile::open(path);
  return kvs::open_safetensors(path);
}

std::string digest(const kvs::TensorArchive& archive) {
  kvs::Sha256 digest;
  for (const kvs::StoredTensor& tensor : archive.tensors()) {
    std::vector<float> values(tensor.rows() * tensor.columns());
    kvs::read_rows(tensor, 0, tensor.rows(), values);
    digest.update(std::as_bytes(std::span(values)));
  }
  return digest.finish();
}

}  // namespace

int main(int count, char** arguments) {
  const bool digests = count > 1 && arguments[1] == std::string_view("--digest");
  for (std::string line; std::getline(std::cin, line);) try {
      const auto archive = open(line);
      std::cout << "ok" << (digests ? " " + digest(*archive) : "") << std::endl;
    } catch (const kvs::Error& error) {
      std::cout << error.what() << std::endl;
    }
  return 0;
}
