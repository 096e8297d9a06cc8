// SPDX-License-Identifier: Apache-2.0
// Writes a model with random weights at a real model's geometry, for tests of scale without real weights. Or writes a
// tiny model of the architecture that a file of tests/golden/parity describes, in f32, with weights by a formula.
//
// Usage: make_model GEOMETRY FOLDER [bf16 | f16 | f32] [seed = 0] [layers = the geometry's]
//        make_model GEOMETRY FILE.gguf [seed = 0] [layers = the geometry's]    with experts, in Q4_K
//        make_model FILE.json FOLDER
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/error.h"
#include "io/file.h"
#include "tests/bench/random_gguf.h"
#include "tests/bench/random_model.h"
#include "tests/model/formula_model.h"

namespace {

int print_usage() {
  std::fprintf(stderr,
               "usage: make_model GEOMETRY|FILE.json FOLDER [bf16|f16|f32] [seed] [layers]\n"
               "       make_model GEOMETRY FILE.gguf [seed] [layers]\ngeometries:");
  for (const kvs::ModelGeometry& geometry : kvs::model_geometries())
    std::fprintf(stderr, " %s", std::string(geometry.name).c_str());
  std::fprintf(stderr, "\ngeometries of GGUF files:");
  for (const kvs::ExpertsGeometry& geometry : kvs::experts_geometries())
    std::fprintf(stderr, " %s", std::string(geometry.name).c_str());
  std::fprintf(stderr, "\n");
  return 2;
}

int write_gguf_model(int argc, char** argv) {
  const auto found =
      std::ranges::find(kvs::experts_geometries(), std::string_view(argv[1]), &kvs::ExpertsGeometry::name);
  if (found == kvs::experts_geometries().end() || argc > 5) return print_usage();
  kvs::ExpertsGeometry geometry = *found;
  if (argc > 4) geometry.layers = std::stoul(argv[4]);
  const auto bytes = kvs::write_random_gguf(geometry, argv[2], argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0);
  std::printf("%s: %s, %.2f GiB\n", argv[2], argv[1], static_cast<double>(bytes) / (1 << 30));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 6) return print_usage();
  try {
    if (std::string_view(argv[2]).ends_with(".gguf")) return write_gguf_model(argc, argv);
    if (const std::string path = argv[1]; argc == 3 && path.ends_with(".json")) {
      const kvs::Json golden = kvs::parse_json(kvs::read_text_file(path, 1 << 20), path);
      kvs::test::write_formula_model(argv[2], golden.at("config"), golden.at("tensors"));
      return 0;
    }
    kvs::RandomModelOptions options;
    if (argc > 3) {
      const auto type = kvs::dtype_from_name(argv[3]);
      if (!type || *type == kvs::DType::kF64)
        throw kvs::Error(kvs::ErrorCode::kUsage, "type",
                         "found '" + std::string(argv[3]) + "', expected bf16, f16 or f32");
      options.dtype = *type;
    }
    if (argc > 4) options.seed = std::strtoull(argv[4], nullptr, 10);
    kvs::ModelGeometry geometry = kvs::model_geometry(argv[1]);
    if (argc > 5) geometry.layers = std::stoul(argv[5]);
    const auto bytes = kvs::write_random_model(geometry, argv[2], options);
    std::printf("%s: %s, %.2f GiB\n", argv[2], argv[1], static_cast<double>(bytes) / (1 << 30));
    return 0;
  } catch (const kvs::Error& error) {
    std::fprintf(stderr, "make_model: error: %s\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_model: error: %s\n", error.what());
    return 70;
  }
}
