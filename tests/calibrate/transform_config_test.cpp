// SPDX-License-Identifier: Apache-2.0
// The tensors of a transform config, as written and with one fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "calibrate/config/config.h"
#include "calibrate/transform/config.h"
#include "calibrate/transform/entropy_model.h"
#include "core/error.h"
#include "io/digest.h"
#include "io/file.h"
#include "kvspectrum/config.h"
#include "tests/io/safetensors_bytes.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

using ::testing::HasSubstr;

constexpr TransformShape kShape{.kv_heads = 2, .head_dim = 4};
constexpr float kPlace = 12345;
constexpr std::size_t kValues = 2 * kShape.kv_heads * kShape.head_dim;

struct CodedAs {
  TransformRows rows;
  TransformForm form;
};

class TransformTensors : public ::testing::TestWithParam<CodedAs> {
 protected:
  using Change = std::function<void(std::vector<test::NamedTensor>&)>;

  static TransformLayer layer() {
    const bool heads = GetParam().rows == TransformRows::kHead;
    const std::vector<float> product(heads ? kShape.kv_heads * kShape.head_dim * kShape.head_dim : kValues * kValues,
                                     0.5F);
    TransformLayer layer{.layer = 1,
                         .rows = GetParam().rows,
                         .mean = std::vector<float>(kValues, 0.5F),
                         .analysis = product,
                         .synthesis = product,
                         .bits = std::vector<std::size_t>(kValues, 3),
                         .weights = std::vector<float>(kValues, 1),
                         .threshold = 1,
                         .books = std::vector<float>(kTrellisBooks, 0.25F)};
    if (heads) layer.deviations.assign(kValues / 2, 2);
    if (GetParam().form == TransformForm::kRandomAccess) return layer;
    layer.bits.clear();
    layer.books.clear();
    layer.scales.assign(kValues, 9);
    layer.entropy = std::make_shared<const EntropyModel>(laplacian_model());
    return layer;
  }
  /// Written and read again.
  std::vector<TransformLayer> read(const Change& change, const std::function<void(TransformConfig&)>& setting = {}) {
    std::vector<test::NamedTensor> tensors;
    for (const OutputTensor& tensor : transform_tensors({layer()}, {kShape})) {
      std::vector<float> values(tensor.rows() * tensor.columns());
      tensor.read(0, tensor.rows(), values);
      tensors.push_back({tensor.name, tensor.shape, values});
    }
    change(tensors);
    std::string bytes = test::safetensors_bytes(tensors);
    const std::string place(reinterpret_cast<const char*>(&kPlace), sizeof(float)),
        value(reinterpret_cast<const char*>(&value_), sizeof(float));
    if (const std::size_t at = bytes.rfind(place); at != std::string::npos) bytes.replace(at, sizeof(float), value);
    folder_.write("t.safetensors", bytes);
    TransformConfig config{.layers = {1},
                           .rows = GetParam().rows,
                           .form = GetParam().form,
                           .recent = 4,
                           .code_bytes = {code_bytes(layer(), kShape)},
                           .thresholds = {1},
                           .window = 16,
                           .bytes = 1000,
                           .scales = {{1, 1}}};
    if (setting) setting(config);
    ModelConfig model;
    model.name = model.architecture = "llama";
    model.layer.assign(
        3, {.attention = {.query_heads = kShape.kv_heads, .kv_heads = kShape.kv_heads, .head_dim = kShape.head_dim},
            .feed_forward = {}});
    model.d_model = 16;
    model.ropes = {{.theta = 1e4, .rotary_dim = kShape.head_dim}};
    const Json json = make_config("transform", model, std::string(64, 'a'), transform_parameters(config),
                                  transform_calibration(config), {"kvcalibrate transform", "1", {}, 1, 16, 16, 0},
                                  Json::object(), std::vector<ConfigFile>{{"t.safetensors", sha256_of(bytes)}});
    const auto path = folder_.write("t.json", dump_json(json));
    return read_transform_layers(read_config(path), path);
  }
  std::string complaint(const Change& change, const std::function<void(TransformConfig&)>& setting = {}) {
    try {
      (void)read(change, setting);
    } catch (const Error& error) {
      const bool not_finite = !std::isfinite(value_);
      EXPECT_EQ(error.code(), not_finite ? ErrorCode::kData : ErrorCode::kInput) << error.what();
      return error.what();
    }
    return "";
  }
  /// Returns the error about one value of a tensor.
  std::string with(const std::string& name, float value) {
    value_ = value;
    return complaint([&](std::vector<test::NamedTensor>& tensors) {
      for (test::NamedTensor& tensor : tensors)
        if (tensor.name == name) tensor.values.back() = kPlace;
    });
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const OutputTensor& tensor : transform_tensors({layer()}, {kShape})) names.push_back(tensor.name);
    return names;
  }

  test::TemporaryDirectory folder_;
  float value_ = kPlace;  // the number in the place of kPlace: a writer takes only finite numbers
};

