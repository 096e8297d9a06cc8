// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "io/layer_sizes.h"
#include "kernels/spectral_ops.h"
#include "states/state_source.h"

namespace kvs::inline analyzers {

/// The states whose spectra are computed.
inline constexpr std::array kSpectrumStates{StateKind::kKPre, StateKind::kKPost, StateKind::kV};

/// Values by layer (index in the list of layers), kv head and bin.
struct PowerTable {
  PowerTable() = default;
  /// @param heads_by_layer  [layer]
  PowerTable(std::vector<std::size_t> heads_by_layer, std::size_t bin_count);
  PowerTable(std::size_t layer_count, std::size_t head_count, std::size_t bin_count)
      : PowerTable(std::vector<std::size_t>(layer_count, head_count), bin_count) {}

  /// Returns all rows of a layer: [head, bin].
  std::span<double> rows(std::size_t layer) noexcept {
    return std::span(values).subspan(first[layer] * bins, heads[layer] * bins);
  }
  std::span<double> row(std::size_t layer, std::size_t head) noexcept {
    return std::span(values).subspan((first[layer] + head) * bins, bins);
  }
  std::span<const double> row(std::size_t layer, std::size_t head) const noexcept {
    return std::span(values).subspan((first[layer] + head) * bins, bins);
  }
  /// Returns the number of heads of the layer with most.
  std::size_t most_heads() const noexcept { return *std::ranges::max_element(heads); }
  /// Returns the mean over the heads of a layer.
  std::vector<double> layer_mean(std::size_t layer) const;

  std::size_t layers = 0, bins = 0;
  std::vector<std::size_t> heads, first;  // [layer] its heads, and the heads of the layers before it
  std::vector<double> values;             // [layer][head, bin]
};

/// A channel with the same value at every token of every document: its spectrum is DC only.
struct ConstantChannel {
  StateKind state;
  std::size_t layer, head, channel;  // layer: number in the model
};

/// Mean power over documents and channels, in squared units of the states (definition: orthonormal transform along the
/// token axis, power = X²).
struct Spectrum {
  Transform transform = Transform::kDct;
  std::size_t tokens = 0, sinks = 0, documents = 0;
  std::vector<std::size_t> layers;    // the model's layers, ascending
  StateSet states;                    // which of the following tables are filled
  ByState<PowerTable> power;          // over all T tokens
  ByState<PowerTable> without_sinks;  // over tokens [sinks, T)
  std::vector<ConstantChannel> constant_channels;

  const PowerTable& table(StateKind state, bool with_sinks) const noexcept {
    return (with_sinks ? power : without_sinks)[state];
  }
};

/// Adds documents one by one. Every sum is per document, in document order and in double, so that sums() saved after a
/// document and passed to restore() continue with bit-identical results.
class SpectrumAccumulator {
 public:
  struct Settings {
    Transform transform = Transform::kDct;
    std::size_t sinks = 4;            // left out in the second set of tables
    std::vector<std::size_t> layers;  // ascending
    StateSet states{kSpectrumStates.begin(), kSpectrumStates.end()};
    LayerSizes kv_heads, head_dim;  // of the model's layers

    std::vector<std::size_t> heads_by_layer() const;  // by index in `layers`
  };

  /// @throws Error kUsage if `tokens` does not exceed the sinks.
  SpectrumAccumulator(SpectralOps& ops, Settings settings, std::size_t tokens);

  /// Adds one document of `source`, layer by layer. Calls may run in turns (turns/turns.h). If a call throws, the sums
  /// hold a part of its document.
  /// @return false if the source leaves out this document because it is damaged; it is not counted
  /// @throws Error kData naming document, layer, head and state if a state is not finite; Interrupted between layers.
  bool add_document(StateSource& source, std::size_t document);

  /// Number of documents added.
  std::size_t documents() const noexcept { return static_cast<std::size_t>(documents_.front()); }
  /// Returns everything that add_document() changes, for a checkpoint: one span per table.
  std::vector<std::span<const double>> sums() const;
  /// Bytes of the sums.
  std::size_t bytes() const;
  /// Continues from the result of sums(). @throws Error kInput if the sizes differ.
  void restore(std::span<const std::vector<double>> sums);
  /// Moves the sums out. The object must not be used afterwards.
  std::vector<std::vector<double>> take_sums();
  /// Adds the sums of the next documents, from an accumulator with the same settings. @throws like restore()
  void add(std::span<const std::vector<double>> sums);
  /// Returns the means so far. @throws Error kData without documents.
  Spectrum result() const;

 private:
  void add_state(const DocumentStates& states, StateKind state, std::size_t layer, DeviceMemory& device);
  void note_constant_channels(BackendView<const float, 3> states, StateKind state, std::size_t layer,
                              DeviceMemory& device);
  std::vector<std::vector<double>*> tables();
  void check_sizes(std::span<const std::vector<double>> sums);

  SpectralOps* ops_;
  Settings settings_;
  std::size_t tokens_;
  std::vector<double> documents_{0.0};         // one number, stored as a table in checkpoints
  ByState<PowerTable> power_, without_sinks_;  // sums over documents
  ByState<std::vector<double>> constant_;      // [layer][head, channel]: 1 while constant, 0 once it has varied
  std::vector<std::size_t> channels_before_;   // [layer + 1] channels of all heads of the layers before it
};

}  // namespace kvs::inline analyzers
