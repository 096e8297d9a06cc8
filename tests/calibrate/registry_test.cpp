// SPDX-License-Identifier: Apache-2.0
#include "calibrate/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "calibrate/calibration.h"
#include "calibrate/config/config.h"
#include "io/file.h"

namespace kvs {
namespace {

using ::testing::HasSubstr;

std::string document(const char* name) { return read_text_file(std::string(KVS_DATA_DIR "/../docs/") + name, 1 << 20); }

TEST(Registry, GivesEveryMethodANameATitleAndCaches) {
  std::set<std::string_view> names, titles;
  for (const Method* const method : all_methods()) {
    EXPECT_EQ(find_method(method->name), method);
    EXPECT_TRUE(names.insert(method->name).second && titles.insert(method->title).second) << method->name;
    EXPECT_FALSE(method->summary.empty()) << method->name;
    const Calibration* const calibration = find_calibration(*method);
    EXPECT_TRUE(method->make != nullptr || (calibration != nullptr && calibration->load != nullptr)) << method->name;
  }
  EXPECT_EQ(find_method("lagk"), nullptr);
}

TEST(Registry, EveryParameterSaysWhatItSets) {
  for (const Method* const method : all_methods()) {
    if (method->make == nullptr) continue;
    for (const ParameterSpec& spec : describe(*method)) EXPECT_NE(spec.help, "") << method->name << ' ' << spec.name;
  }
}

TEST(Registry, DocumentsNameEveryMethodParameterAndPaper) {
  const std::string caches = document("caches.md"), references = document("references.md");
  std::set<std::string> shared;
  for (const ParameterSpec& spec : describe(kFullMethod)) shared.insert(spec.name);
  for (const Method* const method : all_methods()) {
    const std::string name(method->name);
    const std::size_t row = caches.find("| `" + name + '`');
    ASSERT_NE(row, std::string::npos) << name;
    if (method->paper.year != 0) {
      for (const std::string_view part : {method->paper.authors, method->paper.title, method->paper.link})
        EXPECT_THAT(references, HasSubstr(part)) << name;
    }
    if (method->make == nullptr) continue;
    const std::string line = caches.substr(row, caches.find('\n', row) - row);
    for (const ParameterSpec& spec : describe(*method))
      if (!shared.contains(spec.name) && line.find("those of `dropping`") == std::string::npos) {
        EXPECT_THAT(line, HasSubstr('`' + spec.name + '`')) << name;
      }
  }
}

TEST(Registry, TheTableOfMethodsStatesEachForm) {
  const std::string methods = document("methods.md");
  for (const Method* const method : all_methods()) {
    const std::size_t row = methods.find("| `" + std::string(method->name) + '`');
    ASSERT_NE(row, std::string::npos) << method->name;
    EXPECT_THAT(methods.substr(row, methods.find('\n', row) - row),
                HasSubstr(" | " + std::string(form_name(method->form))));
  }
}

TEST(Registry, TheSchemaNamesTheSameMethods) {
  std::set<std::string> names;
  for (const Method* const method : all_methods()) names.emplace(method->name);
  const auto listed = parsed_config_schema().at("properties").at("method").at("enum").get<std::set<std::string>>();
  EXPECT_EQ(listed, names);
}

}  // namespace
}  // namespace kvs