TEST_P(TransformTensors, ComeBackAsTheyWere) {
  const std::vector<TransformLayer> layers = read([](auto&) {});
  ASSERT_EQ(layers.size(), 1U);
  const TransformLayer expected = layer(), &found = layers.front();
  EXPECT_EQ(found.analysis, expected.analysis);
  EXPECT_EQ(found.bits, expected.bits);
  EXPECT_EQ(found.books, expected.books);
  EXPECT_EQ(found.deviations, expected.deviations);
  EXPECT_EQ(found.threshold, expected.threshold);
  EXPECT_EQ(found.form(), expected.form());
  EXPECT_EQ(found.scales, expected.scales);
  EXPECT_EQ(found.coefficients(), expected.coefficients());
  if (found.entropy == nullptr) return;
  EXPECT_EQ(found.entropy->frequencies, expected.entropy->frequencies);
  EXPECT_EQ(found.entropy->expected, expected.entropy->expected);
  EXPECT_EQ(found.entropy->values, expected.entropy->values);
}

TEST_P(TransformTensors, AreReadByEngines) {
  (void)read([](auto&) {});
  const auto config = kvspectrum::Config::read(folder_.write("again.json", test::read_all(folder_.path() / "t.json")));
  EXPECT_EQ(config.method(), "transform");
  EXPECT_EQ(config.layers(), std::vector<std::size_t>{1});
  EXPECT_EQ(config.word("rows", 1), GetParam().rows == TransformRows::kHead ? "head" : "layer");
  EXPECT_EQ(config.count("code_bytes", 1), code_bytes(layer(), kShape));
  EXPECT_EQ(config.real("thresholds", 1), 1);
  EXPECT_EQ(config.files().size(), 1U);
}

TEST_P(TransformTensors, BelongToSomeLayersWithAListEach) {
  const auto with_setting = [&](const std::function<void(TransformConfig&)>& setting) {
    return complaint([](auto&) {}, setting);
  };
  EXPECT_THAT(with_setting([](TransformConfig& c) { c.layers = {}; }), HasSubstr("/parameters/layers"));
  EXPECT_THAT(with_setting([](TransformConfig& c) { c.code_bytes.push_back(3); }), HasSubstr("/parameters/code_bytes"));
  EXPECT_THAT(with_setting([](TransformConfig& c) { c.thresholds.clear(); }), HasSubstr("/parameters/thresholds"));
  EXPECT_THAT(with_setting([](TransformConfig& c) { c.scales.clear(); }), HasSubstr("/calibration/costs/keys"));
}

