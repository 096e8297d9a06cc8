// SPDX-License-Identifier: Apache-2.0
#include "texts/corpus.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "io/digest.h"
#include "tests/io/sanitizer.h"
#include "tests/io/temporary_directory.h"
#include "tests/texts/byte_tokenizer.h"

namespace kvs {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

long peak_kibibytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

class CorpusTest : public testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view bytes) const {
    return directory_.write(name, bytes).string();
  }

  /// A corpus of these texts in windows of `window` bytes.
  CorpusOptions options(std::vector<std::string> texts, std::size_t window = 4) const {
    CorpusOptions options;
    options.texts = std::move(texts);
    options.window = window;
    return options;
  }
  CorpusOptions tokens_options(std::string_view lines, std::size_t window = 2) const {
    CorpusOptions options;
    options.tokens_file = write("ids.jsonl", lines);
    options.window = window;
    return options;
  }

  Corpus read(const CorpusOptions& options, std::size_t vocabulary = ByteTokenizer::kVocabulary) const {
    return read_corpus(options, &tokenizer_, vocabulary);
  }

  /// Returns the windows as text.
  std::vector<std::string> texts_of(const Corpus& corpus) const {
    std::vector<std::string> texts;
    for (const Document& document : corpus.documents) texts.push_back(tokenizer_.decode(document.tokens));
    return texts;
  }

  void expect_error(const CorpusOptions& options, ErrorCode code, const std::string& message,
                    std::size_t vocabulary = ByteTokenizer::kVocabulary) const {
    try {
      read(options, vocabulary);
      ADD_FAILURE() << "no error, expected: " << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(message));
    }
  }

  test::TemporaryDirectory directory_;
  fs::path folder_ = directory_.path();
  ByteTokenizer tokenizer_;
};

TEST_F(CorpusTest, CutsATextIntoWindowsAndCountsTheRemainder) {
  const Corpus corpus = read(options({write("a.txt", "abcdefghij")}));
  EXPECT_THAT(texts_of(corpus), ElementsAre("abcd", "efgh"));
  EXPECT_EQ(corpus.tokens_read, 10U);
  EXPECT_EQ(corpus.tokens_dropped, 2U);
  EXPECT_EQ(corpus.documents[1].window_index, 1U);
}

TEST_F(CorpusTest, WindowsOverlapWithAStride) {
  CorpusOptions strided = options({write("a.txt", "abcdefghij")});
  strided.stride = 3;
  const Corpus corpus = read(strided);
  EXPECT_EQ(texts_of(corpus), (std::vector<std::string>{"abcd", "defg", "ghij"}));
  EXPECT_EQ(corpus.tokens_dropped, 0U);
  strided.stride = 4;
  EXPECT_EQ(read(strided).tokens_dropped, 2U);
}

TEST_F(CorpusTest, BosTakesOnePlaceOfEveryWindow) {
  CorpusOptions with_bos = options({write("a.txt", "abcdefgh")});
  with_bos.bos = ByteTokenizer::kBos;
  const Corpus corpus = read(with_bos);
  ASSERT_EQ(corpus.documents.size(), 2U);  // 3 of the 8 tokens fit into each window of 4
  EXPECT_THAT(corpus.documents[1].tokens, ElementsAre(256, 'd', 'e', 'f'));
  EXPECT_EQ(corpus.tokens_dropped, 2U);
}

TEST_F(CorpusTest, ATextThatBeginsWithBosGetsNoSecondOne) {
  CorpusOptions with_bos = tokens_options("[256,1,2,3,4,5,6]\n[1,2,3,256,4,5,6,7]", 4);
  with_bos.bos = ByteTokenizer::kBos;
  const Corpus corpus = read(with_bos);
  ASSERT_EQ(corpus.documents.size(), 4U);
  EXPECT_THAT(corpus.documents[0].tokens, ElementsAre(256, 1, 2, 3));
  EXPECT_THAT(corpus.documents[1].tokens, ElementsAre(256, 4, 5, 6));
  EXPECT_THAT(corpus.documents[2].tokens, ElementsAre(256, 1, 2, 3));
  EXPECT_THAT(corpus.documents[3].tokens, ElementsAre(256, 4, 5, 6));  // also in the middle of a line
  EXPECT_EQ(corpus.tokens_dropped, 1U);
  EXPECT_EQ(corpus.bos, 256);
  with_bos.windows_first = -1;
  EXPECT_THAT(read(with_bos).documents[0].tokens, ElementsAre(256, 4, 5, 6));
}

