// SPDX-License-Identifier: Apache-2.0
#include "tests/catalogue/catalogue.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/cli/letters_tokenizer.h"

namespace kvs::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kInternal = 70, kSignal = 1000;

}  // namespace

Catalogue::Catalogue() {
  write_tiny_model(folder_ / "model");
  write_tokens_file(folder_ / "tokens.jsonl", 2, 40);
  write("model/tokenizer.json", letters_tokenizer().dump());
  fs::create_directory(folder_ / "out");
  write("out/earlier", "made before");
}

Outcome run_after(const std::string& setup, const std::string& program, const std::vector<std::string>& words) {
  std::string command = setup + "; exec " KVS_BINARY_DIR "/" + program;
  for (const std::string& word : words) command += " '" + word + "'";
  return run("/bin/bash", {"-c", command});
}

void Catalogue::expect_refused(const std::string& program, const Words& words, int status, Parts parts) const {
  check_refused(
      program, [&] { return run(program, words); }, status, parts);
}

void Catalogue::expect_refused_after(const std::string& setup, const std::string& program, const Words& words,
                                     int status, Parts parts) const {
  check_refused(
      program, [&] { return run_after(setup, program, words); }, status, parts);
}

void Catalogue::check_refused(const std::string& program, const std::function<Outcome()>& act, int status,
                              Parts parts) const {
  const auto before = contents_of(folder_ / "");
  const Outcome outcome = act();
  EXPECT_EQ(outcome.status, status) << outcome.err;
  EXPECT_LT(outcome.status, kSignal) << "died of a signal";
  EXPECT_NE(outcome.status, kInternal);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, StartsWith(program + ": error: "));
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  for (const std::string_view part : parts) EXPECT_THAT(outcome.err, HasSubstr(part));
  for (const char letter : outcome.err)
    EXPECT_TRUE(letter == '\n' || static_cast<unsigned char>(letter) >= ' ') << "not escaped: " << outcome.err;
  EXPECT_EQ(difference(before, contents_of(folder_ / "")), "") << outcome.err;
}

Outcome Catalogue::expect_done(const std::string& program, const Words& words) const {
  Outcome outcome = run(program, words);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return outcome;
}

Catalogue::Words Catalogue::capture_words(const std::string& model) const {
  return words_on_texts("capture", folder_ / model, folder_ / "tokens.jsonl",
                        {"--out", folder_ / "out/earlier", "--force"});
}

Catalogue::Words Catalogue::text_words(const Words& texts, const Words& more) const {
  Words words = capture_words();
  words.erase(words.begin() + 3, words.begin() + 5);  // --tokens-file FILE
  words.push_back("--text");
  words.insert(words.end(), texts.begin(), texts.end());
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void Catalogue::expect_model_refused(int status, Parts parts, const std::string& model) const {
  expect_refused("kvspectrum", capture_words(model), status, parts);
}

void Catalogue::expect_model_taken(const std::string& model) const { expect_done("kvspectrum", capture_words(model)); }

Catalogue::Words Catalogue::calibrate_words(const std::string& command, const Words& more) const {
  return words_on_texts(command, folder_ / "model", folder_ / "tokens.jsonl", more);
}

void Catalogue::write(const std::string& name, std::string_view bytes) const {
  std::ofstream(folder_ / name, std::ios::binary) << bytes;
}

void Catalogue::edit_json(const std::string& name, const std::function<void(Json&)>& change) const {
  Json value = parse_json(slurp(folder_ / name), name);
  change(value);
  write(name, value.dump());
}

}  // namespace kvs::testing
