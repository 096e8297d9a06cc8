// SPDX-License-Identifier: Apache-2.0
#include "tasks/question_file.h"

#include <set>

#include "core/error.h"
#include "tasks/haystack.h"
#include "tasks/object_lines.h"

namespace kvs::inline tasks {
namespace {

std::vector<std::string> strings_of(const JsonCursor& list, std::size_t least) {
  std::vector<std::string> strings;
  for (std::size_t n = 0; n < list.array_size(); ++n) {
    strings.emplace_back(stripped(list.at(n).string()));
    if (strings.back().empty()) list.at(n).fail("a text");
  }
  if (strings.size() < least) list.fail(least == 1 ? "at least one" : "at least two");
  return strings;
}

TaskSample question_of(const JsonCursor& line) {
  TaskSample sample{.context = line.at("context").string(), .question = line.at("question").string(), .answers = {}};
  if (!sample.context.empty() && !is_blank(sample.context.back()) &&
      (sample.question.empty() || !is_blank(sample.question.front())))
    sample.question.insert(0, "\n");
  if (stripped(sample.prompt()).empty()) line.at("question").fail("a text");
  const bool has_choices = line.has("choices");
  if (line.has("answers") == has_choices) line.fail("either answers or choices");
  if (!has_choices) {
    sample.answers = strings_of(line.at("answers"), 1);
    return sample;
  }
  sample.choices = strings_of(line.at("choices"), 2);
  if (std::set(sample.choices.begin(), sample.choices.end()).size() < sample.choices.size())
    line.at("choices").fail("choices that differ");
  const auto right = line.at("answer").integer(0, static_cast<std::int64_t>(sample.choices.size()) - 1);
  sample.answers = {sample.choices[static_cast<std::size_t>(right)]};
  return sample;
}

}  // namespace

QuestionFile read_questions(const std::filesystem::path& path) {
  QuestionFile file;
  file.sha256 = read_object_lines(path, [&](const JsonCursor& line) { file.samples.push_back(question_of(line)); });
  if (file.samples.empty()) throw Error(ErrorCode::kData, path.string(), "found no question, expected one a line");
  return file;
}

std::string read_haystack(std::span<const std::string> arguments, TextReader& reader) {
  std::string text;
  for (const std::string& argument : arguments) {
    const std::size_t before = text.size();
    reader.read(argument, [&](const std::string&, const std::string& read) {
      if (!text.empty()) text += '\n';
      text += read;
      return true;
    });
    if (stripped(std::string_view(text).substr(before)).empty())
      throw Error(ErrorCode::kInput, argument, "found no word, expected a text");
  }
  return std::string(stripped(text));
}

}  // namespace kvs::inline tasks
