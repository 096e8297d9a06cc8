// SPDX-License-Identifier: Apache-2.0
// All readers of a config say the same of the same file: `validate`, what `eval` loads, the library for engines and the
// Python package, on valid configs of every method with one thing changed.
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>

#include "calibrate/cache_options.h"
#include "calibrate/config/config.h"
#include "calibrate/registry.h"
#include "core/error.h"
#include "kvspectrum/config.h"
#include "tests/cli/calibrate_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::StartsWith;

/// Number for each base; the long label asks for more.
std::size_t mutants_of_a_base() {
  const char* const given = std::getenv("KVS_CONFIG_MUTANTS");
  return given == nullptr ? 150 : static_cast<std::size_t>(std::stoul(given));
}

/// How a reader took a config.
struct Verdict {
  bool valid = true;
  std::string words = {};
};

class Mutator {
 public:
  explicit Mutator(std::uint32_t seed) : random_(seed) {}

  /// The text of `config` with one member or entry changed.
  std::string mutated(Json config) {
    std::vector<Json::json_pointer> places;
    list_places(config, Json::json_pointer(), places);
    const Json::json_pointer place = pick(places);
    const std::size_t kind = below(kValues.size() + 5);
    Json& value = config.at(place);
    if (kind < kValues.size())
      value = Json::parse(kValues[kind]);
    else if (kind == kValues.size())
      return replaced(config, place);
    else if (kind == kValues.size() + 1)
      value = config.at(pick(places));
    else if (kind == kValues.size() + 2)
      erase(config, place);
    else
      change(value, kind == kValues.size() + 3);
    return dump_json(config);
  }

 private:
  /// What stands where something else should.
  static constexpr std::array kValues{
      "null",   "true",   "\"text\"",   "\"\"",      "\"none\"",    "\"../f\"",           "0",
      "-1",     "1",      "1.5",        "2.0",       "65536",       "1099511627776",      "18446744073709551615",
      "1e300",  "[]",     "{}",         "\"q8_0\"",  "\"quarot4\"", "[\"f16\", \"fp8\"]", "[0]",
      "[1, 1]", "[3, 1]", "[[0], [1]]", "[0.5, 0.5]"};

  std::size_t below(std::size_t count) { return random_() % count; }
  template <class T>
  const T& pick(const std::vector<T>& list) {
    return list[below(list.size())];
  }

  /// Only the first entries and the last of a list: the others are like them.
  void list_places(const Json& value, const Json::json_pointer& place, std::vector<Json::json_pointer>& places) {
    if (value.is_object())
      for (const auto& [name, member] : value.items()) {
        places.push_back(place / name);
        list_places(member, place / name, places);
      }
    if (!value.is_array()) return;
    for (std::size_t n = 0; n < value.size(); ++n) {
      if (n > 1 && n + 1 < value.size()) continue;
      places.push_back(place / n);
      list_places(value[n], place / n, places);
    }
  }

  /// Text that no Json holds in the place of a value.
  std::string replaced(Json& config, const Json::json_pointer& place) {
    static const std::vector<std::string> kTexts{"NaN",          "Infinity", "1e999", "\"\\ud800\"",
                                                 "\"a\\u0000\"", "01",       "-0",    "1e-400"};
    config.at(place) = "mutated here";
    std::string text = dump_json(config);
    const std::string mark = "\"mutated here\"";
    return text.replace(text.find(mark), mark.size(), pick(kTexts));
  }

  static void erase(Json& config, const Json::json_pointer& place) {
    Json& parent = config.at(place.parent_pointer());
    if (parent.is_object())
      parent.erase(place.back());
    else
      parent.erase(std::stoul(place.back()));
  }

  void change(Json& value, bool longer) {
    if (value.is_array() && !value.empty() && longer)
      value.push_back(value[below(value.size())]);
    else if (value.is_array())
      std::reverse(value.begin(), value.end());
    else if (value.is_object())
      value["extra"] = 1;
    else if (value.is_number_integer())
      value = value.get<std::int64_t>() + (longer ? 1 : -1);
    else
      value = Json::array({value, value});
  }

  std::mt19937 random_;
};

class ConfigReaders : public CalibratePrograms {
 protected:
  void SetUp() override { source_ = ModelSource::open(folder_ / "model"); }

