// SPDX-License-Identifier: Apache-2.0
#include "ranks/one_process.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ranks/ordered_collector.h"
#include "turns/turns.h"

namespace kvs::inline ranks {
namespace {

class OneProcess final : public Ranks {
 public:
  using Ranks::broadcast;
  std::size_t rank() const noexcept override { return 0; }
  std::size_t size() const noexcept override { return 1; }
  UnitResult broadcast(UnitResult words) override { return words; }
  std::vector<Json> gather(Json word) override { return {std::move(word)}; }
  std::string name(std::size_t) const override { return "this process"; }
  void fail(int, const std::string&) noexcept override {}
  void finish() override {}

 protected:
  void run(const Units& units, const Start& start, const Take& take, bool late) override {
    if (!late)
      return compute(units, start, [&](std::size_t unit, const PendingResult& result) { take(unit, result()); });
    OrderedCollector collector(units.first, take);
    compute(units, start, [&](std::size_t unit, PendingResult& result) { collector.push(unit, 0, std::move(result)); });
    collector.finish(units.last);
  }

 private:
  template <class Use>
  static void compute(const Units& units, const Start& start, const Use& use) {
    const std::size_t together = std::max<std::size_t>(units.together, 1);
    std::vector<PendingResult> results(together);
    run_in_groups(
        units.first, units.last, together, [&](std::size_t unit) { results[unit % together] = start(unit); },
        [&](std::size_t unit) { use(unit, results[unit % together]); });
  }
};

}  // namespace

std::unique_ptr<Ranks> make_one_process() { return std::make_unique<OneProcess>(); }

}  // namespace kvs::inline ranks