TEST_F(CorpusTest, ATextNeedsOneTokenLessWhereBosIsPutBeforeIt) {
  CorpusOptions with_bos = tokens_options("[1,2,3]\n[256,1,2]", 4);
  with_bos.bos = ByteTokenizer::kBos;
  const Corpus corpus = read(with_bos);
  ASSERT_EQ(corpus.documents.size(), 1U);
  EXPECT_THAT(corpus.documents[0].tokens, ElementsAre(256, 1, 2, 3));
  with_bos = tokens_options("[256,1,2]", 4);
  with_bos.bos = ByteTokenizer::kBos;
  expect_error(with_bos, ErrorCode::kData, "has 3 tokens, expected at least 3, those of a window behind");
}

TEST_F(CorpusTest, BosIsAnIdOfTheModel) {
  CorpusOptions with_bos = options({write("a.txt", "abcdefgh")});
  with_bos.bos = ByteTokenizer::kBos;
  expect_error(with_bos, ErrorCode::kUsage, "--bos: found id 256, expected one below the model's 256", 256);
}

TEST_F(CorpusTest, SelectsWindowsOfEachTextFromTheFrontAndFromTheEnd) {
  CorpusOptions some = options({write("a.txt", "aabbccdd"), write("b.txt", "eeffgg")}, 2);
  some.windows_first = 1;
  EXPECT_THAT(texts_of(read(some)), ElementsAre("bb", "cc", "dd", "ff", "gg"));
  some.windows_last = -1;
  EXPECT_THAT(texts_of(read(some)), ElementsAre("bb", "cc", "ff"));
  some.windows_first = -1;
  some.windows_last = std::nullopt;
  EXPECT_THAT(texts_of(read(some)), ElementsAre("dd", "gg"));
  some.windows_first = -100;
  some.windows_last = 1;
  EXPECT_THAT(texts_of(read(some)), ElementsAre("aa", "ee"));
  some.windows_first = 7;
  some.windows_last = 9;
  expect_error(some, ErrorCode::kData, "0 documents: the range of windows selects none");
}

TEST_F(CorpusTest, DocumentsAreCountedOverAllTextsAndReadingStopsThere) {
  CorpusOptions some = options({write("a.txt", "aabb"), write("b.txt", "ccdd"), (folder_ / "missing.txt").string()}, 2);
  some.documents = 3;
  const Corpus corpus = read(some);
  EXPECT_THAT(texts_of(corpus), ElementsAre("aa", "bb", "cc"));
  EXPECT_EQ(corpus.text_sha256.size(), 2U);
}

TEST_F(CorpusTest, DigestsAreOfWholeFilesEvenWhenReadingStopsEarly) {
  const std::string lines = "{\"text\":\"aa\"}\n{\"text\":\"bb\"}\nnot JSON\n";
  CorpusOptions one = options({write("a.jsonl", lines)}, 2);
  one.documents = 1;
  const Corpus corpus = read(one);
  EXPECT_THAT(corpus.text_sha256, ElementsAre(sha256_of(lines)));
}

TEST_F(CorpusTest, AFolderIsReadInByteOrderOfNamesAndOnlyItsRegularFiles) {
  write("b.txt", "bb");
  write("B.txt", "BB");
  write("\xC3\xA4.txt", "\xC3\xA4");
  write("a.jsonl", "{\"text\": \"xx\"}\n");
  fs::create_directory(folder_ / "c");
  write("c/inner.txt", "no");
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(texts_of(read(options({folder_.string()}, 2))), ElementsAre("BB", "xx", "bb", "\xC3\xA4"));
}

TEST_F(CorpusTest, EachObjectOfAJsonlFileIsATextOfItsOwn) {
  const Corpus corpus =
      read(options({write("a.jsonl", "{\"id\":1,\"text\":\"abc\"}\r\n\n{\"text\":\"d\\u0000\\u00e9e\"}")}, 2));
  EXPECT_THAT(texts_of(corpus), ElementsAre("ab", std::string("d\0", 2), "\xC3\xA9"));
  EXPECT_EQ(corpus.documents[1].source, (folder_ / "a.jsonl").string() + ": line 3");
  EXPECT_EQ(corpus.tokens_dropped, 2U);
}

