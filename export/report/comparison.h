#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "export/report/inputs.h"

namespace kvs {

/// A cache relative to another one at the same budget, as changes with 95 % intervals.
struct ComparisonChange {
  double ppl, kl;
  std::optional<std::pair<double, double>> ppl_interval, kl_interval;
  bool over_parts;  // the intervals are over parts of the documents
  std::size_t documents;
};

/// A cache at a budget, as `kvcalibrate compare` scored it.
struct ComparisonCell {
  std::string label, method, store, settings, config, error;
  bool calibrated = false, stopped = false, front = false;
  double budget = 1;  // 0: the cell has none, since it was not scored
  std::size_t documents = 0;
  double shared_bytes = 0;  // that all sequences share, beside `bytes`
  // Nothing where it was not measured.
  std::optional<double> bytes, ppl, loss, kl, top1, accuracy, log_likelihood, speed;  // loss: relative change of ppl
  std::optional<std::pair<double, double>> interval;                                  // of the loss, 95 %
  bool over_parts = false;               // the interval is over parts of the documents
  std::optional<ComparisonChange> gain;  // of what is calibrated, over its method's standard
  std::optional<ComparisonChange> loss_to_best;
};

struct Comparison {
  std::string command;
  double full_ppl = 0;
  std::size_t tokens = 0, documents = 0;
  std::vector<double> budgets;  // descending
  std::vector<ComparisonCell> cells;
  std::map<double, std::size_t, std::greater<>> best;     // cell by budget
  std::map<double, std::optional<std::size_t>> smallest;  // cell of the front by loss; nothing: all cost more
  /// What `kvcalibrate compare` says of each choice, word for word behind the budget or loss that the choice is for,
  /// and of what it left out; empty: an older program said nothing.
  std::vector<std::string> verdicts = {};
};

/// "8 documents", or "2 of 8 documents" where `scored` were.
std::string documents_of(const Comparison& comparison, std::size_t scored);
/// Cells that were scored on as many documents, which alone can be compared, the most first.
std::vector<std::vector<const ComparisonCell*>> alike(const Comparison& comparison);
/// The documents of the cells that were scored on most.
std::size_t max_scored(const Comparison& comparison);
/// @throws Error kInput where it is not as docs/compare.md says.
Comparison read_comparison(const Output& output);
/// Decode speeds by label and budget.
void add_speeds(const Output& speeds, Comparison& comparison);

/// What it says: the cost of each method by size, the smallest cache for a loss, what is of no use, what calibration
/// gained.
std::vector<std::string> comparison_findings(const Comparison& comparison);

}  // namespace kvs
