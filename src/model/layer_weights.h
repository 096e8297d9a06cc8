// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "kernels/backend.h"

namespace kvs::inline model {

/// A norm of the architecture; empty if the architecture has none.
struct NormWeights {
  BackendTensor<float, 1> gain, bias;  // bias: NormKind::kLayer only

  std::size_t bytes() const noexcept { return gain.bytes() + bias.bytes(); }
};

/// Gains for a cache of keys that RoPE turns after they are normalised. As RMS norms and rotations commute, keys have
/// the gain 1, and queries the product of both gains.
struct TurnedNorm {
  BackendTensor<float, 1> query_gain, key_gain;  // [head_dim]

  std::size_t bytes() const noexcept { return query_gain.bytes() + key_gain.bytes(); }
};

/// A feed-forward network: of a dense block, of one expert, or of the shared expert.
struct MlpWeights {
  std::unique_ptr<Weight> gate_up;  // rows: gate, up; or up alone
  std::unique_ptr<Weight> down;     // [d_model, width]

  std::size_t bytes() const noexcept { return gate_up == nullptr ? 0 : gate_up->bytes() + down->bytes(); }
};

/// The experts of a sparse block.
struct ExpertWeights {
  std::unique_ptr<Weight> router;                 // [expert, d_model]
  std::vector<float> router_bias;                 // [expert], or empty: route()
  std::vector<MlpWeights> experts;                // empty: the block is dense
  MlpWeights shared;                              // nothing: no shared expert
  std::unique_ptr<Weight> shared_scale;           // [1, d_model]; nullptr: the shared expert's output is not scaled
  std::unique_ptr<Weight> latent_in, latent_out;  // [latent, d_model], [d_model, latent]; nullptr: no latent
  // ExpertsConfig::beside_dense: gains of the router's and the experts' inputs and of both blocks' outputs, [d_model].
  NormWeights router_norm, input_norm, output_norm, dense_output_norm;

  std::size_t bytes() const noexcept;
};

/// A recurrent block. What its kind does not have is empty.
struct RecurrenceWeights {
  std::unique_ptr<Weight> input;                   // rows as in delta_net.cpp, mamba2.cpp, short_convolution.cpp
  BackendTensor<float, 2> taps;                    // [tap, channel]
  BackendTensor<float, 1> taps_bias;               // [channel]
  BackendTensor<float, 1> decay, step_bias, skip;  // [value_head]
  BackendTensor<float, 1> norm;                    // gain of the output
  std::unique_ptr<Weight> output;                  // [d_model, value rows]

  std::size_t bytes() const noexcept;
};

/// The index of tokens of a latent attention (TokenIndexConfig).
struct TokenIndexWeights {
  std::unique_ptr<Weight> query;   // [heads · dim, query_rank]
  std::unique_ptr<Weight> key;     // [dim, d_model]
  NormWeights norm;                // of a key
  std::unique_ptr<Weight> weight;  // of the heads, [heads, d_model]

  std::size_t bytes() const noexcept;
};

/// Latent attention (LatentConfig).
struct LatentWeights {
  std::unique_ptr<Weight> query_latent;             // [query_rank, d_model]; nullptr: queries come from the input
  BackendTensor<float, 1> query_norm;               // gain of the queries' latent
  std::unique_ptr<Weight> query;                    // rows: all heads' channels that do not rotate, then those that do
  std::unique_ptr<Weight> row;                      // [shared key + rank, d_model]
  BackendTensor<float, 1> norm;                     // gain of the latent
  std::vector<std::unique_ptr<Weight>> key_maps;    // [query_head] of [rank, plain_dim]: transposed W_k
  std::vector<std::unique_ptr<Weight>> value_maps;  // [query_head] of [value_dim, rank]: W_v
  TokenIndexWeights index;                          // nothing: the layer has no index of its own

  std::size_t bytes() const noexcept;
};

/// AltUp in one layer, with small matrices in host memory.
struct StreamWeights {
  NormWeights router_norm;         // gain of the router's input, divided by d_model
  std::unique_ptr<Weight> router;  // [stream, d_model]
  std::vector<float> prediction;   // [stream · stream, stream]
  std::vector<float> correction;   // [stream, stream]

  std::size_t bytes() const noexcept { return router == nullptr ? 0 : router->bytes() + router_norm.bytes(); }
};

/// AltUp's projections of each stream but the first: from the embeddings, and to the mean of the last layer's streams.
struct StreamProjections {
  std::vector<std::unique_ptr<Weight>> in, out;  // [d_model, d_model]
};

/// The map of low rank, parallel to an attention block.
struct LaurelWeights {
  std::unique_ptr<Weight> down, up;  // [rank, d_model], [d_model, rank]
  NormWeights norm;                  // of the output, [d_model]

  std::size_t bytes() const noexcept { return down == nullptr ? 0 : down->bytes() + up->bytes() + norm.bytes(); }
};

/// The weights that add a layer's own input to the residual stream (ModelConfig::layer_inputs).
struct LayerInputWeights {
  std::unique_ptr<Weight> gate;    // [width, d_model]
  std::unique_ptr<Weight> output;  // [d_model, width]
  NormWeights norm;                // of the output, [d_model]

  std::size_t bytes() const noexcept { return gate == nullptr ? 0 : gate->bytes() + output->bytes() + norm.bytes(); }
};

struct LayerWeights {
  NormWeights attention_norm, feed_forward_norm;                // [d_model], of the blocks' inputs
  NormWeights query_norm, key_norm;                             // [head_dim] or [heads · head_dim]
  TurnedNorm turned_norm;                                       // if QkNorm follows RoPE
  NormWeights value_norm;                                       // gains of 1, [head_dim]
  NormWeights attention_output_norm, feed_forward_output_norm;  // [d_model]
  std::unique_ptr<Weight> qkv;          // rows: q heads, k heads, v heads, rotate-half channel order
  LatentWeights latent;                 // instead of qkv
  std::unique_ptr<Weight> output;       // [d_model, query_heads · head_dim], or [d_model, query_heads · value_dim]
  std::unique_ptr<Weight> output_gate;  // [query_heads · head_dim, d_model]; nullptr: the output is not gated
  RecurrenceWeights recurrence;
  BackendTensor<float, 1> sinks;  // [query_head], or empty
  MlpWeights mlp;                 // of a dense block
  ExpertWeights sparse;           // of a sparse block
  LayerInputWeights input;        // nothing: the layer has no input of its own
  StreamWeights streams;          // nothing: the model has one residual stream
  LaurelWeights laurel;           // nothing: no map parallel to the attention
  float scale = 1;                // multiplies the residual stream after the layer

  std::size_t bytes() const noexcept;  // backend memory held
  /// A norm that the layer has: every layer normalises the input or the output of a block.
  const NormWeights& any_norm() const noexcept;
};

}  // namespace kvs::inline model
