// SPDX-License-Identifier: Apache-2.0
// Prints the data that an engine reads from a config.  Usage: print_config CONFIG
#include <kvspectrum/config.h>

#include <iostream>

int main(int argc, char** argv) try {
  if (argc != 2) throw kvspectrum::Error("usage: print_config CONFIG");
  const auto config = kvspectrum::Config::read(argv[1]);
  const kvspectrum::Geometry& model = config.model();
  std::cout << config.method() << " for " << model.name << ", " << model.layers << " layers\n";
  for (const std::size_t layer : config.layers()) {
    std::cout << "layer " << layer;
    if (config.method() == "elitekv") {
      for (const kvspectrum::Factor& factor : config.factors(layer)) std::cout << ", rank " << factor.rank;
      for (const auto& chunks : config.elite_chunks(layer)) {
        std::cout << ", chunks";
        for (const std::size_t chunk : chunks) std::cout << ' ' << chunk;
      }
    } else if (config.method() == "transform") {
      std::cout << ", " << config.count("code_bytes", layer) << " bytes of codes a token, rows by "
                << config.word("rows", layer);
    } else {
      std::cout << ", rows in " << config.word("type", layer);
      if (config.method() == "lagkv")
        std::cout << ", " << config.real("ratio", layer) << " of every " << config.count("lag", layer) << " tokens";
    }
    std::cout << '\n';
  }
} catch (const kvspectrum::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
