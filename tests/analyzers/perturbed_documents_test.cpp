// SPDX-License-Identifier: Apache-2.0
#include "analyzers/perturbed_documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

PerturbedDocument perturbed_document(double similarity, bool same_count) {
  PerturbedDocument document{2, same_count, std::vector<ByState<BandSimilarity>>(3)};
  for (auto& layer : document.layers)
    for (const StateKind state : kPerturbedStates) layer[state].fill(similarity);
  document.layers[1][StateKind::kV] = {0.5, 0.25, 0.125};
  return document;
}

TEST(PerturbedDocuments, GroupsDocumentsAndGivesIntervalsFromTwoOn) {
  const std::vector documents{perturbed_document(0.8, true), perturbed_document(1, true),
                              perturbed_document(0.4, false)};
  const Json json = to_json(perturbation_result({}, documents));
  EXPECT_EQ(json.at("documents"), Json({{"same_count", 2}, {"other_count", 1}, {"left_out", 0}}));
  EXPECT_EQ(json.at("replaced_words"), 2.0);
  const Json& low = json.at("states").at("k_pre").at("same_count").at("low");
  EXPECT_NEAR(low.at("mean")[0], 0.9, 1e-12);
  // Student's t of one degree of freedom: 12.7062 standard errors of 0.1 each.
  EXPECT_NEAR(low.at("interval")[0][1], 0.9 + 1.27062, 1e-5);
  EXPECT_EQ(json.at("states").at("v").at("other_count").at("high").at("mean"), Json({0.4, 0.125, 0.4}));
  EXPECT_TRUE(json.at("states").at("v").at("other_count").at("high").at("interval")[0].is_null());
}

TEST(PerturbedDocuments, AGroupWithoutDocumentsIsLeftOut) {
  const std::vector documents{perturbed_document(0.8, false)};
  const PerturbationResult result = perturbation_result({}, documents);
  EXPECT_FALSE(to_json(result).at("states").at("v").contains("same_count"));
  EXPECT_THAT(to_text(result), Not(HasSubstr("stay")));
}

TEST(PerturbedDocuments, ADocumentComesBackFromItsRecord) {
  const PerturbedDocument document = perturbed_document(1.0 / 3, false);
  const Json record = parse_json(dump_json(perturbed_document_json(document)), "record");
  const PerturbedDocument back =
      perturbed_document_from(JsonCursor(record, "record"), document, document.layers.size());
  EXPECT_EQ(back.replaced, document.replaced);
  EXPECT_EQ(back.same_count, document.same_count);
  for (std::size_t layer = 0; layer < 3; ++layer)
    for (const StateKind state : kPerturbedStates) EXPECT_EQ(back.layers[layer][state], document.layers[layer][state]);
}

}  // namespace
}  // namespace kvs
