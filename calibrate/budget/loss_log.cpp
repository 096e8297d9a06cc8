// SPDX-License-Identifier: Apache-2.0
#include "calibrate/budget/loss_log.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/error.h"
#include "eval/document_loss.h"
#include "io/record.h"

namespace kvs::inline calibrate {
namespace {

/// Reads the mean loss of a document in nats. Rounding may make a divergence negative.
double recorded_loss(const JsonCursor& value) {
  constexpr double kRounding = 1, kMost = 1e39;  // larger than any difference of two f32 logits
  const double loss = record_real(value);
  if (loss != kOverflowLoss && (loss < -kRounding || loss > kMost))
    value.fail("a loss from 0 to 1e39, or 1e100 of a pass that overflows");
  return loss;
}

std::vector<double> recorded_losses(const JsonCursor& list, std::size_t count) {
  std::vector<double> losses = record_reals(list, count);
  for (std::size_t n = 0; n < count; ++n) (void)recorded_loss(list.at(n));
  return losses;
}

}  // namespace

LossLog::LossLog(Done done, std::size_t most, Journal* journal, Ranks& ranks, std::size_t in_turns)
    : done_(std::move(done)), most_(most), journal_(journal), ranks_(&ranks), in_turns_(in_turns) {
  const Json told =
      ranks.broadcast(journal == nullptr ? Json{"", Json::array()} : Json{journal->name(), journal->records()});
  name_ = told.at(0).get<std::string>();
  before_.assign(told.at(1).begin(), told.at(1).end());
  count(0);
}

void LossLog::count(std::size_t losses) {
  measured_ += losses;
  if (done_) done_(measured_, most_);
}

std::vector<double> LossLog::shared(Units items, const Measure& measure, const std::function<void(const Json&)>& take) {
  items.together = in_turns_;
  const auto measured = [&](std::size_t n) {
    const double loss = measure(n);
    if (!std::isfinite(loss))
      throw Error(ErrorCode::kData, "measured loss", "found " + std::to_string(loss) + ", expected a finite number");
    return Json(loss);
  };
  const std::vector<Json> losses =
      ranks_->share_with_all(items, measured, [&](std::size_t, const Json& loss) { take(loss); });
  std::vector<double> found;
  found.reserve(losses.size());
  for (const Json& loss : losses) found.push_back(loss.get<double>());
  return found;
}

JsonCursor LossLog::replayed() {
  const std::size_t n = replayed_++;
  return {before_[n], name_ + ": line " + std::to_string(n + 2)};
}

std::vector<double> LossLog::each(std::size_t items, const Measure& measure) {
  const std::size_t known = std::min(items, before_.size() - replayed_);
  std::vector<double> losses;
  for (std::size_t n = 0; n < known; ++n) losses.push_back(recorded_losses(replayed(), 1).front());
  count(known);
  const auto rest = shared({.first = known, .last = items}, measure, [&](const Json& loss) {
    if (journal_ != nullptr) journal_->append(Json::array({loss}));
    count(1);
  });
  if (!ranks_->is_root()) count(rest.size());
  losses.insert(losses.end(), rest.begin(), rest.end());
  return losses;
}

std::vector<double> LossLog::together(std::size_t items, const Measure& measure) {
  std::vector<double> losses;
  if (replayed_ < before_.size()) {
    losses = recorded_losses(replayed(), items);
  } else {
    losses = shared({.last = items, .bound = true}, measure, [](const Json&) {});
    if (journal_ != nullptr) journal_->append(losses);
  }
  count(losses.size());
  return losses;
}

Json LossLog::kept(const std::function<Json(Ranks&)>& find, const std::function<void(const JsonCursor&)>& check) {
  if (replayed_ < before_.size()) {
    const JsonCursor record = replayed();
    check(record);
    return record.value();
  }
  Json found = ranks_->broadcast(find(*ranks_));
  if (journal_ != nullptr) journal_->append(found);
  return found;
}

}  // namespace kvs::inline calibrate
