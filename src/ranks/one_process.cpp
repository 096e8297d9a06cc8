#include "ranks/one_process.h"

#include <utility>

#include "ranks/ordered_collector.h"

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
    if (!late) {
      for (std::size_t unit = units.first; unit < units.last; ++unit) take(unit, start(unit)());
      return;
    }
    OrderedCollector collector(units.first, take);
    for (std::size_t unit = units.first; unit < units.last; ++unit) collector.push(unit, 0, start(unit));
    collector.finish(units.last);
  }
};

}  // namespace

std::unique_ptr<Ranks> make_one_process() { return std::make_unique<OneProcess>(); }

}  // namespace kvs::inline ranks
