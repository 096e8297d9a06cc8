// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/sets.h"

#include <algorithm>
#include <utility>

#include "calibrate/elitekv/ratio.h"

namespace kvs::inline calibrate {
namespace {

/// Returns a search state as data to send to other ranks.
UnitResult words_of(const Checkpoint::State& state) {
  return {{{"done", state.documents}, {"extra", state.extra}}, state.sums};
}

/// Restores rank 0's state on all ranks. Without a state, the search does not change.
void restore(EliteSearch& search, UnitResult state, Ranks& ranks) {
  state = ranks.broadcast(std::move(state));
  if (!state.record.is_null())
    search.restore({state.record.at("done").get<std::uint64_t>(), std::move(state.sums), state.record.at("extra")});
}

}  // namespace

void share_search(EliteSearch& search, std::size_t last, std::optional<Checkpoint::State> saved, Ranks& ranks,
                  Checkpoint& checkpoint, const std::function<void(std::size_t)>& done) {
  restore(search, saved ? words_of(*saved) : UnitResult(), ranks);
  while (search.done() < last) {
    search.begin_pass();
    const std::size_t documents = search.documents(), pass = search.done() / documents * documents,
                      end = std::min(last, pass + documents);
    // In repeated passes, a rank may still hold a document's states.
    ranks.share(
        {.first = search.done() - pass,
         .last = end - pass,
         .bound = search.units() > documents,
         .together = search.together()},
        [&](std::size_t document) {
          return UnitResult{Json(), search.measure(pass + document)};
        },
        [&](std::size_t, const UnitResult& document) {
          search.add(document.sums);
          done(search.done());
          if (checkpoint.due()) checkpoint.save(search.done(), search.sums(), search.extra());
        });
    if (end == last) return;
    if (ranks.alone()) continue;
    UnitResult state;
    if (ranks.is_root()) {
      state.record = {{"done", search.done()}, {"extra", search.extra()}};
      for (const std::span<const double> sum : search.sums()) state.sums.emplace_back(sum.begin(), sum.end());
    }
    restore(search, std::move(state), ranks);
  }
}

void choose_sizes(ElitePlan& plan, const ModelSource& source, Decoder& decoder, const EliteSearch& search,
                  CalibrationOps& ops, std::span<const std::vector<std::int32_t>> documents,
                  const FactorProgress& progress) {
  const std::size_t fitted = documents.size() - plan.held_out;
  const auto held = documents.subspan(fitted);
  const FactorInput factors{source, ops, search.moments(), fitted * held.front().size(), search.attention()};
  if (!plan.candidates.empty())
    choose_allocation(factors, decoder, search, plan.candidates, held, plan.config,
                      [&](std::size_t done) { progress("elitekv: pairs", done, plan.candidates.size()); });
  if (!plan.by_layer) return;
  std::vector<std::vector<std::int32_t>> measured;
  for (std::size_t n = 0; n < fitted; n += 2) measured.push_back(documents[n]);
  allocate_by_layer(factors, decoder, search, *plan.by_layer, {measured, held}, plan.config,
                    [&](std::size_t done, std::size_t most) { progress("layers", done, most); });
}

void take_picks(ElitePlan& plan, const EliteSearch& search) {
  EliteConfig& found = plan.config;
  found.picks = search.picks(found.r);
  for (std::size_t n = 0; n < found.by_layer.size(); ++n) found.picks[n] = search.picks(found.by_layer[n].r)[n];
}

}  // namespace kvs::inline calibrate
