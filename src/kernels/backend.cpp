#include "kernels/backend.h"

#include <algorithm>
#include <string>
#include <thread>

#include "core/error.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/make_cuda_backend.h"

namespace kvs {
namespace {

/// For backends whose memory is the host's: the copy is plain, the conversion is left to the thread that waits.
class HostStaging final : public Staging {
 public:
  HostStaging(Backend& backend, std::size_t values, DType type) : backend_(&backend), type_(type) {
    wide_.reserve(values);
    if (type != DType::kF32) narrow_.resize(values);
  }

  void start(std::span<const float> from) override {
    wide_.resize(from.size());
    backend_->download(wide_.data(), from.data(), from.size_bytes());
  }
  std::span<const std::byte> wait() override {
    if (type_ == DType::kF32) return std::as_bytes(std::span(wide_));
    if (type_ == DType::kBF16)
      std::ranges::transform(wide_, narrow_.begin(), f32_to_bf16);
    else
      std::ranges::transform(wide_, narrow_.begin(), f32_to_f16);
    return std::as_bytes(std::span(narrow_).first(wide_.size()));
  }

 private:
  Backend* backend_;
  DType type_;
  std::vector<float> wide_;
  std::vector<std::uint16_t> narrow_;
};

}  // namespace

void check_spectrum(const AttentionInput& input) {
  const KeySpectrum& spectrum = input.spectrum;
  if (spectrum.tokens == 0) return;
  const auto [members, query_heads, tokens, head_dim] = input.q.shape();
  const std::size_t kv_heads = input.k.extent(1);
  const std::array<std::size_t, 4> shape{kv_heads, spectrum.grid.bins.size(), 2, head_dim};
  if (spectrum.k.shape() != shape || spectrum.v.shape() != shape || spectrum.tokens > spectrum.grid.samples)
    throw Error(ErrorCode::kInternal, "attention", "a spectrum of another shape than [kv_head, bin, 2, head_dim]");
  if (members != 1 || input.window != 0 || query_heads / kv_heads * tokens > kMostSpectrumQueries)
    throw Error(ErrorCode::kInternal, "attention", "a spectrum is for few tokens of one member without a window");
}

std::unique_ptr<Staging> Backend::make_staging(std::size_t values, DType type) {
  return std::make_unique<HostStaging>(*this, values, type);
}

std::size_t Backend::spare_threads() const { return std::max(1U, std::thread::hardware_concurrency() / 4); }

std::unique_ptr<Backend> make_backend(std::string_view device, DType compute_type, int threads) {
  if (threads < 0)
    throw Error(ErrorCode::kUsage, "threads", "found " + std::to_string(threads) + ", expected 0 or more");
  if (device == "cuda" || (device == "auto" && cuda_available())) return make_cuda_backend(compute_type);
  if (device == "cpu" || device == "auto") return std::make_unique<CpuBackend>(compute_type, threads);
  throw Error(ErrorCode::kUsage, "device", "found \"" + std::string(device) + "\", expected cpu, cuda or auto");
}

}  // namespace kvs
