// SPDX-License-Identifier: Apache-2.0
#include "export/exporters/mla.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "model/rope_json.h"

namespace kvs::inline exporting {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// gain = 2^20. With s = sqrt(epsilon) / gain, a latent of root mean square m has a relative error of m² / 2^41. The
/// gain is exact in every type.
constexpr int kGainExponent = 20;

void check_target(const ExportJob& job, const MlaTarget& target) {
  const ModelConfig& model = job.model.config();
  if (job.type == DType::kF16)
    throw Error(ErrorCode::kUnsupported, model.name,
                "found f16 for the latent, expected bf16 or f32: its scaled factor is below what f16 holds");
  const RopeScaling& scaling = model.ropes.front().scaling;
  if (std::ranges::find(target.rope_scaling, scaling.type) != target.rope_scaling.end()) return;
  throw Error(ErrorCode::kUnsupported, model.name,
              "found RoPE scaling " + rope_scaling_json(scaling).at("rope_type").dump() +
                  ", which the target's latent attention does not compute");
}

/// Returns the KV head that keeps each frequency of a layer. @throws Error kUnsupported if several heads keep one
std::vector<std::size_t> owners_of(const EliteConfig& config, std::size_t n, const ModelConfig& model,
                                   const std::filesystem::path& path) {
  const std::string where = path.string() + ": /parameters/elite/" + std::to_string(n);
  const auto& heads = config.picks[n];
  std::size_t kept = 0;
  for (const ElitePicks& head : heads) kept += head.chunks.size();
  if (kept > model.chunks())
    throw Error(ErrorCode::kUnsupported, where,
                "found " + std::to_string(kept) + " frequencies in the heads of a layer, expected at most " +
                    std::to_string(model.chunks()) + ": the shared key has one slot for each");
  std::vector<std::size_t> owners(model.chunks(), kNone);
  for (std::size_t head = 0; head < heads.size(); ++head)
    for (const std::size_t chunk : heads[head].chunks) {
      if (owners[chunk] != kNone)
        throw Error(ErrorCode::kUnsupported, where,
                    "found chunk " + std::to_string(chunk) + " in heads " + std::to_string(owners[chunk]) + " and " +
                        std::to_string(head) + ", expected disjoint sets: the shared key has one slot for it");
      owners[chunk] = head;
    }
  return owners;
}

void scale_row(const float* from, float factor, std::span<float> out) {
  std::transform(from, from + out.size(), out.begin(), [factor](float value) { return factor * value; });
}

}  // namespace

MlaModel::MlaModel(const ExportJob& job, const MlaTarget& target)
    : source_(job), shape_{source_.rank(), 1, model().rotary_dim(), model().head_dim()} {
  check_target(job, target);
  for (std::size_t layer = 0; layer < model().layers(); ++layer) {
    const auto owners = owners_of(source_.config(), layer, model(), job.config_path);
    owners_.insert(owners_.end(), owners.begin(), owners.end());
    // Maximum number of unrotated channels of a head. Engines require at least one.
    for (const ElitePicks& head : source_.config().picks[layer])
      shape_.nope = std::max(shape_.nope, model().head_dim() - 2 * head.chunks.size());
  }
  const float stated = model().layer.front().attention.scale;
  const double scale = stated != 0 ? stated : 1 / std::sqrt(static_cast<double>(model().head_dim()));
  query_scale_ = static_cast<float>(scale * std::sqrt(static_cast<double>(shape_.query())));
  gain_ = std::ldexp(1.0F, kGainExponent);
  down_scale_ = static_cast<float>(std::ldexp(std::sqrt(target.latent_epsilon), -kGainExponent));
}

OutputTensor MlaModel::queries(std::string name, std::size_t index) const {
  return source_.rows(std::move(name), {model().query_heads() * shape_.query(), model().d_model},
                      [this, index](std::size_t row, std::span<float> out) {
                        const EliteRows& at = source_.layer(index);
                        const std::size_t head = row / shape_.query(), within = row % shape_.query(),
                                          group = head / model().group();
                        std::size_t channel = 0;
                        if (within >= shape_.nope) {
                          const std::size_t slot = (within - shape_.nope) / 2, half = (within - shape_.nope) % 2;
                          if (owner(index, slot) != group) return;
                          channel = slot + half * model().chunks();
                        } else {
                          if (within >= at.plain[group].size()) return;
                          channel = at.plain[group][within];
                        }
                        scale_row(at.query(head * model().head_dim() + channel), query_scale_, out);
                      });
}

OutputTensor MlaModel::compress(std::string name, std::size_t index) const {
  return source_.rows(
      std::move(name), {shape_.cached(), model().d_model}, [this, index](std::size_t row, std::span<float> out) {
        const EliteRows& at = source_.layer(index);
        if (row < at.elite.rank) return scale_row(at.down(row), down_scale_, out);
        if (row < shape_.rank) return;
        const std::size_t slot = (row - shape_.rank) / 2, half = (row - shape_.rank) % 2, head = owner(index, slot);
        if (head == kNone) return;
        std::copy_n(at.key(head * model().head_dim() + slot + half * model().chunks()), out.size(), out.begin());
      });
}

OutputTensor MlaModel::norm(std::string name) const {
  return held_tensor(std::move(name), {shape_.rank}, std::vector<float>(shape_.rank, gain_), source_.job().type);
}

OutputTensor MlaModel::expand(std::string name, std::size_t index) const {
  const std::size_t height = shape_.nope + shape_.value;
  return source_.rows(std::move(name), {model().query_heads() * height, shape_.rank},
                      [this, index, height](std::size_t row, std::span<float> out) {
                        const EliteRows& at = source_.layer(index);
                        const std::size_t group = row / height / model().group(), within = row % height;
                        if (within < shape_.nope && within >= at.plain[group].size()) return;
                        const std::size_t from = within < shape_.nope
                                                     ? at.first_row[group] + within
                                                     : at.value_row + group * shape_.value + within - shape_.nope;
                        std::copy_n(at.up(from), at.elite.rank, out.begin());
                      });
}

OutputTensor MlaModel::expand_keys(std::string name, std::size_t index) const {
  return source_.rows(std::move(name), {model().query_heads(), shape_.rank, shape_.nope},
                      [this, index](std::size_t row, std::span<float> out) {
                        const EliteRows& at = source_.layer(index);
                        const std::size_t group = row / shape_.rank / model().group(), latent = row % shape_.rank;
                        if (latent >= at.elite.rank) return;
                        for (std::size_t i = 0; i < at.plain[group].size(); ++i)
                          out[i] = at.up(at.first_row[group] + i)[latent];
                      });
}

OutputTensor MlaModel::expand_values(std::string name, std::size_t index) const {
  return source_.rows(std::move(name), {model().query_heads(), shape_.value, shape_.rank},
                      [this, index](std::size_t row, std::span<float> out) {
                        const EliteRows& at = source_.layer(index);
                        const std::size_t group = row / shape_.value / model().group();
                        std::copy_n(at.up(at.value_row + group * shape_.value + row % shape_.value), at.elite.rank,
                                    out.begin());
                      });
}

}  // namespace kvs::inline exporting
