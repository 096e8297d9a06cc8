// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "analyzers/moments.h"
#include "analyzers/spectrum.h"
#include "ranks/ranks.h"
#include "states/document_sums.h"

namespace kvs::inline analyzers {

/// Sums of a spectrum and, where gains are wanted, the moments that are taken on the way to it.
struct SpectrumSums {
  SpectrumAccumulator spectrum;
  std::unique_ptr<MomentSource> moments;

  /// Adds one document of the source that `moments` has, if they are taken, else of `source`.
  void add(StateSource& source, std::size_t document) {
    spectrum.add_document(moments != nullptr ? *moments : source, document);
  }
  std::vector<std::span<const double>> state() const {
    std::vector<std::span<const double>> sums = spectrum.sums();
    if (moments != nullptr) std::ranges::copy(moments->sums(), std::back_inserter(sums));
    return sums;
  }
  std::vector<std::vector<double>> take_all() {
    std::vector<std::vector<double>> sums = spectrum.take_sums();
    if (moments != nullptr) std::ranges::move(moments->take_sums(), std::back_inserter(sums));
    return sums;
  }
  void restore(std::span<const std::vector<double>> sums) {
    const std::size_t own = std::min(spectrum.sums().size(), sums.size());
    spectrum.restore(sums.first(own));
    if (moments != nullptr) moments->restore(sums.subspan(own));
  }
  void add(std::span<const std::vector<double>> sums) {
    const std::size_t own = spectrum.sums().size();
    spectrum.add(sums.first(own));
    if (moments != nullptr) moments->add(sums.subspan(own));
  }
};

/// Adds the documents from `first` on. The sums, which rank 0 has, have the same bits with several ranks.
/// @param empty  returns sums over no documents
/// @param done   called with the number of documents so far
inline void add_shared_documents(SpectrumSums& sums, const std::function<SpectrumSums()>& empty, StateSource& source,
                                 std::size_t first, Checkpoint& checkpoint, Ranks& ranks,
                                 const std::function<void(std::size_t)>& done) {
  if (ranks.alone()) return add_documents(sums, source, first, checkpoint, done);
  done(first);
  ranks.share(
      {.first = first, .last = source.documents()},
      [&](std::size_t n) {
        SpectrumSums document = empty();
        document.add(source, n);
        return UnitResult{Json(), document.take_all()};
      },
      [&](std::size_t n, const UnitResult& document) {
        sums.add(document.sums);
        done(n + 1);
        if (checkpoint.due()) checkpoint.save(n + 1, sums.state());
      });
}

/// Returns the moments of the settings' layers and states; nothing if the layers have heads of several sizes.
/// @param queries  the source has q_pre;  @param tokens  of a document
inline std::optional<MomentShape> moment_shape(const SpectrumAccumulator::Settings& settings, bool queries,
                                               std::size_t tokens) {
  const std::size_t first = settings.layers.front();
  const std::size_t heads = settings.kv_heads.of(first), channels = settings.head_dim.of(first);
  for (const std::size_t layer : settings.layers)
    if (settings.kv_heads.of(layer) != heads || settings.head_dim.of(layer) != channels) return std::nullopt;
  return MomentShape{.states = settings.states,
                     .kv_heads = heads,
                     .head_dim = channels,
                     .queries = queries,
                     .tokens = tokens,
                     .first_token = settings.sinks};
}

}  // namespace kvs::inline analyzers
