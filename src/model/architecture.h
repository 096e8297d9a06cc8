#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "model/rope_config.h"

namespace kvs {

/// What a tensor is for, whatever a file calls it.
enum class TensorRole : std::uint8_t {
  kEmbedding,
  kFinalNorm,
  kHead,
  kRopeFactors,
  kRopeLongFactors,
  kRopeShortFactors,
  kAttentionNorm,
  kQuery,
  kKey,
  kValue,
  kOutput,
  kFeedForwardNorm,
  kGate,
  kUp,
  kDown
};
inline constexpr std::size_t kTensorRoles = 15;

/// What an extent of a tensor's shape must be equal to.
enum class Axis : std::uint8_t { kNone, kVocabulary, kModel, kQueryRows, kKeyRows, kFeedForward, kChunks };

/// Which of the config's bias switches a projection follows.
enum class BiasGroup : std::uint8_t { kNone, kAttention, kFeedForward };

/// One tensor of an architecture. Names lack their ending (".weight" or ".bias"); "{}" stands for the layer.
struct TensorSpec {
  TensorRole role;
  std::string_view hf, gguf;  // empty: the format has no such tensor
  Axis rows, columns;         // columns kNone: a vector of `rows`
  BiasGroup bias = BiasGroup::kNone;
  bool optional = false;  // absent from a file that does not need it

  bool per_layer() const noexcept { return gguf.find("{}") != std::string_view::npos; }
};

/// Divisors of RoPE's frequencies, which a GGUF of any architecture may hold.
inline constexpr std::array kRopeTensors{
    TensorSpec{TensorRole::kRopeFactors, "", "rope_freqs", Axis::kChunks, Axis::kNone, BiasGroup::kNone, true},
    TensorSpec{TensorRole::kRopeLongFactors, "", "rope_factors_long", Axis::kChunks, Axis::kNone, BiasGroup::kNone,
               true},
    TensorSpec{TensorRole::kRopeShortFactors, "", "rope_factors_short", Axis::kChunks, Axis::kNone, BiasGroup::kNone,
               true}};

/// One supported family of models: a row of the table in architectures.cpp.
struct Architecture {
  std::string_view name;        // in configs and captures
  std::string_view hf_class;    // config.json: architectures[0]
  std::string_view model_type;  // config.json: model_type
  std::string_view gguf;        // general.architecture; empty: this row's models carry another row's name in GGUF
  std::span<const TensorSpec> tensors;  // beside kRopeTensors
  bool gguf_interleaved;                // GGUF stores the rows of W_q and W_k in the order of adjacent RoPE pairs
  std::string_view attention_bias_key;  // config.json switch for biases of q, k, v and output; empty: it has none
  std::string_view mlp_bias_key;        // the same for gate, up and down
  std::string_view window_key;          // config.json key that must be null (full attention); empty: no such key
  RopeDefaults rope = {};
};

/// @throws Error kUnsupported with the supported names.
const Architecture& architecture_of_hf_class(std::string_view hf_class, std::string_view where);
const Architecture& architecture_of_model_type(std::string_view model_type, std::string_view where);
const Architecture& architecture_of_gguf(std::string_view gguf, std::string_view where);

/// `name` with "{}" replaced by `layer`.
std::string with_layer(std::string_view name, std::size_t layer);

}  // namespace kvs
