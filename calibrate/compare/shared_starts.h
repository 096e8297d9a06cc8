// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "eval/cached_run.h"
#include "model/recorded_states.h"

namespace kvs::inline compare {

/// Returns the bytes of the logits of `tokens` tokens.
inline std::size_t logits_bytes(const ModelConfig& model, std::size_t tokens) {
  return tokens * model.vocabulary * sizeof(float);
}

/// The beginnings of documents that several configurations share. Until caches drop a token, those that begin alike
/// read the same (FullStart), so that one pass over the first tokens gives the states of all of them: on the CPU bit
/// for bit. The states of one document are kept at a time.
class SharedStarts {
 public:
  /// Makes each configuration's cache once. A cache that cannot be made has no shared start.
  /// @param prefix  tokens of each document that are not scored
  /// The arguments must outlive this.
  SharedStarts(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents,
               std::span<const std::function<Cache()>> make, std::size_t prefix);

  /// Returns the most memory that the states of a document take. Their logits are kept within the same bound.
  static std::size_t max_bytes(const Model& model);

  /// Chooses what is shared: the starts that at least two of these configurations have, those that save most first, as
  /// far as max_bytes() allows.
  void share(std::span<const std::size_t> configurations);
  /// Returns the start of a configuration on a document; no tokens if it shares nothing. The first of the
  /// configurations that share computes the pass.
  RecordedStart of(std::size_t configuration, std::size_t document);
  /// Releases the states.
  void clear();

 private:
  /// Configurations whose caches begin alike.
  struct Group {
    std::vector<FullStart> starts;       // [layer] of the first of them
    std::size_t users = 0, longest = 0;  // configurations of the round, and the one of most tokens
    std::size_t tokens = 0;              // the most of these configurations
    bool shared = false;
    std::optional<RecordedStates> states = {};  // of the document
    bool fails = false;                         // the pass over the document
  };
  /// The start of a configuration's cache.
  struct Start {
    std::optional<std::size_t> group = {};
    std::size_t tokens = 0;
  };

  void record(Group& group);

  Decoder* decoder_;
  std::span<const std::vector<std::int32_t>> documents_;
  std::span<const std::function<Cache()>> make_;
  std::vector<Group> groups_;
  std::vector<Start> starts_;  // [configuration]
  std::optional<std::size_t> document_ = {};
};

}  // namespace kvs::inline compare