TEST_F(CorpusTest, ATextIsReadOnceUnderWhateverName) {
  const std::string a = write("a.txt", "abcdef"), copy = write("copy.md", "abcdef");
  const std::string lines =
      write("a.jsonl", "{\"text\":\"abcdef\"}\n{\"text\":\"abcdeg\"}\n{\"text\":\"x\"}\n{\"text\":\"x\"}\n");
  const Corpus corpus = read(options({a, copy, a, lines}, 3));
  EXPECT_THAT(texts_of(corpus), ElementsAre("abc", "def", "abc", "deg"));
  EXPECT_EQ(corpus.repeated_texts, 3U);  // a text shorter than a window has no window
}

TEST_F(CorpusTest, ProseThatBeginsLikeLinesOfJsonIsNamed) {
  const std::string lines = write("a.txt", "{\"text\":\"abcdef\"}\n"), words = write("b.txt", "{curly} braces\n"),
                    code = write("c.txt", "{\n  \"a\": 1\n}\n");
  EXPECT_THAT(read(options({lines, words, code}, 3)).json_like, ElementsAre(lines));
}

TEST_F(CorpusTest, StandardInputIsOneText) {
  const std::string path = write("in", "abcd\nef");
  const int saved = ::dup(STDIN_FILENO), file = ::open(path.c_str(), O_RDONLY);
  ::dup2(file, STDIN_FILENO);
  ::close(file);
  const Corpus corpus = read(options({"-"}, 3));
  ::dup2(saved, STDIN_FILENO);
  ::close(saved);
  EXPECT_THAT(texts_of(corpus), ElementsAre("abc", "d\ne"));
  EXPECT_THAT(corpus.text_sha256, ElementsAre(sha256_of("abcd\nef")));
}

TEST_F(CorpusTest, TokensFileGivesIdsWithoutATokenizer) {
  const Corpus corpus = read_corpus(tokens_options("[1, 2 ,3]\n\n [40,50] \r\n[7]"), nullptr, 51);
  ASSERT_EQ(corpus.documents.size(), 2U);
  EXPECT_THAT(corpus.documents[0].tokens, ElementsAre(1, 2));
  EXPECT_THAT(corpus.documents[1].tokens, ElementsAre(40, 50));
  EXPECT_EQ(corpus.tokens_dropped, 2U);
}

TEST_F(CorpusTest, AWindowIsShortenedToTheLongestTextOnRequest) {
  CorpusOptions shortened = options({write("a.txt", "abc"), write("b.txt", "abcdef")}, 8);
  shortened.shorten = true;
  const Corpus corpus = read(shortened);
  ASSERT_EQ(corpus.documents.size(), 1U);
  EXPECT_EQ(corpus.documents[0].tokens.size(), 6U);
  EXPECT_EQ(corpus.tokens_dropped, 0U);
  shortened.window = 3;  // both texts have windows
  EXPECT_EQ(read(shortened).documents.size(), 3U);
  shortened = options({write("c.txt", "")}, 8);
  shortened.shorten = true;
  expect_error(shortened, ErrorCode::kData, "has 0 tokens, expected at least 2");
}

// The numbers in the names below are those of tests/catalogue/README.md.

TEST_F(CorpusTest, Bad76EmptyOrBlankCorpus) {
  expect_error(options({write("a.txt", "")}), ErrorCode::kData, "0 documents");
  expect_error(options({write("a.txt", " \n")}), ErrorCode::kData,
               "the longest of 1 texts has 2 tokens, expected at least 4");
  expect_error(options({write("a.jsonl", "\n \n")}), ErrorCode::kData, "0 documents: found no text");
  fs::create_directory(folder_ / "empty");
  expect_error(options({(folder_ / "empty").string()}), ErrorCode::kData, "0 documents: found no text");
}

TEST_F(CorpusTest, Bad77InvalidUtf8IsRefusedWithItsPlaceOrReplacedAndCounted) {
  CorpusOptions bad = options({write("a.txt", "ab\ncd\xFF\n")});
  expect_error(bad, ErrorCode::kInput, "a.txt: line 2, byte offset 5: found \\xff, expected UTF-8");
  bad.leniency.replace_invalid_utf8 = true;
  const Corpus corpus = read(bad);
  EXPECT_THAT(texts_of(corpus), ElementsAre("ab\nc", "d\xEF\xBF\xBD"));
  EXPECT_EQ(corpus.replaced_bytes, 1U);
  // In JSONL the offset is also that in the file.
  expect_error(options({write("a.jsonl", "{\"text\":\"abcd\"}\n{\"text\":\"\xC0\xAF\"}\n")}), ErrorCode::kInput,
               "a.jsonl: line 2, byte offset 25: found \\xc0");
}

