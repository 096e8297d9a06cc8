// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/factor_file.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "calibrate/elitekv/outputs.h"
#include "core/interrupt.h"
#include "io/digest.h"
#include "io/safetensors_writer.h"
#include "io/staged_output.h"

namespace kvs::inline calibrate {
namespace {

/// Tensors that are computed in groups, when the first of a group is requested. The last group is kept.
class TensorGroups {
 public:
  explicit TensorGroups(std::function<std::vector<FactorTensor>(std::size_t group)> make) : make_(std::move(make)) {}

  /// Returns the tensor at index `n` of a group. The object must outlive it.
  OutputTensor tensor(FactorTensor planned, std::size_t group, std::size_t n) {
    OutputTensor tensor{std::move(planned.name), DType::kF32, std::move(planned.shape), {}};
    tensor.read = [this, group, n, width = tensor.columns()](std::size_t first, std::size_t count,
                                                             std::span<float> out) {
      hold(group);
      std::copy_n(tensors_[n].values.data() + first * width, count * width, out.data());
    };
    return tensor;
  }

 private:
  void hold(std::size_t group) {
    if (group == held_) return;
    tensors_.clear();
    tensors_ = make_(group);
    held_ = group;
  }

  std::function<std::vector<FactorTensor>(std::size_t group)> make_;
  std::size_t held_ = std::numeric_limits<std::size_t>::max();
  std::vector<FactorTensor> tensors_;
};

void write(const std::filesystem::path& to, std::span<const OutputTensor> tensors) {
  write_safetensors(to, tensors, {{"format", "kvspectrum-elitekv"}});
}

/// Writes every layer's factors, without outputs.
void write_factors(const FactorInput& input, const std::filesystem::path& to, EliteConfig& config,
                   const FactorProgress& progress) {
  const std::size_t layers = config.layers.size();
  for (std::size_t n = 0; !config.joint && n < layers; ++n) {
    progress("ranks", n, layers);
    check_interrupt();
    add_shared_ranks(input, n, config);
  }
  TensorGroups groups([&](std::size_t n) {
    progress("factors", n, layers);
    check_interrupt();
    return factorise_layer(input, n, config);
  });
  std::vector<OutputTensor> tensors;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    std::size_t n = 0;
    for (FactorTensor& planned : planned_factors(input.source, layer, config))
      tensors.push_back(groups.tensor(std::move(planned), layer, n++));
  }
  write(to, tensors);
}

/// Returns a tensor of a file that stays open.
OutputTensor copy_of(const TensorArchive& archive, const StoredTensor& stored) {
  return {stored.name, DType::kF32, stored.shape,
          [&archive, &stored](std::size_t first, std::size_t count, std::span<float> out) {
            read_rows(stored, first, count, out);
            if (first + count == stored.rows()) archive.release(stored.bytes);
          }};
}

/// Writes the factors of another file, and the outputs that are fitted to their caches.
void write_with_outputs(const FactorInput& input, const OutputText& text, const std::filesystem::path& factors,
                        const std::filesystem::path& to, const EliteConfig& config, const FactorProgress& progress,
                        double most) {
  const auto archive = open_safetensors(factors);
  const FactorReader read = reader_of(*archive, factors);
  EliteConfig uncorrected = config;
  uncorrected.fitted_outputs = false;
  const ModelConfig& model = input.source.config();
  const std::size_t layers = config.layers.size(), size = outputs_at_once(model, most),
                    documents = text.documents.size(), passes = (layers + size - 1) / size;
  TensorGroups groups([&](std::size_t group) {
    std::vector<EliteLayer> own;
    for (std::size_t n = group * size; n < std::min(layers, (group + 1) * size); ++n)
      own.push_back(elite_layer(uncorrected, n, input.source, read));
    return fit_outputs(*text.decoder, input.ops, own, text.documents,
                       [&](std::size_t done) { progress("outputs", group * documents + done, passes * documents); });
  });
  std::vector<OutputTensor> tensors;
  for (std::size_t n = 0; n < layers; ++n)
    for (const FactorTensor& planned : planned_factors(input.source, n, config))
      tensors.push_back(copy_of(*archive, *archive->find(planned.name)));
  const std::size_t channels = model.query_heads() * model.head_dim();
  for (std::size_t n = 0; n < layers; ++n)
    tensors.push_back(groups.tensor({elite_output(config.layers[n]), {channels, channels}, {}}, n / size, n % size));
  write(to, tensors);
}

}  // namespace

std::size_t outputs_at_once(const ModelConfig& model, double most) noexcept {
  return std::max<std::size_t>(1, static_cast<std::size_t>(most / output_sum_bytes(model)));
}

ConfigFile write_factor_file(const FactorInput& input, const OutputText& text, const std::filesystem::path& file,
                             OutputSet& outputs, EliteConfig& config, const FactorProgress& progress, double most) {
  const std::filesystem::path& staged = outputs.stage(file);
  if (config.fitted_outputs) {
    std::filesystem::path name = file;
    const StagedOutput factors(name += ".factors", StagedOutput::Kind::kFile);  // never put in place
    write_factors(input, factors.path(), config, progress);
    write_with_outputs(input, text, factors.path(), staged, config, progress, most);
  } else {
    write_factors(input, staged, config, progress);
  }
  return {file.filename().string(), sha256_of_file(staged)};
}

}  // namespace kvs::inline calibrate
