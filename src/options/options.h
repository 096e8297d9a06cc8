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

namespace kvs {

using Arguments = std::span<const std::string>;

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
  /// All values of a repeatable option, in order.
  const std::vector<std::string>& list(const std::string& name) const;
  std::int64_t integer(const std::string& name, std::int64_t least, std::int64_t most) const;
  /// The same, of numbers that are not below 0.
  std::size_t count(const std::string& name, std::int64_t least, std::int64_t most) const {
    return static_cast<std::size_t>(integer(name, least, most));
  }
  double real(const std::string& name, double least, double most) const;
  /// A number above 0 and at most 1.
  double share(const std::string& name) const;
  const std::string& choice(const std::string& name, std::span<const std::string_view> allowed) const;
  bool on_off(const std::string& name) const;
  /// Parses "0,14-16" to ascending, distinct indices below `count`; all indices if the option is absent or "all".
  std::vector<std::size_t> indices(const std::string& name, std::size_t count) const;
  /// Parses "a,b" to words, none of them empty.
  std::vector<std::string> words(const std::string& name) const;
  /// Parses "4,8,16" to integers in [least, most], in the given order.
  std::vector<std::size_t> integers(const std::string& name, std::size_t least, std::size_t most) const;
  /// Parses "A:B"; either bound may be missing.
  std::pair<std::optional<std::int64_t>, std::optional<std::int64_t>> window_range(const std::string& name) const;

  /// Options whose values are files or folders (FILE, DIR or PATH in --help). A word without an option may be one, too.
  const std::set<std::string>& paths() const noexcept { return paths_; }
  /// The command line as recorded in outputs: quoted for a shell, without --resume and --force.
  const std::string& command() const noexcept { return command_; }
  /// command() with --resume.
  const std::string& resumed_command() const noexcept { return resumed_command_; }
  /// Returns the options that change results, by name, with defaults: a resumed run must have the same. Not included:
  /// options of the run itself (--threads, --resume, --force, --quiet, --json, --no-lock) and paths.
  std::map<std::string, std::vector<std::string>> result_options() const;

 private:
  friend class OptionTable;
  std::map<std::string, std::vector<std::string>> values_;
  std::set<std::string> given_, paths_;
  std::string command_, resumed_command_;
  std::map<std::string, std::string> forms_;  // placeholder of each option
};

/// Names of options, for the length of a call.
class OptionNames : public std::span<const std::string_view> {
 public:
  OptionNames(std::initializer_list<std::string_view> names) : span(names.begin(), names.size()) {}
  OptionNames(std::span<const std::string_view> names) : span(names) {}  // NOLINT(google-explicit-constructor)
  template <std::size_t N>
  OptionNames(const std::array<std::string_view, N>& names) : span(names) {}  // NOLINT(google-explicit-constructor)
};
/// @throws Error kUsage "--NAME: cannot be combined with BESIDE" for the first of `names` that stands on the command
/// line.
void refuse_options(const Options& options, OptionNames names, std::string_view beside);
/// @throws Error kUsage "--NAME: needs --A or --B" for the first of `names` that stands on the command line if none of
/// `partners` is there.
void require_partner(const Options& options, OptionNames names, OptionNames partners);
/// Refuses `--text -`, which can be read once, where `reader` reads the text a second time. @throws Error kUsage
void refuse_standard_input(const Options& options, const std::string& reader);
/// @throws Error kUsage "missing option --NAME FORM".
[[noreturn]] void miss_option(const std::string& name, const std::string& form);

/// The options that a command accepts. Parsing and --help use this table.
class OptionTable {
 public:
  /// @param usage  e.g. "kvspectrum capture --model PATH --text PATH --out FILE"
  OptionTable(std::string usage, std::string summary, std::vector<std::string> examples);
  ~OptionTable();
  OptionTable(OptionTable&&) noexcept;

  OptionTable& group(const std::string& title);
  /// Adds an option with one value; an empty `standard` means no default. The placeholder states the value's form,
  /// which parse() checks: words joined by | are the only values, one capital letter is a whole number, SHARE a number
  /// above 0 and at most 1, A:B a range of windows, LAYERS a list of indices; anything else is text.
  OptionTable& value(const std::string& name, const std::string& placeholder, const std::string& help,
                     const std::string& standard = "");
  /// Adds an option that may be repeated and takes several values at once.
  OptionTable& list(const std::string& name, const std::string& placeholder, const std::string& help);
  OptionTable& flag(const std::string& name, const std::string& help);
  /// Requires a whole number of at least `least` for the last option, independent of its placeholder.
  OptionTable& whole(double least);
  /// Sets the range of the last option: one number, or a LIST of whole numbers.
  OptionTable& from(double least, double most = std::numeric_limits<double>::infinity());
  /// Reads the last option under `name`, its name in version 0.1, too, with a note.
  OptionTable& formerly(const std::string& name);
  /// Makes the last option required.
  OptionTable& required();
  /// Makes `--help` with the last option print only what `describe` returns for the option's value.
  OptionTable& describes(std::function<std::string(const std::string& value)> describe);
  /// Adds a check at the end of parse(). Checks read no files, so a command has no lock or output when one throws.
  OptionTable& check(std::function<void(const Options&)> check);
  /// Adds a required argument without a name.
  OptionTable& positional(const std::string& name, const std::string& help);
  /// Like positional(), for one or more arguments.
  OptionTable& positionals(const std::string& name, const std::string& help);

  /// Checks options and the forms of their values before it answers --help, so that --help can test a command line.
  /// @return nullopt if --help was given (the help has been printed to `out`).  @throws Error kUsage.
  std::optional<Options> parse(Arguments arguments, std::ostream& out) const;

 private:
  Options parse_words(const std::vector<std::string>& words) const;
  void print_help(std::ostream& out) const;

  struct State;
  std::unique_ptr<State> state_;
};

/// is_help(): `word` is --help or -h. asks_for_help(): one of `words` before "--" is.
bool is_help(std::string_view word) noexcept;
bool asks_for_help(Arguments words) noexcept;

/// Quotes `text` as one word for a POSIX shell.
std::string shell_quoted(std::string_view text);

}  // namespace kvs
