// SPDX-License-Identifier: Apache-2.0
#include "tasks/ruler_niah.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "tasks/fitting.h"
#include "tasks/haystack.h"
#include "tasks/python_random.h"
#include "tasks/words.h"

namespace kvs::inline tasks {
namespace {

enum class Hay : std::uint8_t { kNoise, kEssay, kNeedles };
enum class Kind : std::uint8_t { kNumbers, kWords, kUuids };
constexpr std::array<std::string_view, 3> kKindNames{"numbers", "words", "uuids"};

/// The differences between the eight tasks.
struct NeedleShape {
  Hay hay;
  Kind keys, values;
  std::size_t key_count = 1, values_per_key = 1, asked = 1;

  std::string kind() const { return std::string(kKindNames[static_cast<std::size_t>(values)]); }
};

constexpr std::size_t kNiahRoom = 128;

/// Hides needles in a haystack, drawn from a seed like RULER's niah.py. parts_of() splits essays into sentences, and
/// words come from words.h.
/// Source: NVIDIA/RULER, scripts/data/synthetic/niah.py and constants.py (Apache-2.0): prompts and draws.
class NeedleMaker {
 public:
  NeedleMaker(const NeedleShape& shape, const TaskRequest& request)
      : shape_(shape), random_(request.seed), seed_(request.seed), essay_(request.haystack) {}

  TaskSample make(std::size_t size) {
    std::vector<std::string> keys, needles;
    std::vector<std::vector<std::string>> values;
    for (std::size_t key = 0; key < std::max(shape_.key_count, shape_.asked); ++key) {
      keys.push_back(draw(shape_.keys));
      values.emplace_back();
      for (std::size_t n = 0; n < shape_.values_per_key; ++n) {
        values.back().push_back(draw(shape_.values));
        needles.push_back(magic_needle(shape_.kind(), keys.back(), values.back().back()));
      }
    }
    PythonRandom(seed_).shuffle(needles);
    const std::string hay = shape_.hay == Hay::kEssay ? in_essay(size, needles) : in_lines(size, needles);
    std::vector<std::string> asked, answers;
    for (const std::size_t key : random_.sample(keys.size(), shape_.asked)) {
      asked.push_back(keys[key]);
      answers.insert(answers.end(), values[key].begin(), values[key].end());
    }
    return magic_question(hay, shape_.kind(), asked, std::move(answers));
  }

 private:
  std::string draw(Kind kind) {
    if (kind == Kind::kNumbers) return std::to_string(random_.between(1000000, 9999999));
    return kind == Kind::kWords ? random_.choice(compound_words()) : random_.uuid();
  }

  /// Returns `size` units of the essay, with needles between its sentences at some of 40 depths.
  std::string in_essay(std::size_t size, const std::vector<std::string>& needles) {
    constexpr std::size_t kDepths = 40;
    const std::string text = essay_.first(size);
    const std::vector<std::string_view> sentences = parts_of(text);
    std::vector<std::size_t> places;
    for (const std::size_t depth : random_.sample(kDepths, needles.size())) {
      const double percent = std::nearbyint(static_cast<double>(depth) * (100.0 / (kDepths - 1)));
      places.push_back(static_cast<std::size_t>(static_cast<double>(sentences.size()) * (percent / 100)));
    }
    std::ranges::sort(places);
    places.push_back(sentences.size());
    std::vector<std::string> parts;
    std::size_t next = 0;
    for (std::size_t n = 0; n < places.size(); ++n) {
      parts.emplace_back(whole_of(std::span(sentences).subspan(next, places[n] - next)));
      if (n < needles.size()) parts.push_back(needles[n]);
      next = places[n];
    }
    return joined(parts, " ");
  }

  /// Returns `size` lines of noise or of other needles, and the needles.
  std::string in_lines(std::size_t size, const std::vector<std::string>& needles) {
    std::vector<std::string> lines;
    for (std::size_t n = 0; n < size; ++n) {
      if (shape_.hay == Hay::kNoise) {
        lines.emplace_back(kNoise);
        continue;
      }
      const std::string key = draw(shape_.keys);
      lines.push_back(magic_needle(shape_.kind(), key, draw(shape_.values)));
    }
    std::vector<std::size_t> places = random_.sample(size, needles.size());
    std::ranges::sort(places, std::greater());
    for (std::size_t n = 0; n < needles.size(); ++n)
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(places[n]), needles[n]);
    return joined(lines, "\n");
  }

