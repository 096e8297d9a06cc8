#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "io/journal.h"

namespace kvs {

/// Losses in the order in which a calibration measures them: counted, and kept by a journal, so that a run that goes on
/// gets those that are there without measuring them.
class LossLog {
 public:
  using Done = std::function<void(std::size_t, std::size_t)>;

  /// @param done  called before each measurement with the losses so far and at most; @param journal  or nullptr
  LossLog(Done done, std::size_t most, Journal* journal) : done_(std::move(done)), most_(most), journal_(journal) {}

  /// What the journal holds next, or what `measure` gives.
  std::vector<double> next(const std::function<std::vector<double>()>& measure);
  /// Losses of single documents so far.
  std::size_t measured() const noexcept { return measured_; }

 private:
  Done done_;
  std::size_t most_, measured_ = 0, records_ = 0;
  Journal* journal_;
};

}  // namespace kvs
