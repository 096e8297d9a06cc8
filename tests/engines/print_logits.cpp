// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>
#include <iostream>
#include <numeric>

#include "calibrate/cache_choice.h"
#include "core/error.h"
#include "eval/cached_run.h"
#include "io/file.h"
#include "io/json.h"

// print_logits MODEL CONFIG TOKENS OUT: writes the logits of a JSON array of ids, with the cache of a config of any
// method, as f32 [tokens, vocabulary] into OUT.
int main(int argc, char** argv) try {
  using namespace kvs;
  if (argc != 5) throw Error(ErrorCode::kUsage, "print_logits", "expected MODEL CONFIG TOKENS OUT");
  const auto source = ModelSource::open(argv[1]);
  const auto tokens = parse_json(read_text_file(argv[3], 1U << 24), argv[3]).get<std::vector<std::int32_t>>();
  const auto backend = make_backend("cpu", DType::kF32);
  const Model model(*source, *backend);
  Decoder decoder(model);
  Cache cache = cache_maker(cache_of_config(argv[2], *source), *backend, model.config(), tokens.size())();
  std::ofstream out(argv[4], std::ios::binary);
  run_cached(decoder, cache, tokens, {}, [&](const ResidualStream& pass, std::size_t) {
    constexpr std::size_t kSlice = 64;  // rows that share one pass over the weights of the head
    for (std::size_t first = 0; first < pass.tokens(); first += kSlice) {
      std::vector<std::size_t> rows(std::min(kSlice, pass.tokens() - first));
      std::iota(rows.begin(), rows.end(), first);
      const std::vector<float> logits = decoder.logits(pass, rows);
      out.write(reinterpret_cast<const char*>(logits.data()),
                static_cast<std::streamsize>(logits.size() * sizeof(float)));
    }
  });
  return out.flush() ? 0 : 6;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
