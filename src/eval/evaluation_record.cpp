// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "eval/evaluation.h"
#include "io/record.h"

namespace kvs::inline eval {
namespace {

Json parts_json(std::span<const PartLoss> parts) {
  Json list = Json::array();
  for (const PartLoss& part : parts) list.push_back({part.nll, part.full_nll, part.kl});
  return list;
}
std::vector<PartLoss> parts_from(const JsonCursor& list) {
  std::vector<PartLoss> parts;
  for (std::size_t n = 0; n < list.array_size(); ++n) {
    const std::vector<double> part = record_reals(list.at(n), 3);
    parts.push_back({part[0], part[1], part[2]});
  }
  return parts;
}

Json bytes_json(const CacheBytes& bytes) { return {bytes.stored, bytes.used, bytes.spare}; }
CacheBytes bytes_from(const JsonCursor& list) {
  if (list.array_size() != 3) list.fail("3 counts");
  return {record_size(list.at(std::size_t{0})), record_size(list.at(1)), record_size(list.at(2))};
}

Json sketch_json(const QuantileSketch& sketch) {
  return {{"zeros", sketch.zeros()}, {"first", sketch.first_bin()}, {"counts", sketch.counts()}};
}
QuantileSketch sketch_from(const JsonCursor& record) {
  QuantileSketch sketch;
  sketch.add_zeros(record_size(record.at("zeros")));
  const std::int64_t last = QuantileSketch::greatest_bin(),
                     first = record.at("first").integer(QuantileSketch::least_bin(), last);
  const JsonCursor counts = record.at("counts");
  if (counts.array_size() > static_cast<std::size_t>(last - first + 1))
    counts.fail("at most " + std::to_string(last - first + 1) + " counts");
  for (std::size_t n = 0; n < counts.array_size(); ++n)
    sketch.add_to_bin(first + static_cast<std::ptrdiff_t>(n), record_size(counts.at(n)));
  return sketch;
}

Json full_json(const FullReference& full) {
  const Divergence& divergence = full.divergence;
  const LargestDivergence& largest = divergence.largest;
  return {{"nll", full.sum.nll},
          {"squares", full.sum.squares},
          {"kl", divergence.kl},
          {"kl_squares", divergence.squares},
          {"kls", sketch_json(divergence.kls)},
          {"largest", {{"kl", largest.kl}, {"position", largest.position}, {"token", largest.token}}},
          {"agreed", divergence.agreed},
          {"tokens", divergence.tokens},
          {"changes", divergence.changes},
          {"change", sketch_json(divergence.change)},
          {"seconds", full.seconds}};
}

FullReference full_from(const JsonCursor& record, std::size_t scored) {
  FullReference full;
  full.sum.add(record_real(record.at("nll")), scored, record_real(record.at("squares")));
  const JsonCursor largest = record.at("largest");
  Divergence& divergence = full.divergence;
  divergence = {.kl = record_real(record.at("kl")),
                .agreed = record_size(record.at("agreed")),
                .tokens = record_size(record.at("tokens"), 1),
                .squares = record_real(record.at("kl_squares")),
                .kls = sketch_from(record.at("kls")),
                .largest = {.kl = record_real(largest.at("kl")),
                            .position = record_size(largest.at("position")),
                            .token = static_cast<std::int32_t>(largest.at("token").integer(0, INT32_MAX))},
                .changes = record_real(record.at("changes")),
                .change = sketch_from(record.at("change"))};
  if (divergence.kls.count() != divergence.tokens) record.at("kls").fail(std::to_string(divergence.tokens) + " tokens");
  if (divergence.change.count() != divergence.tokens)
    record.at("change").fail(std::to_string(divergence.tokens) + " tokens");
  full.kl_per_document = {divergence.kl};
  full.agreed_per_document = {static_cast<double>(divergence.agreed)};
  full.seconds = record_real(record.at("seconds"));
  return full;
}

}  // namespace

Json to_record(const Evaluation& document) {
  const CacheReport& cache = document.cache;
  Json record{{"nll", document.sum.nll},
              {"squares", document.sum.squares},
              {"scored", document.sum.scored},
              {"peak", bytes_json(cache.peak)},
              {"end", bytes_json(cache.end)},
              {"compressions", cache.compressions},
              {"tokens", cache.tokens},
              {"decoded", cache.decoded},
              {"seconds", {cache.seconds, cache.decode_seconds, cache.compression_seconds}}};
  if (document.full) record["full"] = full_json(*document.full);
  if (!document.parts.empty()) record["parts"] = parts_json(document.parts.front());
  return record;
}

Evaluation evaluation_from(const JsonCursor& record) {
  Evaluation document;
  const std::size_t scored = record_size(record.at("scored"), 1);
  document.sum.add(record_real(record.at("nll")), scored, record_real(record.at("squares")));
  const std::vector<double> seconds = record_reals(record.at("seconds"), 3);
  document.cache = {.peak = bytes_from(record.at("peak")),
                    .end = bytes_from(record.at("end")),
                    .compressions = record_size(record.at("compressions")),
                    .tokens = record_size(record.at("tokens")),
                    .decoded = record_size(record.at("decoded")),
                    .seconds = seconds[0],
                    .decode_seconds = seconds[1],
                    .compression_seconds = seconds[2]};
  if (record.has("full")) document.full = full_from(record.at("full"), scored);
  if (record.has("parts")) document.parts.push_back(parts_from(record.at("parts")));
  return document;
}

}  // namespace kvs::inline eval
