// SPDX-License-Identifier: Apache-2.0
// Time and memory of opening and loading a model, files warm.
//
// Usage: load_bench MODEL [f32 | bf16] [repeats = 5]
//
// Prints the best wall time and its processor time (all threads) of opening (everything checked, no weight read), of
// the digest and of loading, and the peak of resident memory while loading, without the weights' own bytes.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/error.h"
#include "model/decoder.h"
#include "tests/bench/program.h"

namespace {

struct Times {
  double wall = 1e9, processor = 0;
};

double processor_seconds() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Times best_of(int repeats, const std::function<void()>& work) {
  Times best;
  for (int n = 0; n < repeats; ++n) {
    const double processor = processor_seconds();
    const auto start = std::chrono::steady_clock::now();
    work();
    const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (wall < best.wall) best = {wall, processor_seconds() - processor};
  }
  return best;
}

/// Returns a line of /proc/self/status in MiB: "VmHWM:" is the peak since reset_peak(), "VmRSS:" the current value.
double status_mebibytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kibibytes = 0;
    if (word == key && status >> kibibytes) return kibibytes / 1024;
  }
  return std::nan("");
}

void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

int run(int argc, char** argv) {
  const bool bf16 = argc > 2 && std::string(argv[2]) == "bf16";
  const int repeats = argc > 3 ? std::atoi(argv[3]) : 5;
  const auto backend = kvs::make_backend("cpu", bf16 ? kvs::DType::kBF16 : kvs::DType::kF32);
  std::unique_ptr<kvs::ModelSource> source;
  const Times opening = best_of(repeats, [&] { source = kvs::ModelSource::open(argv[1]); });
  const Times digest = best_of(repeats, [&] { (void)kvs::ModelSource::open(argv[1])->sha256(); });
  std::optional<kvs::Model> model;
  const double before = status_mebibytes("VmRSS:");
  double peak = 0;
  const Times loading = best_of(repeats, [&] {
    model.reset();
    reset_peak();
    model.emplace(*source, *backend);
    peak = std::max(peak, status_mebibytes("VmHWM:"));
  });
  kvs::Decoder decoder(*model);
  const std::vector<std::int32_t> ids{1, 2, 3, 4};
  for (const float nll : kvs::document_nll(decoder, ids)) {
    if (std::isfinite(nll)) continue;
    std::fprintf(stderr, "load_bench: the NLL is not finite\n");
    return 5;
  }
  const double weights = static_cast<double>(model->weight_bytes()) / (1 << 20);
  std::printf("%s (commit %s): open %.3f s (%.3f s of processor time), digest %.3f s (%.3f s), load %.3f s (%.3f s)\n",
              bf16 ? "bf16" : "f32", KVS_COMMIT, opening.wall, opening.processor, digest.wall, digest.processor,
              loading.wall, loading.processor);
  std::printf("weights %.0f MiB, peak %.0f MiB above the %.0f MiB before: %.0f MiB more than the weights\n", weights,
              peak - before, before, peak - before - weights);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return kvs::bench::run_program(argc, argv, 1, "load_bench MODEL [f32|bf16] [repeats]", run);
}
