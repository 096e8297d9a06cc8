// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvs::inline options {

using Arguments = std::span<const std::string>;

/// The largest number of tokens that an option takes.
inline constexpr std::int64_t kMaxTokens = 1 << 24;

/// A parsed command line. Every getter checks the whole value and throws Error kUsage naming the option.
class Options {
 public:
  bool has(const std::string& name) const;
  bool flag(const std::string& name) const;
  /// Returns true if the option is on the command line; has() is also true for a default.
  bool given(const std::string& name) const;
  /// Returns true if the command has an option of this name.
  bool takes(const std::string& name) const;
  const std::string& text(const std::string& name) const;
  /// Returns all values of a repeatable option, in order.
  const std::vector<std::string>& list(const std::string& name) const;
  std::int64_t integer(const std::string& name, std::int64_t least, std::int64_t most) const;
  /// Like integer(), for non-negative numbers. The table may have checked their range (OptionTable::from).
  std::size_t count(const std::string& name, std::int64_t least = 0,
                    std::int64_t most = std::numeric_limits<std::int64_t>::max()) const {
    return static_cast<std::size_t>(integer(name, least, most));
  }
  double real(const std::string& name, double least = -std::numeric_limits<double>::infinity(),
              double most = std::numeric_limits<double>::infinity()) const;
  /// Returns a number above 0 and at most 1.
  double share(const std::string& name) const;
  const std::string& choice(const std::string& name, std::span<const std::string_view> allowed) const;
  bool on_off(const std::string& name) const;
  /// Parses "0,14-16" to ascending, distinct indices below `count`; all indices if the option is absent or "all".
  std::vector<std::size_t> indices(const std::string& name, std::size_t count) const;
  /// Parses "75%,0.5" to shares, each above 0 and at most 1.
  std::vector<double> shares(const std::string& name) const;
  /// Parses "a,b" to words, none of them empty and none twice.
  std::vector<std::string> words(const std::string& name) const;
  /// Parses "4,8,16" to integers in [least, most], in the given order.
  std::vector<std::size_t> integers(const std::string& name, std::size_t least, std::size_t most) const;
  /// Parses "A:B"; either bound may be missing.
  std::pair<std::optional<std::int64_t>, std::optional<std::int64_t>> window_range(const std::string& name) const;

  /// Returns the options whose values are files or folders (FILE, DIR or PATH in --help). Positional arguments can also
  /// be paths.
  const std::set<std::string>& paths() const noexcept { return paths_; }
  /// Returns the command line as recorded in outputs: quoted for a shell, without --resume and --force.
  const std::string& command() const noexcept { return command_; }
  /// Returns command() with --resume.
  const std::string& resumed_command() const noexcept { return resumed_command_; }
  /// Returns the options that change results, by name, with defaults. A resumed run must have equal values. Excludes
  /// paths and the options of the run itself (--threads, --resume, --force, --quiet, --json, --no-lock).
  std::map<std::string, std::vector<std::string>> result_options() const;

 private:
  friend class OptionTable;
  std::map<std::string, std::vector<std::string>> values_;
  std::set<std::string> given_, paths_;
  std::string command_, resumed_command_;
  std::map<std::string, std::string> forms_;  // placeholder of each option
};

/// A view of option names. Use it only as a function argument: the names must outlive the view.
class OptionNames : public std::span<const std::string_view> {
 public:
  OptionNames(std::initializer_list<std::string_view> names) : span(names.begin(), names.size()) {}
  OptionNames(std::span<const std::string_view> names) : span(names) {}  // NOLINT(google-explicit-constructor)
  template <std::size_t N>
  OptionNames(const std::array<std::string_view, N>& names) : span(names) {}  // NOLINT(google-explicit-constructor)
};
/// @throws Error kUsage "--NAME: cannot be combined with BESIDE" for the first of `names` on the command line.
void refuse_options(const Options& options, OptionNames names, std::string_view beside);
/// @throws Error kUsage "--NAME: needs --A or --B" for the first of `names` on the command line if none of `partners`
/// is given. The message names the partners that the command takes.
void require_partner(const Options& options, OptionNames names, OptionNames partners);
/// Rejects `--text -` if `reader` reads the text a second time, because standard input can be read only once.
/// @throws Error kUsage
void refuse_standard_input(const Options& options, const std::string& reader);
/// @throws Error kUsage "missing option --NAME FORM".
[[noreturn]] void miss_option(const std::string& name, const std::string& form);

