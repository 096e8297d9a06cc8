// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/digest.h"
#include "io/json.h"
#include "model/model.h"
#include "model/model_tensors.h"

namespace kvs::test {

/// Returns the SHA-256 of the f32 values of each projection of the dense layers: {"0.q": …}.
inline Json projection_digests(const ModelSource& source) {
  using enum TensorRole;
  constexpr std::array<std::pair<const char*, TensorRole>, 7> kProjections{
      {{"q", kQuery}, {"k", kKey}, {"v", kValue}, {"o", kOutput}, {"gate", kGate}, {"up", kUp}, {"down", kDown}}};
  Json digests = Json::object();
  for (std::size_t layer = 0; layer < source.config().layers(); ++layer) {
    for (const auto& [name, role] : kProjections) {
      if (!source.tensors().has(role, layer)) continue;
      const TensorRows rows = source.tensors().rows(role, layer);
      std::vector<float> values(rows.rows() * rows.columns());
      rows.read(0, rows.rows(), values);
      Sha256 digest;
      digest.update(std::as_bytes(std::span(values)));
      digests[std::to_string(layer) + "." + name] = digest.finish();
    }
  }
  return digests;
}

}  // namespace kvs::test