TEST_F(CorpusTest, Bad77OneReplacementPerMaximalSubpart) {
  // Unicode 15, table 3-8 and the text around it: E1 80 (cut), E2 (cut), F0 91 92 (cut), F1 BF (cut), then 41. The
  // surrogate ED A0 80 and the overlong C0 AF have no well-formed start and give one mark per byte.
  CorpusOptions bad = options({write("a.txt", "\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41\xED\xA0\x80\xC0\xAF")}, 1);
  bad.leniency.replace_invalid_utf8 = true;
  const Corpus corpus = read(bad);
  std::string text, mark = "\xEF\xBF\xBD";
  for (const std::string& byte : texts_of(corpus)) text += byte;
  EXPECT_EQ(text, mark + mark + mark + mark + "A" + mark + mark + mark + mark + mark);
  EXPECT_EQ(corpus.replaced_bytes, 13U);
}

TEST_F(CorpusTest, Bad78BytesAreTokenisedUnchanged) {
  const std::string text(
      "\xEF\xBB\xBF"
      "a\r\n\0\r\n",
      9);
  EXPECT_THAT(texts_of(read(options({write("a.txt", text)}, 9))), ElementsAre(text));
}

TEST_F(CorpusTest, Bad79JsonlLinesNameTheirLineOrAreSkippedAndCounted) {
  const std::string good = "{\"text\":\"good\"}\n", fine = "{\"text\":\"fine\"}\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[1]\n", "line 2: found an array of 1 elements, expected an object"},
      {"{\"txt\":\"a\"}\n", "line 2: /text"},
      {"{\"text\":5}\n", "line 2: /text: found 5, expected a string"},
      {"{\"text\":\"a\"\n", "line 2: column"},
      {"{\"text\":\"\xFF\"}\n", "line 2, byte offset"},
  };
  for (const auto& [line, message] : cases) {
    CorpusOptions bad = options({write("a.jsonl", good + line + fine)});
    try {
      read(bad);
      ADD_FAILURE() << line;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(message));
    }
    bad.leniency.skip_bad_lines = true;
    const Corpus corpus = read(bad);
    EXPECT_THAT(texts_of(corpus), ElementsAre("good", "fine")) << line;
    EXPECT_EQ(corpus.skipped_lines, 1U);
  }
}

TEST_F(CorpusTest, Bad80ALineAboveTheLimitIsRefusedOrSkippedWithoutHoldingIt) {
  const long before = peak_kibibytes();
  const fs::path path = folder_ / "a.jsonl";
  {
    std::ofstream file(path, std::ios::binary);
    file << "{\"text\":\"good\"}\n";
    const std::string block(1U << 20, 'a');
    for (int i = 0; i < 400; ++i) file << block;
    file << "\n{\"text\":\"last\"}\n";
  }
  CorpusOptions bad = options({path.string()});
  expect_error(bad, ErrorCode::kInput, "a.jsonl: line 2: found more than 67108864 bytes");
  bad.leniency.skip_bad_lines = true;
  EXPECT_THAT(texts_of(read(bad)), ElementsAre("good", "last"));
  // 256 MiB is the limit of the list; the line alone has 400 MiB.
  if (!test::sanitized()) {
    EXPECT_LT(peak_kibibytes() - before, 256L << 10);
  }
}

TEST_F(CorpusTest, AProseTextMayHaveALineOfAnyLength) {
  const fs::path path = folder_ / "text8";
  const std::string block(1U << 20, 'a');
  Sha256 digest;
  {
    std::ofstream file(path, std::ios::binary);
    for (int n = 0; n < 80; ++n) {
      file << block;
      digest.update(block);
    }
    file << "end";
  }
  digest.update(std::string_view("end"));
  CorpusOptions last = options({path.string()}, 5);
  last.windows_first = -1;
  const Corpus corpus = read(last);
  ASSERT_EQ(corpus.documents.size(), 1U);
  EXPECT_EQ(corpus.tokens_read, (80U << 20) + 3);
  EXPECT_EQ(corpus.documents.front().window_index, ((80U << 20) + 3) / 5 - 1);
  EXPECT_EQ(corpus.text_sha256.front(), digest.finish());
}

