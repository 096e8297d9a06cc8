// SPDX-License-Identifier: Apache-2.0
// Places of outputs, and their inputs: N157 to N169.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include "io/digest.h"
#include "tests/catalogue/catalogue.h"
#include "tests/cli/text_fixture.h"

namespace kvs::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using Arguments = std::vector<std::string>;

Arguments joined(Arguments words, const Arguments& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Parts of a capture, p-00001-of-00003.h5 and so on.
Arguments write_parts(const TemporaryFolder& folder) {
  const Outcome outcome =
      run("kvspectrum", words_on_texts("capture", folder / "model", folder / "tokens.jsonl",
                                       {"--documents", "2", "--parts", "2", "--out", folder / "p.h5"}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return {folder / "p-00001-of-00002.h5", folder / "p-00002-of-00002.h5"};
}

/// Makes the states of the model's last token overflow every number.
void overflow_last_token(const fs::path& model) {
  constexpr std::size_t kModel = 48, kLast = 63;
  std::string bytes = slurp(model / "model.safetensors");
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const float huge = 3e38F;
  for (std::size_t i = 0; i < kModel; ++i)  // the embedding comes first
    std::memcpy(bytes.data() + sizeof header + header + (kLast * kModel + i) * sizeof huge, &huge, sizeof huge);
  std::ofstream(model / "model.safetensors", std::ios::binary) << bytes;
}

TEST_F(Catalogue, N157_OutputsAmongTheTexts) {
  fs::create_directory(folder_ / "texts");
  write("texts/a.txt", std::string(80, 'a'));
  for (const char* out : {"texts/c.h5", "out/../texts/c.h5"}) {
    Words words = text_words({folder_ / "texts"});
    *(std::ranges::find(words, "--out") + 1) = folder_ / out;
    expect_refused("kvspectrum", words, 2, {out, "the output lies in the folder of texts"});
    *(std::ranges::find(words, "--out") + 1) = folder_ / "texts/deeper.h5";
    fs::create_directory_symlink("texts", folder_ / "alias");
    *(std::ranges::find(words, "--out") + 1) = folder_ / "alias/c.h5";
    expect_refused("kvspectrum", words, 2, {"the output lies in the folder of texts"});
    fs::remove(folder_ / "alias");
  }
  fs::create_directory(folder_ / "texts/out");  // whose files are not texts
  Words words = text_words({folder_ / "texts"});
  *(std::ranges::find(words, "--out") + 1) = folder_ / "texts/out/c.h5";
  expect_done("kvspectrum", words);
}

TEST_F(Catalogue, N158_FilesBesideThePartsOfACapture) {
  for (const char* ending : {".lock", ".journal", ".partial", ".partial.new", ".manifest.json"}) {
    const std::string name = std::string("s-00002-of-00002.h5") + ending;
    fs::rename(folder_ / "tokens.jsonl", folder_ / name);
    expect_refused("kvspectrum",
                   words_on_texts("capture", folder_ / "model", folder_ / name,
                                  {"--parts", "2", "--out", folder_ / "s.h5", "--force"}),
                   2, {name, "the output is the input"});
    fs::rename(folder_ / name, folder_ / "tokens.jsonl");
  }
}

TEST_F(Catalogue, N159_FilesBesideAMergedCapture) {
  Arguments parts = write_parts(folder_);
  for (const char* ending : {".lock", ".journal", ".partial.new"}) {
    const std::string name = folder_ / (std::string("j.h5") + ending);
    for (const char* of : {"", ".manifest.json"}) fs::rename(parts[1] + of, name + of);
    expect_refused("kvspectrum", {"merge", parts[0], name, "--out", folder_ / "j.h5", "--force"}, 2,
                   {name, "the output is the input"});
    for (const char* of : {"", ".manifest.json"}) fs::rename(name + of, parts[1] + of);
  }
}

TEST_F(Catalogue, N160_AnOutputThatIsKeptBesideAnother) {
  for (const char* ending : {".lock", ".journal", ".checkpoint.1"})
    expect_refused("kvcalibrate",
                   calibrate_words("eval", {"--method", "full", "--force", "--out", folder_ / "out/e.json",
                                            "--save-config", folder_ / (std::string("out/e.json") + ending)}),
                   2, {ending, "is the name of two outputs"});
  fs::create_symlink("real.json", folder_ / "out/link.json");  // its lock is next to real.json
  expect_refused("kvcalibrate",
                 calibrate_words("eval", {"--method", "full", "--force", "--out", folder_ / "out/link.json",
                                          "--save-config", folder_ / "out/real.json.lock"}),
                 2, {"real.json.lock", "is the name of two outputs"});
}

TEST_F(Catalogue, N161_FinishedRunsOfOtherInputs) {
  const auto refuse = [&](const std::string& program, const Words& words, const std::string& input,
                          const std::function<void()>& change) {
    expect_done(program, words);
    expect_done(program, joined(words, {"--resume"}));
    const std::string before = slurp(folder_ / input);
    change();
    expect_refused(program, joined(words, {"--resume"}), 7, {"found a file that exists"});
    write(input, before);
  };
  const auto set = [&](const std::string& file, const char* pointer, const Json& value) {
    return [this, file, pointer, value] {
      edit_json(file, [&](Json& json) { json[Json::json_pointer(pointer)] = value; });
    };
  };
  expect_done("kvcalibrate", calibrate_words("faedkv", {"--chunks", "4", "--sinks", "2", "--recent", "3", "--out",
                                                        folder_ / "f.json"}));
  expect_done("kvcalibrate", calibrate_words("eval", {"--method", "lagkv", "--set", "lag=4", "sinks=2", "--save-config",
                                                      folder_ / "l.json"}));
  refuse("kvspectrum", calibrate_words("retain", {"--config", folder_ / "f.json", "--out", folder_ / "out/r.json"}),
         "f.json", set("f.json", "/quality/note", "changed"));
  refuse("kvcalibrate", calibrate_words("eval", {"--config", folder_ / "l.json", "--out", folder_ / "out/e.json"}),
         "l.json", set("l.json", "/parameters/ratio", 0.5));
  write("q.jsonl", R"({"context": "a ray", "question": "what?", "answers": ["ray"]})");
  refuse("kvcalibrate",
         {"eval", "--model", folder_ / "model", "--task", folder_ / "q.jsonl", "--config", folder_ / "l.json",
          "--quiet", "--threads", "1", "--out", folder_ / "out/t.json"},
         "l.json", set("l.json", "/parameters/ratio", 0.5));
  refuse("kvcalibrate",
         calibrate_words(
             "compare", {"--budgets", "50%", "--methods", "streaming", "--types-with-methods", "none", "--timed-tokens",
                         "0", "--config", folder_ / "l.json", "--out", folder_ / "out/c.json"}),
         "l.json", set("l.json", "/parameters/ratio", 0.5));
}

TEST_F(Catalogue, N161_FinishedRunsOfAnotherWordNet) {
  write_small_wordnet(folder_ / "wordnet");
  write_text_of_rays(folder_ / "text.txt", 10);
  const Words words{"perturb",
                    "--model",
                    folder_ / "model",
                    "--text",
                    folder_ / "text.txt",
                    "--wordnet",
                    folder_ / "wordnet",
                    "--share",
                    "0.05",
                    "--window",
                    "128",
                    "--quiet",
                    "--threads",
                    "1",
                    "--out",
                    folder_ / "out/p.json"};
  expect_done("kvspectrum", words);
  expect_done("kvspectrum", joined(words, {"--resume"}));
  write("wordnet/index.adv", "  another licence\n");
  expect_refused("kvspectrum", joined(words, {"--resume"}), 7, {"found a file that exists"});
}

TEST_F(Catalogue, N162_RunsOfAnotherCapture) {
  const auto capture = [&](const Arguments& more) {
    const Outcome outcome =
        run("kvspectrum",
            words_on_texts("capture", folder_ / "model", folder_ / "tokens.jsonl",
                           joined({"--states", "q_pre,k_pre,v", "--out", folder_ / "c.h5", "--force"}, more)));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  };
  const Words spectrum{"spectrum", "--capture", folder_ / "c.h5",  "--gain",
                       "off",      "--out-dir", folder_ / "out/s", "--quiet"},
      elite{"elitekv", "--capture", folder_ / "c.h5", "--elite", "2", "--quiet", "--out", folder_ / "out/e.json"};
  capture({});
  // The last document is damaged, so the sums of the others are kept.
  const std::string whole = slurp(folder_ / "c.h5");
  std::string damaged = whole;
  damaged[damaged.size() - 1] ^= 1;
  write("c.h5", damaged);
  EXPECT_EQ(run("kvspectrum", spectrum).status, 3);
  ASSERT_TRUE(fs::exists(folder_ / "out/s/spectrum.h5.checkpoint.0"));
  capture({"--documents", "1"});
  expect_refused("kvspectrum", joined(spectrum, {"--resume"}), 7, {"capture_sha256"});
  capture({});
  expect_done("kvspectrum", joined(spectrum, {"--resume"}));
  expect_done("kvcalibrate", elite);
  for (const bool checked : {true, false}) {
    capture({"--documents", "1"});
    if (!checked) fs::remove(folder_ / "c.h5.manifest.json");
    expect_refused("kvspectrum", joined(spectrum, {"--resume"}), 7, {"found a file that exists"});
    expect_refused("kvcalibrate", joined(elite, {"--resume"}), 7, {"found a file that exists"});
  }
}

TEST_F(Catalogue, N163_BudgetsTimesAndStoresOfComparisons) {
  const auto refuse = [&](const std::string& option, const std::string& value) {
    expect_refused("kvcalibrate",
                   calibrate_words("compare", {"--methods", "streaming", "--out", folder_ / "out/earlier", "--force",
                                               option, value}),
                   2, {option, "found '" + value + "'"});
  };
  for (const char* value : {" 50%", "+50%", "0x1p-1", "0%", "101%", "nan%", "50%%"}) refuse("--budgets", value);
  for (const char* value : {"infs", "infh", " 5s", "+5s", "0x10s", "0s", "nans", "5", "1e999h"})
    refuse("--time", value);
  for (const char* value : {"q9", "q8_0/", "/q8_0", "q8_0/q4_0/q4_0", "kivi4"}) refuse("--types", value);
  for (const char* value : {"nope", "q8_0/nope"}) refuse("--types-with-methods", value);
}

TEST_F(Catalogue, N164_FoldersWhoseNamesAreTooLong) {
  const std::string name(256, 'n'), message = "found a file name of 256 bytes, expected at most 255";
  for (const std::string& folder : {name, name + "/deeper"})
    expect_refused("kvspectrum",
                   words_on_texts("spectrum", folder_ / "model", folder_ / "tokens.jsonl",
                                  {"--out-dir", (folder_ / "out") / folder}),
                   2, {message});
  expect_refused("kvcalibrate",
                 calibrate_words("compare", {"--methods", "streaming", "--out", folder_ / "out/c.json", "--best-dir",
                                             (folder_ / "out") / name}),
                 2, {message});
  // A name that is read: the system's message, without the library's.
  write("text.txt", std::string(80, 'a'));
  expect_refused("kvspectrum",
                 {"perturb", "--model", folder_ / "model", "--text", folder_ / "text.txt", "--wordnet", folder_ / name,
                  "--out", folder_ / "out/p.json"},
                 6, {"found File name too long, expected a usable path"});
}

TEST_F(Catalogue, N165_AFolderThatCannotBeMade) {
  write("file", "of the user's");
  for (const char* folder : {"file", "file/deeper"})
    expect_refused(
        "kvspectrum",
        words_on_texts("spectrum", folder_ / "no model", folder_ / "tokens.jsonl", {"--out-dir", folder_ / folder}), 6,
        {"file", "cannot be made a folder"});
}

TEST_F(Catalogue, N166_NamesInAReport) {
  expect_done("kvcalibrate", calibrate_words("elitekv", {"--elite", "2", "--out", folder_ / "e.json"}));
  fs::create_directory(folder_ / "r");
  for (const char* name : {"a\u202Egpj.json", "a\xc2\x9b[m.json", "a\xff.json", "a\x1b[2J.json"}) {
    fs::copy_file(folder_ / "e.json", folder_ / "r" / name);
    expect_done("kvspectrum", {"report", folder_ / "r", "--out", folder_ / "out/r.html", "--force"});
    const std::string page = slurp(folder_ / "out/r.html");
    EXPECT_THAT(page, Not(HasSubstr(name)));
    EXPECT_THAT(page, HasSubstr("<th scope=\"row\" class=\"words\">a\\x"));
    fs::remove(folder_ / "r" / name);
  }
}

TEST_F(Catalogue, N167_StateWithoutUse) {
  overflow_last_token(folder_ / "model");
  std::string even, last;
  for (int n = 0; n < 32; ++n) {
    even += (n > 0 ? "," : "") + std::to_string(n * 7 % 60);
    last += n > 0 ? ",63" : "63";
  }
  write("tokens.jsonl", '[' + even + "]\n[" + last + "]\n[" + even + "]\n");
  for (int again = 0; again < 2; ++again) {  // a plain second run has the same result
    expect_refused("kvspectrum",
                   words_on_texts("capture", folder_ / "model", folder_ / "tokens.jsonl",
                                  {"--parts", "1", "--out", folder_ / "out/c.h5"}),
                   5, {"output layer: found NaN or infinity in its logits"});
    expect_refused("kvcalibrate", calibrate_words("transform", {"--budget", "60%", "--out", folder_ / "out/t.json"}), 5,
                   {"output layer: found NaN or infinity in its logits"});
    expect_refused("kvcalibrate",
                   calibrate_words("lagkv", {"--budget", "60%", "--set", "lag=4", "--out", folder_ / "out/l.json"}), 5,
                   {"found NaN or infinity with every setting of the budget"});
  }
}

TEST_F(Catalogue, N168_LinksToCaptures) {
  fs::create_directory(folder_ / "real");
  fs::create_symlink("real/c.h5", folder_ / "link.h5");
  const Outcome outcome = run("kvspectrum", words_on_texts("capture", folder_ / "model", folder_ / "tokens.jsonl",
                                                           {"--states", "q_pre,k_pre", "--out", folder_ / "link.h5"}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(fs::exists(folder_ / "real/c.h5.manifest.json"));
  expect_done("kvspectrum", {"verify", folder_ / "link.h5"});
  fs::copy(folder_ / "real/c.h5.manifest.json", folder_ / "out/e_elite.svg");
  fs::remove(folder_ / "real/c.h5.manifest.json");
  fs::create_hard_link(folder_ / "out/e_elite.svg", folder_ / "real/c.h5.manifest.json");
  expect_refused("kvcalibrate",
                 {"elitekv", "--capture", folder_ / "link.h5", "--elite", "2", "--force", "--quiet", "--out",
                  folder_ / "out/e.json"},
                 2, {"e_elite.svg", "the output is the input"});
}

TEST_F(Catalogue, N169_FactorsThatAreNotFinite) {
  const Words transform = calibrate_words("transform", {"--budget", "60%", "--out", folder_ / "t.json"});
  expect_done("kvcalibrate", transform);
  std::string bytes = slurp(folder_ / "t.safetensors");
  const float nothing = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bytes.data() + bytes.size() - sizeof nothing, &nothing, sizeof nothing);
  write("t.safetensors", bytes);
  edit_json("t.json", [&](Json& json) { json["files"][0]["sha256"] = sha256_of(bytes); });
  expect_refused("kvcalibrate", calibrate_words("eval", {"--config", folder_ / "t.json"}), 5,
                 {"t.safetensors: tensor ", "found nan", "expected finite numbers"});
}

}  // namespace
}  // namespace kvs::testing
