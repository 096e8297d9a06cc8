// SPDX-License-Identifier: Apache-2.0
#include "export/slots/first_inputs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/model/golden_model.h"

namespace kvs {
namespace {

TEST(FirstInputs, DependOnTheTokenAlone) {
  test::TinyModel tiny;
  const std::size_t width = tiny.model->config().d_model, vocabulary = tiny.model->config().vocabulary;
  std::vector<std::int32_t> tokens(520);  // more than are read together
  for (std::size_t n = 0; n < tokens.size(); ++n) tokens[n] = static_cast<std::int32_t>(n * 31 % vocabulary);
  const std::vector<float> all = first_inputs(*tiny.decoder, tokens);
  ASSERT_EQ(all.size(), tokens.size() * width);
  for (const std::size_t token : {0, 7, 511, 512, 519}) {
    const std::vector<float> one = first_inputs(*tiny.decoder, std::span(tokens).subspan(token, 1));
    EXPECT_TRUE(std::ranges::equal(one, std::span(all).subspan(token * width, width))) << token;
  }
  EXPECT_NE(all[0], all[width]);
}

}  // namespace
}  // namespace kvs