  NeedleShape shape_;
  PythonRandom random_;
  std::uint64_t seed_;
  UnitSupply essay_;
};

constexpr std::array kShapes{
    NeedleShape{Hay::kNoise, Kind::kWords, Kind::kNumbers},
    NeedleShape{Hay::kEssay, Kind::kWords, Kind::kNumbers},
    NeedleShape{Hay::kEssay, Kind::kWords, Kind::kUuids},
    NeedleShape{Hay::kEssay, Kind::kWords, Kind::kNumbers, 4},
    NeedleShape{Hay::kNeedles, Kind::kWords, Kind::kNumbers},
    NeedleShape{Hay::kNeedles, Kind::kUuids, Kind::kUuids},
    NeedleShape{Hay::kEssay, Kind::kWords, Kind::kNumbers, 1, 4},
    NeedleShape{Hay::kEssay, Kind::kWords, Kind::kNumbers, 1, 1, 4},
};

template <std::size_t kShape>
std::vector<TaskSample> make_needles(const TaskRequest& request) {
  constexpr std::size_t kShort = 4096;  // shorter texts of lines are fitted line by line
  const NeedleShape& shape = kShapes[kShape];
  NeedleMaker maker(shape, request);
  constexpr std::size_t kWords = 500, kCharacters = 20;
  const std::size_t words = UnitSupply(request.haystack).is_cut() ? kCharacters : kWords;
  const std::size_t step = shape.hay == Hay::kEssay ? words : request.length < kShort ? 5 : 25;
  const auto make = [&](std::size_t size) { return maker.make(size); };
  return fitted_samples(request, {.step = step,
                                  .probe = shape.hay == Hay::kEssay ? kWords : step,
                                  .most = [](double units) { return static_cast<std::size_t>(units * 3); },
                                  .answer_room = kNiahRoom,
                                  .make = make,
                                  .finish = make,
                                  .any_size = shape.hay == Hay::kEssay});
}

template <std::size_t kShape>
constexpr TaskDefinition definition(std::string_view name, std::string_view summary) {
  return {name, summary, kNiahRoom, kShapes[kShape].hay == Hay::kEssay, false, make_needles<kShape>};
}

constexpr std::array kTasks{
    definition<0>("ruler-niah-single-1", "a number in noise"),
    definition<1>("ruler-niah-single-2", "a number in a text"),
    definition<2>("ruler-niah-single-3", "a UUID in a text"),
    definition<3>("ruler-niah-multikey-1", "one of four keys in a text"),
    definition<4>("ruler-niah-multikey-2", "one of many keys, nothing between them"),
    definition<5>("ruler-niah-multikey-3", "one of many UUIDs, nothing between them"),
    definition<6>("ruler-niah-multivalue", "four numbers of a key in a text"),
    definition<7>("ruler-niah-multiquery", "the numbers of four keys in a text"),
};

}  // namespace

const std::span<const TaskDefinition> kRulerNeedleTasks = kTasks;

std::string magic_needle(std::string_view kind, std::string_view key, std::string_view value) {
  std::string text = "One of the special magic ";
  return text.append(kind).append(" for ").append(key).append(" is: ").append(value).append(".");
}

TaskSample magic_question(const std::string& haystack, const std::string& kind, std::span<const std::string> keys,
                          std::vector<std::string> values) {
  const bool one = values.size() == 1;
  const std::string what = one ? kind.substr(0, kind.size() - 1) : kind, is = one ? "is" : "are";
  std::string asked = keys.front();
  for (std::size_t n = 1; n < keys.size(); ++n) asked += (n + 1 == keys.size() ? ", and " : ", ") + keys[n];
  const std::string of_them = "special magic " + what + " for " + asked + " mentioned in the provided text";
  return {.context = (one ? "A" : "Some") + (" special magic " + what) + " " + is +
                     " hidden within the following text. Make sure to memorize it. I will quiz you about the " + what +
                     " afterwards.\n" + haystack,
          .question = "\nWhat " + (one ? is : "are all") + " the " + of_them + "? The " + of_them + " " + is,
          .answers = std::move(values)};
}

}  // namespace kvs::inline tasks
