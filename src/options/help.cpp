// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <ostream>

#include "options/options.h"
#include "options/table_state.h"

namespace kvs::inline options {
namespace {

constexpr std::ptrdiff_t kMaxSummaryLines = 32;  // of the short help

/// Returns true if `text` has the option --NAME.
bool names_option(std::string_view text, const std::string& name) {
  const std::string word = "--" + name;
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool longer = end < text.size() && (text[end] == '-' || std::isalnum(static_cast<unsigned char>(text[end])));
    if (!longer) return true;
  }
  return false;
}

}  // namespace

std::string_view OptionTable::purpose() const {
  const std::string_view text = state_->summary;
  return text.substr(0, std::min({text.find(". "), text.find(".\n"), text.size() - 1}));
}

CommandText OptionTable::text() const {
  CommandText text{.usage = state_->usage,
                   .summary = state_->summary,
                   .purpose = std::string(purpose()),
                   .examples = state_->examples,
                   .positional = state_->positional_name,
                   .positional_help = state_->positional_help,
                   .options = {}};
  for (const auto& [title, group] : state_->groups)
    for (const auto& option : group->options()) {
      const auto& semantic = *option->semantic();
      text.options.push_back({.group = title,
                              .name = option->long_name(),
                              .placeholder = semantic.max_tokens() == 0 ? "" : semantic.name(),
                              .help = option->description(),
                              .repeats = semantic.max_tokens() > 1});
    }
  return text;
}

void OptionTable::print_all_help(std::ostream& out) const {
  state_->print_head(out, state_->summary);
  for (const auto& [title, group] : state_->groups)
    if (!group->options().empty()) out << *group << '\n';
  state_->print_examples(out);
}

void OptionTable::print_short_help(std::ostream& out) const {
  const std::string& summary = state_->summary;
  std::string shown = state_->usage;
  for (const std::string& example : state_->examples) shown += '\n' + example;
  po::options_description chosen("Options", kHelpWidth);
  std::size_t count = 0;
  for (const auto& [title, group] : state_->groups)
    for (const auto& option : group->options()) {
      ++count;
      if (names_option(shown, option->long_name())) chosen.add(option);
    }
  if (chosen.options().size() == count) return print_all_help(out);
  const bool long_summary = std::ranges::count(summary, '\n') > kMaxSummaryLines;
  state_->print_head(out, long_summary ? summary.substr(0, summary.find('\n')) : summary);
  out << chosen << "\n`--help all` lists all " << count << " options.\n\n";
  state_->print_examples(out);
}

void OptionTable::State::print_head(std::ostream& out, std::string_view shown_summary) const {
  out << shown_summary << "\n\nUsage: " << usage << "\n\n";
  if (!positional_name.empty()) out << "  " << positional_name << "  " << positional_help << "\n\n";
}

void OptionTable::State::print_examples(std::ostream& out) const {
  out << "Examples:\n";
  for (const std::string& example : examples) out << "  " << example << '\n';
}

}  // namespace kvs::inline options
