#include "eval/budget/loss_log.h"

namespace kvs {

std::vector<double> LossLog::next(const std::function<std::vector<double>()>& measure) {
  if (done_) done_(measured_, most_);
  std::vector<double> losses;
  if (journal_ != nullptr && records_ < journal_->records().size()) {
    losses = journal_->records()[records_].get<std::vector<double>>();
  } else {
    losses = measure();
    if (journal_ != nullptr) journal_->append(losses);
  }
  ++records_;
  measured_ += losses.size();
  return losses;
}

}  // namespace kvs
