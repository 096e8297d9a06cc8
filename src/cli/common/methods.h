#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/config.h"

namespace kvs {

/// What can be done with a model, as far as its architecture decides.
enum class MethodId { kCapture, kSpectrum, kFaedkv, kRopelite, kDisjoint, kFactors, kEvalFull, kEvalElite };

/// One row of the table that `kvspectrum info` shows and that commands refuse by.
struct MethodRow {
  MethodId method;
  std::string_view command;  // as typed
  std::string_view what;
  /// Why it is not defined for a model; empty if it is.
  std::string (*obstacle)(const ModelConfig&);
  /// What to know about it on this model; mostly empty.
  std::string (*note)(const ModelConfig&);
};

std::span<const MethodRow> method_table() noexcept;

/// @throws Error kUnsupported, naming the command and the model, if its row has an obstacle.
void require_method(MethodId method, const ModelConfig& config);

}  // namespace kvs
