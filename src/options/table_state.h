// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/program_options.hpp>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "options/options.h"

namespace kvs::inline options {
namespace po = boost::program_options;

inline constexpr unsigned kHelpWidth = 110;  // columns of --help

/// What an OptionTable holds.
struct OptionTable::State {
  std::string usage, summary;
  std::vector<std::string> examples;
  struct Group {
    std::string title;
    std::unique_ptr<po::options_description> options;
  };
  std::vector<Group> groups;
  po::positional_options_description positional;
  po::options_description hidden;
  std::map<std::string, std::string> standards;
  std::string positional_name, positional_help;
  bool positional_required = true;
  std::string described;  // option whose values have their own help
  std::function<std::string(const std::string& value)> describe;
  std::string last;                              // option that from() and required() modify
  std::map<std::string, std::string> old_names;  // old name -> current name
  std::map<std::string, std::pair<double, double>> ranges;
  std::set<std::string> wholes;
  std::vector<std::string> required;
  std::vector<std::function<void(const Options&)>> checks;

  /// Prints a summary, the usage line and the positional argument.
  void print_head(std::ostream& out, std::string_view shown_summary) const;
  void print_examples(std::ostream& out) const;
  /// Replaces an option's old name with its current name.
  void rename(std::string& word) const;
  /// Checks the value of a given option against its placeholder and its range.
  void check_value(const Options& options, const std::string& name) const;
};

}  // namespace kvs::inline options
