// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "core/error.h"
#include "options/shell_files.h"
#include "options/words.h"

namespace kvs::inline options {
namespace {

/// Returns `text` for troff: no letter of it is a control character.
std::string plain(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '\\')
      out += "\\e";
    else if (letter == '-')
      out += "\\-";
    else
      out += letter;
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

/// Returns the lines of `text`, the second and later ones with a line break before them.
std::string paragraph(std::string_view text) {
  std::string out;
  for (const std::string_view line : split(text, '\n'))
    if (!line.empty()) out += (out.empty() ? "" : ".br\n") + plain(line) + "\n";
  return out;
}

std::string option_text(const OptionEntry& option) {
  std::string out = ".TP\n.B " + plain("--" + option.name);
  if (!option.placeholder.empty()) out += " \\fI" + plain(option.placeholder) + "\\fR";
  return out + "\n" + paragraph(option.help);
}

std::string command_text(const std::string& program, const std::string& name, const CommandText& text) {
  std::string out = ".SH " + plain(program + " " + name) + "\n" + paragraph(text.summary) + ".PP\n.B Usage:\n" +
                    plain(text.usage) + "\n";
  if (!text.positional.empty()) out += ".TP\n.I " + plain(text.positional) + "\n" + paragraph(text.positional_help);
  std::string group = "Options";
  for (const OptionEntry& option : text.options) {
    if (option.group != group) out += ".SS " + plain(option.group) + "\n";
    group = option.group;
    out += option_text(option);
  }
  out += ".SS Examples\n.nf\n";
  for (const std::string& example : text.examples) out += plain(example) + "\n";
  return out + ".fi\n";
}

constexpr std::pair<int, const char*> kStatuses[] = {
    {0, "success"},
    {static_cast<int>(ErrorCode::kUsage), "an unusable command line or option value"},
    {static_cast<int>(ErrorCode::kInput), "an input file is missing, unreadable or malformed"},
    {static_cast<int>(ErrorCode::kUnsupported), "valid input that this version does not support"},
    {static_cast<int>(ErrorCode::kData), "numerically impossible data, or too little data"},
    {static_cast<int>(ErrorCode::kEnvironment), "input/output or environment, such as a full disk"},
    {static_cast<int>(ErrorCode::kConflict), "the output exists or is locked, or belongs to another run"},
    {static_cast<int>(ErrorCode::kInternal), "a bug in the program"}};

}  // namespace

std::string manual_page(const ProgramText& program) {
  std::string title = program.name;
  std::ranges::transform(title, title.begin(), [](unsigned char letter) { return std::toupper(letter); });
  std::string page = ".TH " + title + " 1 \"\" \"" + program.name + " " + program.version + "\"\n.SH NAME\n" +
                     program.name + " \\- " + plain(program.purpose) + "\n.SH SYNOPSIS\n.B " + program.name +
                     "\n\\fICOMMAND\\fR [options]\n";
  for (const auto& [name, text] : program.commands) page += command_text(program.name, name, text);
  page += ".SH EXIT STATUS\n";
  for (const auto& [status, meaning] : kStatuses)
    page += ".TP\n.B " + std::to_string(status) + "\n" + std::string(meaning) + "\n";
  return page;
}

}  // namespace kvs::inline options
