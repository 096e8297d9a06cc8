// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>

#include "calibrate/elitekv/factor_file.h"
#include "calibrate/elitekv/outputs.h"
#include "calibrate/elitekv/ratio.h"
#include "io/file.h"
#include "io/tensor_archive.h"
#include "tests/eval/tiny_model.h"

namespace kvs {
namespace {

const FactorProgress kSilent = [](std::string_view, std::size_t, std::size_t) {};

/// Factors of every layer with one elite chunk per head, before they are computed.
EliteConfig unfactorised(const TinyModel& tiny, bool joint) {
  EliteConfig config;
  for (std::size_t layer = 0; layer < tiny.model->config().layers(); ++layer) config.layers.push_back(layer);
  config.r = 1;
  config.picks.assign(config.layers.size(), std::vector<ElitePicks>{{{0}, {0}}, {{2}, {0}}});
  config.joint = joint;
  config.rank = 10;
  return config;
}

struct FactorFiles : ::testing::Test {
  std::string write(const std::filesystem::path& file, EliteConfig& config, double most = kMaxOutputSums) {
    const OutputText text{tiny.decoder.get(), documents};
    OutputSet outputs;
    const ConfigFile written = write_factor_file(input, text, file, outputs, config, kSilent, most);
    outputs.commit(false);
    EXPECT_EQ(written.name, file.filename().string());
    return read_text_file(file, std::size_t{1} << 24);
  }

  TinyModel tiny;
  std::unique_ptr<CalibrationOps> ops = make_calibration_ops(*tiny.backend);
  FactorInput input{.source = *tiny.source, .ops = *ops, .moments = {}};
  std::vector<std::vector<std::int32_t>> documents{TinyModel::tokens(40), TinyModel::tokens(40)};
};

TEST_F(FactorFiles, HoldWhatEachLayerFactorisesTo) {
  for (const bool joint : {true, false}) {
    EliteConfig config = unfactorised(tiny, joint);
    const std::filesystem::path file = tiny.folder / (joint ? "joint.safetensors" : "separate.safetensors");
    write(file, config);
    EXPECT_EQ(config.singular_values.size(), config.layers.size());
    EXPECT_EQ(config.ranks.size(), joint ? 0 : config.layers.size());
    const auto archive = open_safetensors(file);
    const FactorReader read = reader_of(*archive, file);
    std::size_t tensors = 0;
    for (std::size_t n = 0; n < config.layers.size(); ++n)
      for (const FactorTensor& tensor : factorise_layer(input, n, config)) {
        EXPECT_EQ(read(tensor.name, tensor.shape), tensor.values) << tensor.name;
        ++tensors;
      }
    EXPECT_EQ(archive->tensors().size(), tensors);
  }
}

TEST_F(FactorFiles, AreTheSameWhateverTheNumberOfLayersWhoseOutputsAreFittedAtOnce) {
  EliteConfig config = unfactorised(tiny, true);
  config.fitted_outputs = true;
  EliteConfig again = config, three = config;
  const double layer = output_sum_bytes(tiny.model->config());
  EXPECT_EQ(outputs_at_once(tiny.model->config(), 3.5 * layer), 3U);
  const std::string whole = write(tiny.folder / "whole.safetensors", config);
  EXPECT_EQ(write(tiny.folder / "ones.safetensors", again, 0), whole);
  EXPECT_EQ(write(tiny.folder / "threes.safetensors", three, 3.5 * layer), whole);
}

TEST_F(FactorFiles, LeaveNothingWhenTheyEndEarly) {
  EliteConfig config = unfactorised(tiny, true);
  config.fitted_outputs = true;
  const std::filesystem::path folder = tiny.folder / "empty";
  std::filesystem::create_directory(folder);
  const FactorProgress stop = [](std::string_view step, std::size_t, std::size_t) {
    if (step == "outputs") throw std::runtime_error("stopped");
  };
  {
    OutputSet outputs;
    EXPECT_THROW(
        write_factor_file(input, {tiny.decoder.get(), documents}, folder / "f.safetensors", outputs, config, stop),
        std::runtime_error);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

}  // namespace
}  // namespace kvs
