// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "kernels/cuda/make_cuda_backend.h"
#include "tests/bench/gpu_speed/session.h"

namespace kvs::bench {
namespace {

/// Rows of a product of the forward pass: the decoder passes no more rows at a time.
constexpr std::size_t kSlabRows = 4096;

/// x and W of one shape. W holds the beginning of the sequence, x the continuation.
class Product {
 public:
  Product(Backend& backend, std::size_t rows, std::size_t columns, std::size_t inner)
      : backend_(backend),
        weight_(backend.make_weight(
            {columns,
             inner,
             [&](std::size_t first, std::size_t, std::span<float> out) { fill(first * inner, out); },
             {}})),
        memory_(backend, {operand_bytes(backend, rows, inner)}),
        x_{memory_.view().data(), rows, inner},
        host_(rows * inner) {
    const BackendTensor<float, 2> wide(backend, {rows, inner});
    fill(columns * inner, host_);
    backend.upload(wide.view().data(), host_.data(), wide.bytes());
    backend.narrow(wide.view(), x_);
  }

  /// Called as in the forward pass.
  double seconds() const {
    constexpr int kInFlight = 8;
    const BackendTensor<float, 2> y(backend_, {x_.rows, weight_->rows()});
    const double time = median_seconds(3, [&] {
      for (int n = 0; n < kInFlight; ++n) backend_.linear(x_, *weight_, y.view(), false);
      wait_for(backend_, y.view().data());
    });
    float first = 0;
    double expected = 0;
    backend_.download(&first, y.view().data(), sizeof first);
    for (std::size_t n = 0; n < x_.columns; ++n) expected += static_cast<double>(host_[n]) * random_value(n);
    check(std::abs(static_cast<double>(first) - expected) < 0.01, "a product is wrong");
    return time / kInFlight;
  }
  std::vector<CudaGemmTrial> trials(DType y_type) const { return cuda_gemm_trials(backend_, x_, *weight_, y_type); }
  double tera_operations() const {
    return 2e-12 * static_cast<double>(x_.rows) * static_cast<double>(x_.columns) *
           static_cast<double>(weight_->rows());
  }

 private:
  static void fill(std::size_t from, std::span<float> out) {
    for (std::size_t n = 0; n < out.size(); ++n) out[n] = random_value(from + n);
  }

  Backend& backend_;
  std::unique_ptr<Weight> weight_;
  BackendTensor<std::byte, 1> memory_;
  Operand x_;
  std::vector<float> host_;
};

/// cuBLASLt's proposals for a product, and the table line of the fastest one.
Json trials_json(const Product& product, DType y_type) {
  const std::vector<CudaGemmTrial> trials = product.trials(y_type);
  Json rates = Json::array();
  for (const CudaGemmTrial& trial : trials) rates.push_back(product.tera_operations() / trial.seconds);
  Json result{{"y", name_of(y_type)},
              {"proposals_tflops", rates},
              {"disagree", std::ranges::count(trials, false, &CudaGemmTrial::agrees)}};
  const auto best = std::ranges::min_element(trials, {}, &CudaGemmTrial::seconds);
  if (best != trials.end()) result["fastest_entry"] = best->entry;
  return result;
}

struct Shape {
  const char* what;
  std::size_t rows, columns, inner;
  DType y_type;
};

}  // namespace

Json measure_gemm(Session& s) {
  const ModelConfig& c = s.config();
  const std::size_t large = s.on_gpu() ? 8192 : 1024;  // 8,192 would take a processor minutes
  const std::size_t width = c.query_heads() * c.head_dim(), rows = std::min(s.tokens, kSlabRows);
  const Shape shapes[] = {
      {"square", large, large, large, DType::kF32},
      {"qkv", rows, width + 2 * c.kv_heads() * c.head_dim(), c.d_model, DType::kF32},
      {"output", rows, c.d_model, width, DType::kF32},
      {"gate, up", rows, 2 * c.d_ff(), c.d_model, s.backend->compute_type()},
      {"down", rows, c.d_model, c.d_ff(), DType::kF32},
      // A tile of logits, as in cross-entropy on a GPU.
      {"head", std::min<std::size_t>(rows, 2048), std::min<std::size_t>(c.vocabulary, 4096), c.d_model, DType::kF32}};
  Json lines = Json::array();
  double peak = 0;
  for (const Shape& shape : shapes) {
    const Product product(*s.backend, shape.rows, shape.columns, shape.inner);
    const double rate = product.tera_operations() / product.seconds();
    peak = std::max(peak, rate);
    Json line{{"what", shape.what},
              {"rows", shape.rows},
              {"columns", shape.columns},
              {"inner", shape.inner},
              {"tflops", rate}};
    if (s.on_gpu()) line.update(trials_json(product, shape.y_type));
    lines.push_back(std::move(line));
  }
  return {{"peak_tflops", peak}, {"shapes", lines}};
}

}  // namespace kvs::bench