TEST_F(CorpusTest, Bad81ACutLastLineIsNamed) {
  expect_error(options({write("a.jsonl", "{\"text\":\"good\"}\n{\"text\":\"go")}), ErrorCode::kInput,
               "a.jsonl: line 2: truncated: ");
}

TEST_F(CorpusTest, LinesOfJsonAreKnownByEveryEndingInUpperAndLowerCase) {
  for (const char* name : {"a.jsonl", "a.JSONL", "a.JsonL", "a.ndjson", "a.NDJSON", "a.jsonlines", "a.JsonLines"})
    EXPECT_THAT(texts_of(read(options({write(name, "{\"text\":\"good\"}\n")}))), ElementsAre("good")) << name;
  for (const char* name : {"a.txt", "a.TXT", "a.md", "jsonl", "a.jsonl.txt", "a.json5"})
    EXPECT_THAT(texts_of(read(options({write(name, "{\"text\":\"good\"}\n")}))), testing::SizeIs(4)) << name;
}

TEST_F(CorpusTest, AJsonFileIsRefusedByName) {
  for (const char* name : {"a.json", "a.JSON", "a.Json"})
    expect_error(options({write(name, "[{\"text\":\"good\"}]\n")}), ErrorCode::kUnsupported,
                 std::string(name) + ": found a JSON file, expected UTF-8 text or JSONL");
  CorpusOptions ids = tokens_options("");
  ids.tokens_file = write("ids.json", "[1,2]\n");
  EXPECT_EQ(read(ids).documents.size(), 1U);  // one array per line, whatever the file's name
}

TEST_F(CorpusTest, MessagesWithoutATextAreRefusedByNameAndNotSkipped) {
  for (const char* member : {"messages", "conversations"}) {
    CorpusOptions chat =
        options({write("a.jsonl", "{\"" + std::string(member) + "\":[{\"role\":\"user\",\"content\":\"hello\"}]}\n")});
    const std::string problem = "a.jsonl: line 1: found `" + std::string(member) + "` and no `text`";
    expect_error(chat, ErrorCode::kUnsupported, problem);
    chat.leniency.skip_bad_lines = true;
    expect_error(chat, ErrorCode::kUnsupported, problem);
    write("a.jsonl", "{\"" + std::string(member) + "\":[],\"text\":\"good\"}\n");
    EXPECT_THAT(texts_of(read(chat)), ElementsAre("good"));
  }
}

TEST_F(CorpusTest, HiddenFilesOfAFolderArePassedOver) {
  fs::create_directory(folder_ / "texts");
  write("texts/a.txt", "good");
  write("texts/.DS_Store", std::string("\0\0\0\1Bud1\xff", 9));
  write("texts/._a.txt", std::string("\0\5\x16\7AppleDouble", 15));
  write("texts/.hidden.jsonl", "{");
  EXPECT_THAT(texts_of(read(options({(folder_ / "texts").string()}))), ElementsAre("good"));
  EXPECT_THAT(texts_of(read(options({write(".named.txt", "this")}))), ElementsAre("this"));
}

TEST_F(CorpusTest, Bad82TextsShorterThanAWindowAreCountedOrReportedWithTheLongest) {
  expect_error(options({write("a.txt", "abc"), write("b.txt", "a")}), ErrorCode::kData,
               "a.txt and 1 more: 0 documents: the longest of 2 texts has 3 tokens, expected at least 4");
  EXPECT_EQ(read(options({write("a.txt", "abc"), write("b.txt", "abcd")})).tokens_dropped, 3U);
}

TEST_F(CorpusTest, Bad83TokenIdsOutsideTheVocabularyNameLineColumnAndVocabulary) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[1, -1]", "line 2: column 5: found \"-1\", expected a token id from 0 to 256 (vocabulary size 257)"},
      {"[1,257]", "line 2: column 4: found \"257\""},
      {"[2147483648]", "line 2: column 2: found \"2147483648\""},
      {"[99999999999999999999]", "line 2: column 2"},
      {"[1.5]", "line 2: column 2: found \"1.5\""},
      {"[\"1\"]", "line 2: column 2"},
      {"[01]", "line 2: column 2"},
      {"[1,]", "line 2: column 4: found \"]\""},
      {"[1 2]", "line 2: column 4: found \"2\", expected ',' or ']'"},
      {"[1", "line 2: column 3: found the end, expected ',' or ']'"},
      {"[", "line 2: column 2: found the end"},
      {"1", "line 2: column 1: found \"1\", expected '['"},
      {"[1] 2", "line 2: column 5: found \"2\", expected the end of the line"},
  };
  for (const auto& [line, message] : cases) {
    CorpusOptions bad = tokens_options("[1,2]\n" + line + "\n[3,4]\n");
    expect_error(bad, ErrorCode::kInput, message);
    bad.leniency.skip_bad_lines = true;
    const Corpus corpus = read(bad);
    EXPECT_EQ(corpus.documents.size(), 2U) << line;
    EXPECT_EQ(corpus.skipped_lines, 1U) << line;
  }
}

