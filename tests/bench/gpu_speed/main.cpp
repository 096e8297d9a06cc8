// SPDX-License-Identifier: Apache-2.0
// Speeds of one model on one device, each as a line of JSON on stdout. Every section first checks its results.
//
// Usage: gpu_speed MODEL [DEVICE = cuda] [TYPE = bf16] [TOKENS = 4096] [SCRATCH = /dev/shm] [SECTION ...]
// Sections: gemm attention prefill profile capture ropelite ablation jlrd dct (default: all but profile, which loads
// the model a second time). SCRATCH should be a RAM disk.
#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

#include "core/error.h"
#include "tests/bench/gpu_speed/session.h"
#include "tests/bench/program.h"

namespace kvs::bench {
namespace {

struct Section {
  std::string_view name;
  Json (*measure)(Session&);
  bool by_default = true;
};
constexpr Section kSections[] = {{"gemm", measure_gemm},
                                 {"attention", measure_attention},
                                 {"prefill", measure_prefill},
                                 {"profile", measure_profile, false},
                                 {"capture", measure_capture},
                                 {"ropelite", measure_ropelite},
                                 {"ablation", measure_ablation},
                                 {"jlrd", measure_jlrd},
                                 {"dct", measure_dct}};

void check_names(int argc, char** argv) {
  for (int n = 6; n < argc; ++n)
    if (std::ranges::find(kSections, std::string_view(argv[n]), &Section::name) == std::end(kSections))
      throw Error(ErrorCode::kUsage, "section", "found '" + std::string(argv[n]) + "', expected one of gpu_speed's");
}

int run(int argc, char** argv) {
  const auto argument = [&](int n, const char* standard) { return std::string(argc > n ? argv[n] : standard); };
  check_names(argc, argv);
  Session s;
  s.path = argv[1];
  const auto type = dtype_from_name(argument(3, "bf16"));
  if (!type) throw Error(ErrorCode::kUsage, "type", "found '" + argument(3, "") + "', expected f32 or bf16");
  s.tokens = std::stoul(argument(4, "4096"));
  s.scratch = argument(5, "/dev/shm");
  s.source = ModelSource::open(s.path);
  s.backend = make_backend(argument(2, "cuda"), *type);
  s.backend->on_note([](const std::string& line) { std::fprintf(stderr, "gpu_speed: note: %s\n", line.c_str()); });
  const double loading = seconds([&] { s.model = std::make_unique<Model>(*s.source, *s.backend); });
  s.decoder = std::make_unique<Decoder>(*s.model);
  for (const Section& section : kSections) {
    const auto wanted = [&](const char* word) { return section.name == word; };
    if (argc > 6 ? std::none_of(argv + 6, argv + argc, wanted) : !section.by_default) continue;
    Json line{{"section", section.name},
              {"model", std::filesystem::path(s.path).filename().string()},
              {"device", s.backend->device()},
              {"dtype", name_of(*type)},
              {"tokens", s.tokens},
              {"loading_seconds", loading}};
    line.update(section.measure(s));
    std::printf("%s\n", dump_json(line, -1).c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace kvs::bench

int main(int argc, char** argv) {
  return kvs::bench::run_program(argc, argv, 1, "gpu_speed MODEL [DEVICE] [TYPE] [TOKENS] [SCRATCH] [SECTION ...]",
                                 kvs::bench::run);
}