/// An option as its table declares it.
struct OptionEntry {
  std::string group, name;
  std::string placeholder;  // form of the value; empty: a flag
  std::string help;         // ends with the default in brackets
  bool repeats = false;
};

/// What a table says of its command, for completions and manual pages.
struct CommandText {
  std::string usage, summary;
  std::string purpose;  // first sentence of the summary
  std::vector<std::string> examples;
  std::string positional, positional_help;  // empty: the command has options alone
  std::vector<OptionEntry> options;
};

/// The options that a command accepts. Parsing, --help, completions and manual pages use this table.
class OptionTable {
 public:
  /// @param usage  e.g. "kvspectrum capture --model PATH --text PATH --out FILE"
  OptionTable(std::string usage, std::string summary, std::vector<std::string> examples);
  ~OptionTable();
  OptionTable(OptionTable&&) noexcept;

  OptionTable& group(const std::string& title);
  /// Adds an option with one value; an empty `standard` means no default. The placeholder states the value's form,
  /// which parse() checks. Words joined by | are the only values, one capital letter is a whole number, SHARE a number
  /// above 0 and at most 1, SHARES a list of them, A:B a range of windows, LAYERS a list of indices; anything else is
  /// text.
  OptionTable& value(const std::string& name, const std::string& placeholder, const std::string& help,
                     const std::string& standard = "");
  /// Adds an option that may be repeated and takes several values at once.
  OptionTable& list(const std::string& name, const std::string& placeholder, const std::string& help);
  OptionTable& flag(const std::string& name, const std::string& help);
  /// Requires a whole number of at least `least` for the last option, independent of its placeholder.
  OptionTable& whole(double least);
  /// Sets the range of the last option: one number, or a LIST of whole numbers.
  OptionTable& from(double least, double most = std::numeric_limits<double>::infinity());
  /// Accepts the last option also under `name`, its name in version 0.1, and prints a note.
  OptionTable& formerly(const std::string& name);
  /// Makes the last option required.
  OptionTable& required();
  /// Makes `--help` with the last option print only what `describe` returns for the option's value.
  OptionTable& describes(std::function<std::string(const std::string& value)> describe);
  /// Adds a check at the end of parse(). Checks must not read files. When a check throws, the command has no lock or
  /// output.
  OptionTable& check(std::function<void(const Options&)> check);
  /// Adds an argument without a name.
  OptionTable& positional(const std::string& name, const std::string& help, bool required = true);
  /// Adds one or more arguments without names.
  OptionTable& positionals(const std::string& name, const std::string& help);

  /// Returns the first sentence of the summary.
  std::string_view purpose() const;
  CommandText text() const;
  /// Parses a command line. Checks the options and the forms of their values before --help is handled, so that --help
  /// can test a command line. `--help` prints the options of the usage line and of the examples; `--help all` prints
  /// every option, and the lists of a long summary.
  /// @return nullopt if --help was given (the help has been printed to `out`).  @throws Error kUsage.
  std::optional<Options> parse(Arguments arguments, std::ostream& out) const;

 private:
  Options parse_words(const std::vector<std::string>& words) const;
  void print_all_help(std::ostream& out) const;
  void print_short_help(std::ostream& out) const;

  struct State;
  std::unique_ptr<State> state_;
};

/// is_help(): returns true if `word` is --help or -h. asks_for_help(): returns true if a word before "--" is --help or
/// -h.
bool is_help(std::string_view word) noexcept;
bool asks_for_help(Arguments words) noexcept;

/// Quotes `text` as one word for a POSIX shell.
std::string shell_quoted(std::string_view text);

}  // namespace kvs::inline options
