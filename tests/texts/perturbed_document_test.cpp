// SPDX-License-Identifier: Apache-2.0
#include "texts/perturbed_document.h"

#include <gtest/gtest.h>

#include "tests/texts/byte_tokenizer.h"

namespace kvs {
namespace {

class PerturbedDocument : public ::testing::Test {
 protected:
  DocumentVersions perturb(const std::string& text, const PerturbationPlan& plan, const std::string& synonym) const {
    return perturb_document(tokenizer_, tokenizer_.encode(text), 0, plan, [&](std::string_view word) {
      return word == "rays" ? std::vector{synonym} : std::vector<std::string>();
    });
  }
  std::string text_of(const std::vector<std::int32_t>& tokens) const { return tokenizer_.decode(tokens); }
  ByteTokenizer tokenizer_;
};

TEST_F(PerturbedDocument, CutsBothVersionsToTheSameTokens) {
  const PerturbationPlan plan{.share = 1, .tokens = 12};
  const DocumentVersions same = perturb("- rays here -", plan, "beam");
  EXPECT_EQ(text_of(same.original), "- rays here ");
  EXPECT_EQ(text_of(same.perturbed), "- beam here ");
  EXPECT_TRUE(same.same_count && same.usable(plan));
  const DocumentVersions longer = perturb("- rays here -", plan, "beams");
  EXPECT_EQ(text_of(longer.perturbed), "- beams here");
  EXPECT_FALSE(longer.same_count);
  EXPECT_TRUE(longer.usable(plan));
}

TEST_F(PerturbedDocument, ShiftsThatCancelOutStillCount) {
  const PerturbationPlan plan{.share = 1, .tokens = 14};
  const std::string text = "- rays beam - end";
  const DocumentVersions versions =
      perturb_document(tokenizer_, tokenizer_.encode(text), 0, plan, [](std::string_view word) {
        if (word == "rays") return std::vector<std::string>{"raysx"};
        if (word == "beam") return std::vector<std::string>{"bea"};
        return std::vector<std::string>();
      });
  EXPECT_EQ(text_of(versions.perturbed), "- raysx bea - ");
  EXPECT_FALSE(versions.same_count);
  EXPECT_EQ(versions.replaced, 2U);
}

TEST_F(PerturbedDocument, WordsBehindTheCutDoNotCount) {
  const PerturbationPlan plan{.share = 1, .tokens = 5};
  const DocumentVersions versions = perturb("- the rays -", plan, "beams");
  EXPECT_EQ(versions.replaced, 0U);
  EXPECT_FALSE(versions.usable(plan));
}

TEST_F(PerturbedDocument, AVersionThatBecomesTooShortIsNotUsable) {
  const PerturbationPlan plan{.share = 1, .tokens = 13};
  EXPECT_FALSE(perturb("- rays here -", plan, "ray").usable(plan));
}

TEST_F(PerturbedDocument, KeepsTheFirstTokenAndDropsPartsOfCharacters) {
  const PerturbationPlan plan{.share = 1, .tokens = 8, .bos = 1};
  const DocumentVersions versions = perturb("\x01\xA9- rays here \xC3", plan, "beam");
  EXPECT_EQ(text_of(versions.original), "\x01- rays ");
  EXPECT_EQ(text_of(versions.perturbed), "\x01- beam ");
}

}  // namespace
}  // namespace kvs
