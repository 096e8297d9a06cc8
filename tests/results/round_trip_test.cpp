#include <gtest/gtest.h>

#include "io/file.h"
#include "results/perturbation.h"
#include "results/retention.h"
#include "results/spectrum.h"
#include "results/token_scores.h"

namespace kvs {
namespace {

Json sample(const std::string& name) {
  return parse_json(read_text_file(std::string(KVS_REPORT_OUTPUTS) + "/" + name, 1 << 20), name);
}

template <class Result>
void expect_the_same(const std::string& name) {
  const Json json = sample(name);
  EXPECT_EQ(dump_json(to_json(from_json<Result>({json, name}))), dump_json(json)) << name;
}

TEST(Results, AreWrittenAsTheyWereRead) {
  expect_the_same<RetentionResult>("retain.json");
  expect_the_same<PerturbationResult>("perturb.json");
  expect_the_same<TokenScoresResult>("scores.json");
  expect_the_same<SpectrumResult>("spectrum.json");
}

}  // namespace
}  // namespace kvs
