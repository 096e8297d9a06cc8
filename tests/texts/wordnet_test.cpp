// SPDX-License-Identifier: Apache-2.0
#include "texts/wordnet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/io/temporary_directory.h"

namespace kvs::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A database of a few nouns and adjectives, made line by line in the format of wndb(5WN).
class WordNetFolder : public ::testing::Test {
 protected:
  WordNetFolder() {
    for (const char* part : {"noun", "verb", "adj", "adv"}) {
      folder_.write(std::string("index.") + part, "  a line of the licence  \n");
      folder_.write(std::string("data.") + part, "  a line of the licence  \n");
    }
  }
  /// Adds a synset and returns its offset.
  static std::string add_synset(std::string& data, const std::string& count, const std::string& words) {
    char offset[9];
    std::snprintf(offset, sizeof offset, "%08zu", data.size());
    data += offset + (" 05 n " + count + " ") + words + " 000 | what it is  \n";
    return offset;
  }
  void write_nouns(const std::string& index, const std::string& data) {
    folder_.write("index.noun", index);
    folder_.write("data.noun", data);
  }
  WordNet open() const { return WordNet(folder_.path()); }

  TemporaryDirectory folder_;
};

TEST_F(WordNetFolder, GivesTheWordsOfTheMostFrequentSenseThatHasOthers) {
  std::string data = "  a line of the licence  \n";
  const std::string alone = add_synset(data, "01", "beam 0");
  const std::string ray = add_synset(data, "03", "ray 0 beam 0 light_beam 0");
  const std::string rafter = add_synset(data, "02", "beam 1 rafter 0");
  const std::string name = add_synset(data, "02", "Ray 0 manray 0");
  write_nouns("beam n 3 2 @ ~ 3 1 " + alone + " " + ray + " " + rafter + "  \nray n 2 0 2 0 " + name + " " + ray +
                  "  \nlight_beam n 1 0 1 0 " + ray + "  \n",
              data);
  const WordNet wordnet = open();
  EXPECT_THAT(wordnet.synonyms("beam"), ElementsAre("ray"));  // no phrase, no second sense
  EXPECT_THAT(wordnet.synonyms("ray"), ElementsAre("beam"));  // the sense of a proper noun is skipped
  EXPECT_THAT(wordnet.synonyms("light_beam"), IsEmpty());
  EXPECT_THAT(wordnet.synonyms("nothing"), IsEmpty());
}

TEST_F(WordNetFolder, JoinsThePartsOfSpeechAndDropsAdjectivesMarkers) {
  std::string nouns, adjectives;
  write_nouns("calm n 1 0 1 0 " + add_synset(nouns, "02", "calm 0 composure 0") + "  \n", nouns);
  const std::string offset = add_synset(adjectives, "02", "calm(p) 0 still(ip) 0");
  folder_.write("index.adj", "calm a 1 0 1 0 " + offset + "  \n");
  folder_.write("data.adj", adjectives);
  EXPECT_THAT(open().synonyms("calm"), ElementsAre("composure", "still"));
}

TEST_F(WordNetFolder, NamesThePackageWhereAFileIsMissing) {
  std::filesystem::remove(folder_ / "data.verb");
  expect_error(ErrorCode::kEnvironment, "wordnet-base", [&] { open(); });
}

TEST_F(WordNetFolder, RefusesIndexLinesThatEndEarlyOrHoldNoNumber) {
  for (const char* line : {"beam", "beam n 1 0 1 0 \n", "beam n 4000000000 0 1 0 00000000  \n", "beam n x 0 1 0 0  \n",
                           "beam n 1 99999 @ 1 0  \n", "beam n -1 0 1 0  \n", "beam n 1 0 1 0 99999999999  \n"}) {
    folder_.write("index.noun", line);
    expect_error(ErrorCode::kInput, "index.noun: line 1: found ", [&] { open(); });
  }
}

TEST_F(WordNetFolder, RefusesOffsetsThatAreNoSynset) {
  std::string data;
  add_synset(data, "02", "beam 0 ray 0");
  const std::string second = add_synset(data, "02", "beam 0 ray 0");
  for (const std::string& offset : {std::string("00000001"), std::string("00009999"), std::string("4294967295")}) {
    write_nouns("beam n 1 0 1 0 " + offset + "  \n", data);
    expect_error(ErrorCode::kInput, "expected a synset", [&] { open().synonyms("beam"); });
  }
  for (const char* synset : {"00000007 05 n 01 beam 0 ", "00000000 05 n zz beam 0 ", "00000000 05 n ff beam 0 ",
                             "00000000 05 n 02 beam 0\nray 0 ", "00000000", ""}) {
    write_nouns("beam n 1 0 1 0 00000000  \n", std::string(synset) + "\n");
    expect_error(ErrorCode::kInput, "data.noun: offset 0: found ", [&] { open().synonyms("beam"); });
  }
}

TEST(DebianWordNet, KnowsSynonyms) {
  if (!std::filesystem::exists(WordNet::kDebianFolder)) GTEST_SKIP() << "Debian's wordnet-base is not installed";
  const WordNet wordnet(WordNet::kDebianFolder);
  // Sense 1 of the noun (data.noun, offset 02958343): car, auto, automobile, machine, motorcar. The verb is alone.
  EXPECT_THAT(wordnet.synonyms("automobile"), ElementsAre("auto", "car", "machine", "motorcar"));
  EXPECT_THAT(wordnet.synonyms("paris"), IsEmpty());
}

}  // namespace
}  // namespace kvs::test
