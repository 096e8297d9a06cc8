// SPDX-License-Identifier: Apache-2.0
#include "kernels/backend.h"

#include <algorithm>
#include <string>
#include <thread>

#include "core/error.h"

namespace kvs::inline kernels {
namespace {

/// For backends that use host memory: start() copies without conversion, and the thread that waits converts.
class HostStaging final : public Staging {
 public:
  HostStaging(DeviceMemory& memory, std::size_t values, DType type) : memory_(&memory), type_(type) {
    wide_.reserve(values);
    if (type != DType::kF32) narrow_.resize(values);
  }

  void start(std::span<const float> from) override {
    wide_.resize(from.size());
    memory_->download(wide_.data(), from.data(), from.size_bytes());
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
  DeviceMemory* memory_;
  DType type_;
  std::vector<float> wide_;
  std::vector<std::uint16_t> narrow_;
};

[[noreturn]] void refuse_device(const std::string& operation) {
  throw Error(ErrorCode::kUnsupported, "device", "found one without " + operation + ", expected cpu");
}

void require_attention(bool holds, const std::string& expected) {
  if (!holds) throw Error(ErrorCode::kInternal, "attention", "shapes do not fit: expected " + expected);
}

bool fits(const StoredRows& rows, const AttentionInput& in) {
  const auto& [members, heads, capacity, head_dim] = rows.shape;
  return rows.empty() || ((members == in.q.extent(0) || members == 1) && heads == in.k.extent(1) &&
                          capacity >= rows.count && head_dim == in.q.extent(3));
}

}  // namespace

void DeviceMemory::copy_pieces(void* to, std::size_t to_stride, const void* from, std::size_t from_stride,
                               std::size_t bytes, std::size_t pieces) {
  for (std::size_t piece = 0; piece < pieces; ++piece)
    copy(static_cast<std::byte*>(to) + piece * to_stride, static_cast<const std::byte*>(from) + piece * from_stride,
         bytes);
}

void ForwardOps::add_rows(BackendView<const float, 2> /*x*/, std::span<const std::int32_t> /*rows*/,
                          std::span<const float> /*weights*/, BackendView<float, 2> /*sum*/) {
  refuse_device("experts");
}

void ForwardOps::layer_norm_heads(BackendView<float, 4> /*x*/, BackendView<const float, 1> /*gain*/,
                                  BackendView<const float, 1> /*bias*/, float /*epsilon*/) {
  refuse_device("LayerNorm of queries and keys");
}

void ForwardOps::clamp(BackendView<float, 4> /*x*/, float /*limit*/) { refuse_device("limits of states"); }

void ForwardOps::scale_tokens(BackendView<float, 4> /*x*/, std::span<const float> /*factors*/) {
  refuse_device("a temperature of queries");
}

void ForwardOps::sparse_up_projection(Operand /*x*/, const Weight& /*weight*/, Activation /*activation*/,
                                      float /*deviations*/, Operand /*out*/) {
  refuse_device("sparse activations");
}

void ForwardOps::clamped_up_projection(Operand /*x*/, const Weight& /*weight*/, const SwigluClamp& /*clamp*/,
                                       Operand /*out*/) {
  refuse_device("clamped activations");
}

void check_attention(const AttentionInput& input, const Operand& out) {
  const auto [members, query_heads, tokens, head_dim] = input.q.shape();
  const auto& k = input.k.shape();
  require_attention(k == input.v.shape() && k[0] == members && k[2] == tokens && k[3] == head_dim,
                    "k and v of q's members, tokens and head_dim");
  require_attention(k[1] > 0 && query_heads % k[1] == 0, "query heads in equal groups per kv head");
  const PastKv& past = input.past;
  require_attention(past.count() == past.v.count + past.late_v.count && fits(past.k, input) && fits(past.v, input) &&
                        fits(past.late_k, input) && fits(past.late_v, input),
                    "a past of [member or 1, kv_head, count or more, head_dim]");
  const Settling& settling = past.settling;
  require_attention(settling.step == 0 ||
                        (members == 1 && input.window + input.chunk == 0 && input.mass.empty() &&
                         settling.first >= settling.step && tokens > 0 && past.count() >= settling.before(tokens - 1)),
                    "settled rows of one member's tokens, without a window, chunks or a mass");
  require_attention(past.slots.cosine.empty() || past.slots.cosine.extent(0) >= past.count(),
                    "a table of the past's slots");
  require_attention(out.rows == members * tokens && out.columns == query_heads * head_dim,
                    "out of [member · token, H · head_dim]");
  const std::size_t rows = query_heads / k[1] * tokens;
  require_attention(input.mass.empty() || (members == 1 && tokens == 1 && rows <= kMaxQueryRows &&
                                           input.mass.shape() == std::array{k[1], past.count() + 1}),
                    "a mass of [kv_head, past + 1] of one token, and groups of at most 256 query heads");
  require_attention(input.scale > 0 && input.softcap >= 0, "a positive scale, and a soft cap or 0");
  require_attention(input.sinks.empty() || input.sinks.size() == query_heads, "no sinks, or one for each query head");
}

std::vector<float> download(Backend& backend, const Operand& operand) {
  const std::size_t count = operand.rows * operand.columns;
  std::vector<float> values(count);
  if (backend.compute_type() == DType::kBF16) {
    std::vector<std::uint16_t> narrow(count);
    backend.download(narrow.data(), operand.data, count * sizeof(std::uint16_t));
    std::ranges::transform(narrow, values.begin(), bf16_to_f32);
  } else {
    backend.download(values.data(), operand.data, count * sizeof(float));
  }
  return values;
}

std::unique_ptr<Staging> DeviceMemory::make_staging(std::size_t values, DType type) {
  return std::make_unique<HostStaging>(*this, values, type);
}

std::size_t Backend::spare_threads() const { return std::max(1U, std::thread::hardware_concurrency() / 4); }

}  // namespace kvs::inline kernels
