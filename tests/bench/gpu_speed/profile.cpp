// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/bench/gpu_speed/marked_backend.h"
#include "tests/bench/gpu_speed/session.h"

namespace kvs::bench {

/// Returns the seconds of each operation of a pass without a hook, the median of several passes; the times of the
/// layers are added.
Json measure_profile(Session& s) {
  constexpr std::size_t kPasses = 7;
  MarkedBackend backend(*s.backend);
  const Model model(*s.source, backend);
  Decoder decoder(model);
  const auto ids = s.document(s.tokens);
  check(document_nll(decoder, ids) == document_nll(*s.decoder, ids), "a marked pass gives other bits");
  std::map<std::string, std::vector<double>> passes;
  for (std::size_t pass = 0; pass < kPasses; ++pass) {
    backend.start();
    (void)document_nll(decoder, ids);
    for (const auto& [operation, time] : backend.stop()) passes[operation].push_back(time);
  }
  Json operations = Json::object();
  for (auto& [operation, times] : passes) {
    std::ranges::nth_element(times, times.begin() + kPasses / 2);
    operations[operation] = times[kPasses / 2];
  }
  return {{"layers", s.config().layers()}, {"operations", operations}};
}

}  // namespace kvs::bench
