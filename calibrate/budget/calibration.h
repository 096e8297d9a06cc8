// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/budget/offer.h"
#include "eval/document_loss.h"
#include "eval/paired_difference.h"
#include "io/journal.h"
#include "io/json.h"
#include "model/decoder.h"
#include "ranks/ranks.h"
#include "states/state_source.h"

namespace kvs::inline calibrate {

/// The request of a calibration.
struct BudgetPlan {
  std::size_t bytes = 0;        // stored bytes of all layers: maximum at any time of a document (CacheSizes)
  Json fixed = Json::object();  // given settings: prefix, store, …; the grid provides the others
  std::size_t rounds = 0;       // rounds of marginal losses by layer; 0: one setting for all layers
  std::optional<OfferedTypes> offered = {};  // settings of an engine instead of the grid's
};

/// Documents of one length.
struct BudgetText {
  std::span<const std::vector<std::int32_t>> measured;  // settings are chosen on these
  std::span<const std::vector<std::int32_t>> held;      // used for no choice before: they decide
  /// [measured document] the full cache's passes, for calibrations that share them; empty: each makes its own.
  std::span<const std::shared_ptr<FullPass>> full = {};
  /// States of the measured documents, for layers that trade; nullptr: proposals by spectra are not tried.
  StateSource* states = nullptr;
};

/// Settings of a method, with sizes, and their results on the held-out documents.
struct BudgetContender {
  std::string name;              // "layers", "uniform" or "standard"
  Json settings;                 // for --set, or a config's parameters
  std::size_t bytes = 0;         // like BudgetPlan::bytes
  std::vector<double> nll = {};  // [held document] mean
  double nll_error = 0;          // standard error of their mean, over documents or the tokens of one
};

/// A setting of the grid, and how far it was screened.
struct BudgetTrial {
  Json settings;
  std::size_t grid_index = 0;
  std::size_t documents = 0;
  double divergence = 0;  // mean over these documents
};

struct BudgetCalibration {
  /// The first is the chosen one: the one with the lowest NLL, or a plainer one that the held-out documents do not
  /// distinguish from it. The others are sorted by NLL. Plainest to least plain: "standard", "uniform", "layers".
  std::vector<BudgetContender> contenders;
  /// Settings with the bytes of "uniform" that diverge less on the measured documents, are not distinguished from it
  /// there and have a higher demand; null: none. The difference is "uniform" minus these settings, in nats per token.
  Json passed_over;
  std::vector<double> passed_over_by;  // [measured document]
  std::string least;                   // contender with the lowest NLL; empty: no held-out documents
  std::vector<BudgetTrial> trials;     // best first: by number of documents, then by divergence
  std::vector<double> full_nll;        // [held document] of the full cache
  double full_nll_error = 0;           // like BudgetContender::nll_error
  std::size_t measured = 0;            // number of measured losses of single documents

  const Json& settings() const { return contenders.front().settings; }
  /// Returns the difference of the winner from the contender of this name; nullopt if that is missing or is the winner.
  std::optional<PairedDifference> difference_from(std::string_view name) const;
};

/// Calibrates a method to a byte budget:
///  1. Every setting of its grid gets the largest size that the budget allows. Settings are screened by the divergence
///     from the full cache's predictions, by successive halving over the measured documents
///     (calibrate/budget/halving.h).
///  2. With rounds, layers trade sizes under the common budget and may use the proposals of their spectra
///     (allocate_layers(), BudgetGrid::proposal), as far as an engine lets layers differ (OfferedTypes).
///  3. Held-out documents decide by NLL between the layers' own settings, one setting for all (`uniform`) and the
///     paper's at the same bytes (`standard`). A setting is not chosen over a plainer one that they do not distinguish
///     from it.
/// @param done     called after each measurement with the number of measurements so far and their maximum
/// @param journal  receives the measured losses; losses that it already holds are not measured again
/// @param ranks    share the losses, and all have the result; nullptr: this process measures all
/// @throws Error kUsage if no setting fits the budget, with the smallest size needed
BudgetCalibration calibrate_to_budget(Decoder& decoder, std::string_view method, const BudgetPlan& plan,
                                      const BudgetText& text,
                                      const std::function<void(std::size_t, std::size_t)>& done = {},
                                      Journal* journal = nullptr, Ranks* ranks = nullptr);

/// Returns the maximum number of measured losses of single documents.
std::size_t max_losses(const ModelConfig& model, std::string_view method, const BudgetPlan& plan,
                       const BudgetText& text);

}  // namespace kvs::inline calibrate
