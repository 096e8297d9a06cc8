// Opens each file that standard input names, one per line, as weights, and writes "ok" or the error as a line.
// tests/parity/mutated_files.py compares these lines with other readers.
#include <filesystem>
#include <iostream>
#include <string>

#include "core/error.h"
#include "io/gguf.h"
#include "io/tensor_archive.h"

int main() {
  for (std::string line; std::getline(std::cin, line);) try {
      const std::filesystem::path path = line;
      if (path.extension() == ".gguf")
        kvs::GgufFile::open(path);
      else
        kvs::open_safetensors(path);
      std::cout << "ok" << std::endl;
    } catch (const kvs::Error& error) {
      std::cout << error.what() << std::endl;
    }
  return 0;
}
