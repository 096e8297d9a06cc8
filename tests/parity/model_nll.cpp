// SPDX-License-Identifier: Apache-2.0
// Reads one JSON object {"model": path, "tokens": [id, …]} per line from standard input and writes {"nll": […],
// "notes": […]} in f32, or {"error": line, "status": number}, as a line. With "digests": true the line also has the
// SHA-256 of the f32 values of each projection, {"sha256": {"0.q": …}}. tests/parity/random_models.py,
// checkpoints.py and damaged_models.py compare these lines.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "model/decoder.h"
#include "tests/model/projection_digests.h"

namespace {

kvs::Json nll_of(const kvs::Json& line) {
  const std::unique_ptr<kvs::Backend> backend = kvs::make_backend("cpu", kvs::DType::kF32, 1);
  const std::unique_ptr<kvs::ModelSource> source = kvs::ModelSource::open(line.at("model").get<std::string>());
  const kvs::Model model(*source, *backend);
  kvs::Decoder decoder(model);
  kvs::Json result{{"nll", document_nll(decoder, line.at("tokens").get<std::vector<std::int32_t>>())},
                   {"notes", source->notes()}};
  if (line.value("digests", false)) result["sha256"] = kvs::test::projection_digests(*source);
  return result;
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) try {
      std::cout << nll_of(kvs::parse_json(line, "standard input")).dump() << std::endl;
    } catch (const kvs::Error& error) {
      std::cout << kvs::Json{{"error", error.what()}, {"status", static_cast<int>(error.code())}}.dump() << std::endl;
    }
  return 0;
}
