// SPDX-License-Identifier: Apache-2.0
// Checks in seconds that a device works: its memory, a product, attention, an FFT, an SVD, a tiny model's loss, each
// against the CPU. Prints a line when each piece begins and ends, so that a hang shows its place; then a line of JSON.
// Exit status 1 if a piece is wrong; the status of the error if there is no usable device.
//
// Usage: gpu_smoke MODEL [DEVICE = cuda]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "core/error.h"
#include "io/json.h"
#include "kernels/calibration_ops.h"
#include "kernels/cuda/make_cuda_backend.h"
#include "kernels/spectral_ops.h"
#include "model/decoder.h"
#include "tests/bench/program.h"
#include "tests/kernels/support.h"

namespace kvs::test {
namespace {

/// Each piece runs on the device and on the CPU; its values may differ by `tolerance`.
class Smoke {
 public:
  Smoke(std::string model, std::string device) : model_(std::move(model)), device_(std::move(device)) {}

  int run() {
    // Without these two no other piece can run: their errors end the program.
    std::printf("device ...\n");
    const auto memory = [](Backend& backend) {
      return download(backend, uploaded<2>(backend, random_values(1 << 20, 1), {1 << 10, 1 << 10}).view());
    };
    begin();
    compare("device", memory(*make_backend(device_, DType::kF32)), random_values(1 << 20, 1), 0);
    piece("product", DType::kBF16, product, 192 * 0x1p-20);
    piece("attention, own kernel", DType::kBF16, attention("own"), 0x1p-6);
    if (device_ == "cuda") piece("attention, cuDNN", DType::kBF16, attention("auto"), 0x1p-6);
    piece("fft", DType::kF32, filtered, 1e-6);
    piece("svd", DType::kF32, singular_values, 1e-10);
    for (const DType type : {DType::kF32, DType::kBF16})
      piece(
          "model " + type_name(type), type, [this](Backend& backend) { return loss(backend); },
          type == DType::kF32 ? 2e-3 : 0.2);
    const Json line{{"section", "smoke"}, {"model", ""}, {"failed", failed_}, {"seconds", seconds_}};
    std::printf("%s\n", dump_json(line, -1).c_str());
    return failed_.empty() ? 0 : 1;
  }

 private:
  using Values = std::vector<double>;

  static Values product(Backend& backend) {
    const OwnedOperand x(backend, random_values(256 * 192, 1), 256, 192);
    const auto weight = make_weight(backend, random_values(320 * 192, 2), 320, 192);
    const BackendTensor<float, 2> y(backend, {256, 320});
    backend.linear(x, *weight, y.view(), false);
    return doubles(download(backend, y.view()));
  }

  /// Long enough for cuDNN where cuDNN is allowed.
  static std::function<Values(Backend&)> attention(const char* kernel) {
    return [kernel](Backend& given) {
      ::setenv("KVS_ATTENTION", kernel, 1);
      const auto backend = make_backend(given.device(), given.compute_type());
      ::unsetenv("KVS_ATTENTION");
      constexpr std::size_t kHeads = 2, kTokens = 1030, kHeadDim = 64;
      const auto states = [&](std::uint32_t seed) {
        return uploaded<4>(*backend, random_values(kHeads * kTokens * kHeadDim, seed), {1, kHeads, kTokens, kHeadDim});
      };
      const auto q = states(1), k = states(2), v = states(3);
      const OwnedOperand out(*backend, kTokens, kHeads * kHeadDim);
      backend->attention({.q = q.view(), .k = k.view(), .v = v.view(), .scale = 0.125F}, out);
      Values values = doubles(out.values());
      if (backend->device() == "cuda") std::printf("  attention: %s\n", cuda_attention_note(*backend).c_str());
      return values;
    };
  }

  static Values filtered(Backend& backend) {
    constexpr std::size_t kHeads = 2, kTokens = 100, kHeadDim = 64;
    const auto x = uploaded<3>(backend, random_values(kHeads * kTokens * kHeadDim, 1), {kHeads, kTokens, kHeadDim});
    const BackendTensor<float, 4> out(backend, {1, kHeads, kTokens, kHeadDim});
    std::vector<double> gains(kTokens);
    for (std::size_t bin = 0; bin < kTokens; ++bin) gains[bin] = 1.0 / static_cast<double>(1 + bin);
    backend.make_spectral_ops()->filter(x.view(), Transform::kDct, 0, kTokens, {gains, {1, kTokens}}, out.view());
    return doubles(download(backend, out.view()));
  }

  static Values singular_values(Backend& backend) {
    const Values matrix = doubles(random_values(64 * 48, 1));
    return make_calibration_ops(backend)->svd({std::span<const double>(matrix), {64, 48}}, 4).singular;
  }

  Values loss(Backend& backend) const {
    const auto source = ModelSource::open(model_);
    const Model model(*source, backend);
    Decoder decoder(model);
    std::vector<std::int32_t> ids(128);
    for (std::size_t n = 0; n < ids.size(); ++n)
      ids[n] = static_cast<std::int32_t>((n * 7919 + 13) % source->config().vocabulary);
    return doubles(document_nll(decoder, ids));
  }

  static Values doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

  void begin() { start_ = std::chrono::steady_clock::now(); }

  void piece(const std::string& name, DType type, const std::function<Values(Backend&)>& work, double tolerance) {
    std::printf("%s ...\n", name.c_str());
    std::fflush(stdout);
    begin();
    try {
      const Values found = work(*make_backend(device_, type));
      compare(name, found, work(*make_backend("cpu", type)), tolerance);
    } catch (const Error& error) {
      std::printf("FAIL %s: %s\n", name.c_str(), error.what());
      failed_.push_back(name);
    }
  }

  template <class T>
  void compare(const std::string& name, const std::vector<T>& found, const std::vector<T>& expected, double tolerance) {
    double worst = found.size() == expected.size() ? 0 : INFINITY;
    for (std::size_t n = 0; n < std::min(found.size(), expected.size()); ++n) {
      const double apart = std::abs(static_cast<double>(found[n]) - static_cast<double>(expected[n]));
      worst = apart <= worst ? worst : apart;  // NaN counts as the worst difference
    }
    const bool holds = worst <= tolerance;
    if (!holds) failed_.push_back(name);
    const double time = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    seconds_[name] = time;
    std::printf("%s %s: %.2e apart, at most %.2e; %.2f s\n", holds ? "ok  " : "FAIL", name.c_str(), worst, tolerance,
                time);
    std::fflush(stdout);
  }

  std::string model_, device_;
  std::chrono::steady_clock::time_point start_;
  std::vector<std::string> failed_;
  Json seconds_ = Json::object();
};

}  // namespace
}  // namespace kvs::test

int main(int argc, char** argv) {
  return kvs::bench::run_program(argc, argv, 1, "gpu_smoke MODEL [DEVICE]", [](int count, char** words) {
    return kvs::test::Smoke(words[1], count > 2 ? words[2] : "cuda").run();
  });
}
