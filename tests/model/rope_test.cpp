#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/golden_model.h"

namespace kvs {
namespace {

TEST(Rope, FrequenciesEqualTransformers) {
  const test::Golden golden = test::read_golden();
  for (const char* name : {"tiny_llama_gqa", "tiny_llama_mha", "tiny_llama.gguf"}) {
    const std::vector<double> found = ModelSource::open(test::golden_path(name))->config().rope_frequencies;
    const auto expected = golden.models[name]["rope_frequencies"].get<std::vector<double>>();
    ASSERT_EQ(found.size(), expected.size());
    // One unit in the last place of f32: powf may be rounded either way.
    for (std::size_t c = 0; c < found.size(); ++c) EXPECT_NEAR(found[c], expected[c], 1.2e-7 * expected[c]) << name;
  }
}

TEST(Rope, LinearScalingDividesEachFrequency) {
  const std::vector<double> plain = rope_frequencies(10000, 8, {});
  const std::vector<double> scaled = rope_frequencies(10000, 8, {.type = RopeScaling::Type::kLinear, .factor = 4});
  for (std::size_t c = 0; c < 4; ++c) EXPECT_EQ(scaled[c], plain[c] / 4);
  EXPECT_EQ(plain[0], 1);
  EXPECT_NEAR(plain[1], 0.1, 1e-8);  // 10000^(-2/8)
}

TEST(Rope, TableHoldsCosineAndSineOfTheRoundedAngle) {
  const std::unique_ptr<Backend> backend = make_backend("cpu", DType::kF32);
  const std::vector<double> frequencies{1, static_cast<float>(0.1)};
  const RopeMemory memory = make_rope_memory(*backend, frequencies, 2001);
  const std::vector<float> cosine = download(*backend, memory.table().cosine);
  const std::vector<float> sine = download(*backend, memory.table().sine);
  ASSERT_EQ(cosine.size(), 2001U * 2U);
  EXPECT_EQ(cosine[0], 1);
  EXPECT_EQ(sine[1], 0);
  const float angle = 2000.0F * 0.1F;
  EXPECT_EQ(cosine[2000 * 2 + 1], static_cast<float>(std::cos(static_cast<double>(angle))));
  EXPECT_EQ(sine[2000 * 2], static_cast<float>(std::sin(2000.0)));
}

}  // namespace
}  // namespace kvs