  /// A config of every method and form, by `kvcalibrate`.
  std::vector<std::string> bases() const {
    std::vector<std::string> names;
    const auto make = [&](const std::string& name, std::vector<std::string> words) {
      words.insert(words.end(), {words.front() == "eval" ? "--save-config" : "--out", folder_ / name});
      const Outcome made = run("kvcalibrate", with_text(words.front(), {words.begin() + 1, words.end()}));
      EXPECT_EQ(made.status, 0) << name << ": " << made.err;
      names.push_back(name);
    };
    const std::vector<std::string> ablation{"faedkv", "--chunks", "4", "--sinks", "2", "--recent", "3"};
    make("faedkv.json", ablation);
    make("race.json", [&] {
      auto race = ablation;
      race.insert(race.end(), {"--layers", "1,3", "--passes", "40"});
      return race;
    }());
    make("elite.json", {"elitekv", "--elite", "2"});
    make("joint.json", {"elitekv", "--elite", "2", "--rank", "10", "--outputs", "fitted"});
    make("separate.json", {"elitekv", "--elite", "2", "--rank", "10", "--factorization", "separate"});
    make("layer.json", {"transform", "--budget", "60%", "--sinks", "1", "--recent", "2"});
    make("head.json", {"transform", "--budget", "60%", "--rows", "head", "--sinks", "1", "--recent", "2"});
    make("group.json", {"transform", "--budget", "60%", "--layers-per-group", "2", "--predict", "embedding", "--sinks",
                        "1", "--recent", "2"});
    make("storage.json", {"transform", "--budget", "60%", "--layers-per-group", "2", "--form", "storage", "--sinks",
                          "1", "--recent", "2"});
    make("triattention.json", {"triattention", "--set", "cache_size=16,20,24,28", "interval=4", "recent=2"});
    make("oscar.json", {"oscar", "--recent", "4", "--group", "4"});
    const std::map<std::string, std::vector<std::string>> settings{
        {"full", {"type=f16", "type_skip_layers=0", "layers=0,2"}},
        {"streaming", {"cache_size=16,8,12,16"}},
        {"dropping", {"cache_size=16", "gamma=0.5,0.25,0.5,0.75"}},
        {"freqkv", {"cache_size=16", "recent=2"}},
        {"faedkv", {"chunks=3", "kept=0/1/0,2/1", "sinks=1", "recent=2", "prefix=20"}},
        {"lagkv", {"lag=4", "ratio=0.5"}},
        {"h2o", {"cache_size=16", "recent=8"}},
        {"tova", {"cache_size=16"}},
        {"snapkv", {"cache_size=12", "window=8", "prefix=20"}},
        {"l2norm", {"prefix=20"}},
        {"kivi", {"group=8", "residual=16"}},
        {"gqa", {"heads=1", "type=fp8", "scale_k=0.5"}}};
    for (const Method* const method : all_methods()) {
      if (method->only_with_config()) continue;
      const std::string name(method->name);
      std::vector<std::string> words{"eval", "--method", name, "--set"};
      words.insert(words.end(), settings.at(name).begin(), settings.at(name).end());
      make("method_" + name + ".json", words);
    }
    return names;
  }

  /// @param read  throws kvs::Error or kvspectrum::Error and nothing else
  template <class Reader>
  static Verdict verdict_of(const Reader& read) {
    try {
      read();
      return {};
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::kInternal) << error.what();
      return {error.code() == ErrorCode::kConflict, error.what()};  // for another model, which validate does not know
    } catch (const kvspectrum::Error& error) {
      return {false, error.what()};
    }
  }

  /// The Python package's, of all files in one process.
  std::vector<Verdict> in_python(const std::vector<std::string>& paths) const {
    std::ofstream list(folder_ / "list.txt");
    for (const std::string& path : paths) list << path << '\n';
    list.close();
    const Outcome outcome =
        run("/bin/sh", {"-c", "python3 " KVS_DATA_DIR "/../tests/cli/read_configs.py < \"$0\"", folder_ / "list.txt"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    std::vector<Verdict> verdicts;
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_THAT(line, ::testing::Not(StartsWith("raised"))) << paths[verdicts.size()];
      EXPECT_EQ(line.find("\\n"), std::string::npos) << line;
      verdicts.push_back({line == "valid", line});
    }
    return verdicts;
  }

  /// Whether `eval` itself ends as its reader says. Beyond it eval may find a text too short or a method that it cannot
  /// run.
  void expect_eval(const std::string& path, bool valid) const {
    const int status = run("kvcalibrate", with_text("eval", {"--config", path})).status;
    if (valid)
      EXPECT_THAT(status, ::testing::AnyOf(0, 4, 5, 7)) << path;
    else
      EXPECT_THAT(status, ::testing::AnyOf(3, 4, 5)) << path;
  }

  std::unique_ptr<ModelSource> source_;
};

TEST_F(ConfigReaders, AgreeOnConfigsWithOneThingChanged) {
  constexpr std::size_t kEvaluated = 40;  // every so many
  std::vector<std::string> paths = {}, texts = {};
  std::uint32_t seed = 0;
  for (const std::string& base : bases()) {
    const Json config = this->config(base);
    Mutator mutator(++seed);
    paths.push_back(folder_ / base);
    texts.push_back(slurp(folder_ / base));
    for (std::size_t n = 0; n < mutants_of_a_base(); ++n) {
      texts.push_back(mutator.mutated(config));
      paths.push_back(folder_ / (base + "." + std::to_string(n)));
      std::ofstream(paths.back()) << texts.back();
    }
  }
  const std::vector<Verdict> python = in_python(paths);
  ASSERT_EQ(python.size(), paths.size());
  std::size_t valid = 0;
  for (std::size_t n = 0; n < paths.size(); ++n) {
    const Verdict validated = verdict_of([&] { (void)read_config(paths[n]); }),
                  library = verdict_of([&] { (void)kvspectrum::Config::read(paths[n]); }),
                  loaded = verdict_of([&] { (void)cache_of_config(paths[n], *source_); });
    const bool all =
        validated.valid == python[n].valid && validated.valid == library.valid && (validated.valid == loaded.valid);
    EXPECT_TRUE(all) << paths[n] << "\nvalidate: " << validated.words << "\nC++: " << library.words
                     << "\neval: " << loaded.words << "\nPython: " << python[n].words;
    if (!all && std::getenv("KVS_SHOW") != nullptr) std::ofstream("/tmp/mutant" + std::to_string(n)) << texts[n];
    if (n % kEvaluated == 0) expect_eval(paths[n], validated.valid);
    valid += validated.valid ? 1 : 0;
  }
  EXPECT_GT(valid, paths.size() / 20);  // some changes leave a config valid
  EXPECT_LT(valid, paths.size() / 2);
}

}  // namespace
}  // namespace kvs::testing