TEST_F(CorpusTest, Bad83ATokenizerThatGivesIdsTheModelLacksNamesTheToken) {
  expect_error(options({write("a.txt", "abcd\n")}), ErrorCode::kInput,
               "token \"d\" has id 100, expected one below the model's 100", 100);
  // This is not a bad line.
  CorpusOptions lenient = options({write("a.jsonl", "{\"text\":\"abcd\"}\n")});
  lenient.leniency.skip_bad_lines = true;
  expect_error(lenient, ErrorCode::kInput, "line 1: token \"d\"", 100);
}

TEST_F(CorpusTest, Bad85SpecialFilesAreRefusedWithoutWaiting) {
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  expect_error(options({(folder_ / "fifo").string()}), ErrorCode::kUsage,
               "fifo: found a FIFO, expected a regular file");
  expect_error(options({"/dev/zero"}), ErrorCode::kUsage, "/dev/zero: found a device");
  CorpusOptions tokens = tokens_options("");
  tokens.tokens_file = folder_;
  expect_error(tokens, ErrorCode::kUsage, "found a folder, expected a regular file");
}

TEST_F(CorpusTest, FilesThatAreNoTextAreRefusedWithAHintWhateverTheirName) {
  expect_error(options({write("a.txt", "PAR1\x15\x04")}), ErrorCode::kUnsupported,
               "a.txt: found a Parquet file, expected UTF-8 text; convert it first");
  for (const char* name : {"a.jsonl", "b.jsonl.gz"})
    expect_error(options({write(name, "\x1f\x8b\x08")}), ErrorCode::kUnsupported, std::string(name) + ": found a gzip");
  expect_error(options({write("c.PARQUET", "x")}), ErrorCode::kUnsupported, "c.PARQUET: found a Parquet file");
  expect_error(tokens_options("PK\x03\x04"), ErrorCode::kUnsupported, "ids.jsonl: found a zip file");
}

TEST_F(CorpusTest, ReplacingInvalidUtf8DoesNotTakeUtf16ForText) {
  CorpusOptions wide = options({write("wide.txt", std::string_view("\xff\xfeh\0i\0", 6))});
  wide.leniency.replace_invalid_utf8 = true;
  expect_error(wide, ErrorCode::kUnsupported,
               "wide.txt: found UTF-16 text, expected UTF-8 text; convert it first: iconv");
}

TEST_F(CorpusTest, MissingFilesAreNamed) {
  expect_error(options({(folder_ / "none").string()}), ErrorCode::kInput, "none: cannot be read: No such file");
}

TEST_F(CorpusTest, OptionsThatCannotWorkAreRefused) {
  const std::string text = write("a.txt", "abcd");
  expect_error(options({}), ErrorCode::kUsage, "expected either texts or a file of tokens");
  expect_error(options({text}, 0), ErrorCode::kUsage, "window");
  CorpusOptions bad = options({text}, 1);
  bad.bos = ByteTokenizer::kBos;
  expect_error(bad, ErrorCode::kUsage, "window");
  bad = options({text});
  bad.documents = 0;
  expect_error(bad, ErrorCode::kUsage, "documents");
  bad = tokens_options("[1,2]");
  bad.texts = {text};
  expect_error(bad, ErrorCode::kUsage, "expected either texts or a file of tokens");
}

TEST(Corpus, HoldsDocumentsOutEvenlySpaced) {
  Corpus corpus;
  for (std::int32_t n = 0; n < 8; ++n) corpus.documents.push_back({"", 0, {n}});
  hold_out(corpus, 2);
  std::vector<std::int32_t> order;
  for (const Document& document : corpus.documents) order.push_back(document.tokens.front());
  EXPECT_EQ(order, (std::vector<std::int32_t>{0, 1, 2, 4, 5, 6, 3, 7}));
}

}  // namespace
}  // namespace kvs
