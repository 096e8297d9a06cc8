// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd/fast_math.h"
#include "kernels/cpu/simd/functions.h"

namespace kvs::cpu {
inline namespace KVS_ISA {
namespace {

// Each function returns x times its passing share. It saturates to 0 and x, and keeps NaN.
struct Silu {
  static Lanes of(Lanes x) { return x / (1.0F + exp(-x)); }
};
struct GeluTanh {
  // ½ (1 + tanh u) is the logistic function of 2u. This form keeps its digits where tanh u is near −1.
  static Lanes of(Lanes x) {
    return x / (1.0F + exp(-0x1.988454p+0F * (x + 0x1.6e4e26p-5F * x * x * x)));  // 2 √(2/π), 0.044715
  }
};
struct GeluErf {
  static Lanes of(Lanes x) { return x * (0.5F * erfc(x * -0x1.6a09e6p-1F)); }  // −1/√2
};
struct GeluSigmoid {
  static Lanes of(Lanes x) { return x / (1.0F + exp(-1.702F * x)); }
};
struct Relu {
  static Lanes of(Lanes x) { return x < 0.0F ? Lanes{} : x; }
};
struct ReluSquared {
  static Lanes of(Lanes x) { return x < 0.0F ? Lanes{} : x * x; }
};

template <class Function, class T>
void activate_as(const float* x, const float* up, std::size_t count, T* out) {
  const std::size_t whole = count / kLanes * kLanes, left = count - whole;
  if (up != nullptr) {
    for (std::size_t at = 0; at < whole; at += kLanes) store(out + at, Function::of(load(x + at)) * load(up + at));
    if (left > 0) store_part(out + whole, Function::of(load_part(x + whole, left)) * load_part(up + whole, left), left);
  } else {
    for (std::size_t at = 0; at < whole; at += kLanes) store(out + at, Function::of(load(x + at)));
    if (left > 0) store_part(out + whole, Function::of(load_part(x + whole, left)), left);
  }
}

template <class T>
void choose(Activation kind, const float* x, const float* up, std::size_t count, T* out) {
  if (kind == Activation::kSilu) activate_as<Silu>(x, up, count, out);
  if (kind == Activation::kGeluTanh) activate_as<GeluTanh>(x, up, count, out);
  if (kind == Activation::kGeluErf) activate_as<GeluErf>(x, up, count, out);
  if (kind == Activation::kGeluSigmoid) activate_as<GeluSigmoid>(x, up, count, out);
  if (kind == Activation::kRelu) activate_as<Relu>(x, up, count, out);
  if (kind == Activation::kReluSquared) activate_as<ReluSquared>(x, up, count, out);
}

}  // namespace

void activate(Activation kind, const float* x, const float* up, std::size_t count, void* out, bool bf16) noexcept {
  if (bf16)
    choose(kind, x, up, count, static_cast<std::uint16_t*>(out));
  else
    choose(kind, x, up, count, static_cast<float*>(out));
}

}  // namespace KVS_ISA
}  // namespace kvs::cpu
