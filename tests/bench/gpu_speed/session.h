// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/json.h"
#include "kernels/backend.h"
#include "model/decoder.h"
#include "model/model.h"

namespace kvs::bench {

/// One model on one device, and the data that the sections share.
struct Session {
  std::string path;
  std::filesystem::path scratch;
  std::size_t tokens = 0;
  std::unique_ptr<ModelSource> source;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
  std::unique_ptr<Decoder> decoder;

  const ModelConfig& config() const { return source->config(); }
  bool on_gpu() const { return backend->device() == "cuda"; }
  /// The ids that transformers_gpu.py uses, too.
  std::vector<std::int32_t> document(std::size_t count) const;
  double forward_seconds() const;
};

double seconds(const std::function<void()>& work);
/// Returns the median of `repeats` runs (odd), after one warm-up run.
double median_seconds(std::size_t repeats, const std::function<void()>& work);
void wait_for(Backend& backend, const void* memory);
/// @throws Error kInternal with `what`, a literal and not a string, because it is called for every value of a capture.
void check(bool holds, const char* what);

/// Number n of a random sequence, a multiple of 1/64 in [-1, 1): exact in bf16, and so are sums of products in f32
/// below 4,096. Constants would draw less power than a model's numbers, and products of them run faster.
float random_value(std::size_t n);

// The sections. Each first checks the results of the code that it times.
Json measure_gemm(Session& s);
Json measure_attention(Session& s);
Json measure_prefill(Session& s);
Json measure_profile(Session& s);
Json measure_capture(Session& s);
Json measure_ropelite(Session& s);
Json measure_ablation(Session& s);
Json measure_jlrd(Session& s);
Json measure_dct(Session& s);

}  // namespace kvs::bench
