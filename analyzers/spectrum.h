#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "kernels/spectral_ops.h"
#include "states/state_source.h"

namespace kvs {

/// The states whose spectra are taken.
inline constexpr std::array kSpectrumStates{StateKind::kKPre, StateKind::kKPost, StateKind::kV};

/// Values by layer (position in the list of layers), kv head and bin.
struct PowerTable {
  PowerTable() = default;
  PowerTable(std::size_t layer_count, std::size_t head_count, std::size_t bin_count)
      : layers(layer_count), heads(head_count), bins(bin_count), values(layer_count * head_count * bin_count) {}

  std::span<double> row(std::size_t layer, std::size_t head) noexcept {
    return std::span(values).subspan((layer * heads + head) * bins, bins);
  }
  std::span<const double> row(std::size_t layer, std::size_t head) const noexcept {
    return std::span(values).subspan((layer * heads + head) * bins, bins);
  }
  /// Mean over the heads of a layer.
  std::vector<double> layer_mean(std::size_t layer) const;

  std::size_t layers = 0, heads = 0, bins = 0;
  std::vector<double> values;  // [layer, head, bin]
};

/// A channel that had one value at every token of every document: its spectrum is DC alone.
struct ConstantChannel {
  StateKind state;
  std::size_t layer, head, channel;  // layer: the model's
};

/// Mean power over documents and channels, in squared units of the states (definitions: orthonormal transform along the
/// token axis, power = X²).
struct Spectrum {
  Transform transform = Transform::kDct;
  std::size_t tokens = 0, sinks = 0, documents = 0;
  std::vector<std::size_t> layers;    // the model's layers, ascending
  StateSet states;                    // which of the tables below are filled
  ByState<PowerTable> power;          // over all T tokens
  ByState<PowerTable> without_sinks;  // over tokens [sinks, T)
  std::vector<ConstantChannel> constant_channels;

  const PowerTable& table(StateKind state, bool with_sinks) const noexcept {
    return (with_sinks ? power : without_sinks)[state];
  }
};

/// Adds documents one by one. Every sum is per document, in document order and in double, so that sums() saved after a
/// document and given to restore() go on with bit-identical results.
class SpectrumAccumulator {
 public:
  struct Settings {
    Transform transform = Transform::kDct;
    std::size_t sinks = 4;            // left out in the second set of tables
    std::vector<std::size_t> layers;  // ascending
    StateSet states{kSpectrumStates.begin(), kSpectrumStates.end()};
    std::size_t kv_heads = 0, head_dim = 0;
  };

  /// @throws Error kUsage if `tokens` does not exceed the sinks.
  SpectrumAccumulator(SpectralOps& ops, Settings settings, std::size_t tokens);

  /// Adds one document of `source`. Nothing is added if this throws.
  /// @return false if the source leaves this document out (a damaged one): it is not counted
  /// @throws Error kData naming document, layer, head and state if a state is not finite; Interrupted between layers.
  bool add_document(StateSource& source, std::size_t document);

  /// How many documents were added.
  std::size_t documents() const noexcept { return static_cast<std::size_t>(documents_.front()); }
  /// Everything that add_document changes, for a checkpoint: one span per table.
  std::vector<std::span<const double>> sums() const;
  /// Goes on from what sums() gave. @throws Error kInput if the sizes differ.
  void restore(std::span<const std::vector<double>> sums);
  /// The sums themselves, after which this is of no use.
  std::vector<std::vector<double>> take_sums();
  /// Adds the next documents' sums, of an accumulator of these settings. @throws as restore
  void add(std::span<const std::vector<double>> sums);
  /// The means so far. @throws Error kData without documents.
  Spectrum result() const;

 private:
  void add_state(const DocumentStates& states, StateKind state, std::size_t layer, Backend& backend);
  void note_constant_channels(BackendView<const float, 3> states, StateKind state, std::size_t layer, Backend& backend);
  std::vector<std::vector<double>*> tables();
  void check_sizes(std::span<const std::vector<double>> sums);

  SpectralOps* ops_;
  Settings settings_;
  std::size_t tokens_;
  std::vector<double> documents_{0.0};               // one number, a table like the others to a checkpoint
  ByState<PowerTable> power_, without_sinks_;        // sums over documents
  ByState<PowerTable> document_, document_without_;  // of the document in flight
  ByState<std::vector<double>> constant_;            // [layer, head, channel]: 1 while constant, 0 once it varied
};

}  // namespace kvs