TEST_P(TransformTensors, AreAllThereInTheirShapes) {
  for (const std::string& name : names()) {
    EXPECT_THAT(complaint([&](auto& tensors) {
                  std::erase_if(tensors, [&](const test::NamedTensor& tensor) { return tensor.name == name; });
                }),
                HasSubstr("tensor " + name + ": found none"));
    EXPECT_THAT(complaint([&](auto& tensors) {
                  for (test::NamedTensor& tensor : tensors)
                    if (tensor.name == name) {
                      tensor.shape.front() += 1;
                      tensor.values.resize(tensor.values.size() / (tensor.shape.front() - 1) * tensor.shape.front());
                    }
                }),
                HasSubstr("tensor " + name + ": found shape"));
  }
}

TEST_P(TransformTensors, HoldFiniteNumbers) {
  for (const std::string& name : names())
    for (const float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF})
      EXPECT_THAT(with(name, bad), HasSubstr("tensor " + name + ": found ")) << bad;
}

TEST_P(TransformTensors, HoldWhatATableOfLevelsCanBe) {
  if (GetParam().form == TransformForm::kRandomAccess) return;
  for (const float bad : {-1.0F, 36.0F, 2.5F})
    EXPECT_THAT(with("layers.1.scales", bad), HasSubstr("layers.1.scales: found ")) << bad;
  for (const float bad : {0.0F, 2.0F, 5000.0F, 1.5F})
    EXPECT_THAT(with("frequencies", bad), HasSubstr("tensor frequencies: found ")) << bad;
  for (const float bad : {-1.0F, 0.5F, 1e9F})
    EXPECT_THAT(with("expected", bad), HasSubstr("tensor expected: found ")) << bad;
  for (const float bad : {-1.0F, 1e9F}) EXPECT_THAT(with("values", bad), HasSubstr("tensor values: found ")) << bad;
  const auto refused = [&](const std::function<void(TransformConfig&)>& setting) {
    return complaint([](auto&) {}, setting);
  };
  EXPECT_THAT(refused([](TransformConfig& config) { config.recent = 0; }), HasSubstr("/parameters/form"));
  EXPECT_THAT(refused([](TransformConfig& config) { config.outliers = 0.1; }), HasSubstr("/parameters/form"));
  EXPECT_THAT(refused([](TransformConfig& config) { config.rows = TransformRows::kHead; }),
              HasSubstr("/parameters/form"));
}

TEST_P(TransformTensors, HoldWhatABitACostAndADeviationCanBe) {
  if (GetParam().form == TransformForm::kStorage) return;
  for (const float bad : {-1.0F, 9.0F, 2.5F})
    EXPECT_THAT(with("layers.1.bits", bad), HasSubstr("layers.1.bits: found ")) << bad;
  EXPECT_THAT(with("layers.1.bits", 4), HasSubstr("layers.1.bits: found "));  // another sum
  for (const float bad : {-0.5F, 1.5F})
    EXPECT_THAT(with("layers.1.weights", bad), HasSubstr("expected numbers from 0 to 1")) << bad;
  if (GetParam().rows != TransformRows::kHead) return;
  for (const float bad : {0.0F, -2.0F})
    EXPECT_THAT(with("layers.1.deviations", bad), HasSubstr("expected numbers above 0")) << bad;
}

TEST_P(TransformTensors, CountTokensThatADocumentCanHave) {
  for (const std::size_t bad : {kMaxTransformTokens + 1, std::size_t{1} << 62}) {
    EXPECT_THAT(complaint([](auto&) {}, [&](TransformConfig& config) { config.sinks = bad; }),
                HasSubstr("/parameters/sinks"));
    EXPECT_THAT(complaint([](auto&) {}, [&](TransformConfig& config) { config.recent = bad; }),
                HasSubstr("/parameters/recent"));
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, TransformTensors,
                         ::testing::Values(CodedAs{TransformRows::kLayer, TransformForm::kRandomAccess},
                                           CodedAs{TransformRows::kHead, TransformForm::kRandomAccess},
                                           CodedAs{TransformRows::kLayer, TransformForm::kStorage}));

}  // namespace
}  // namespace kvs
