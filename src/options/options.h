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

/// A command line after parsing: every getter checks the whole value and throws Error kUsage naming the option.
class Options {
 public:
  bool has(const std::string& name) const;
  bool flag(const std::string& name) const;
  /// True if it stood on the command line: has() is true for a default, too.
  bool given(const std::string& name) const;
  /// Whether the command has an option of this name.
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
  /// "0,14-16": ascending, distinct, below `count`; all of them if the option is absent or "all".
  std::vector<std::size_t> indices(const std::string& name, std::size_t count) const;
  /// "a,b": the words between commas, none of them empty.
  std::vector<std::string> words(const std::string& name) const;
  /// "4,8,16": integers in [least, most], in the order given.
  std::vector<std::size_t> integers(const std::string& name, std::size_t least, std::size_t most) const;
  /// "A:B", either of which may be missing.
  std::pair<std::optional<std::int64_t>, std::optional<std::int64_t>> window_range(const std::string& name) const;

  /// The options whose values are files or folders: FILE, DIR or PATH in --help; so a word without an option.
  const std::set<std::string>& paths() const noexcept { return paths_; }
  /// The command line, quoted for a shell, as it is recorded in outputs: without --resume and --force.
  const std::string& command() const noexcept { return command_; }
  /// The same with --resume.
  const std::string& resumed_command() const noexcept { return resumed_command_; }
  /// The options that change results, by name (defaults filled in): what a resumed run must share with the one before.
  /// Left out: how a run behaves (--threads, --resume, --force, --quiet, --json, --no-lock) and where files lie.
  std::map<std::string, std::vector<std::string>> result_options() const;

 private:
  friend class OptionTable;
  std::map<std::string, std::vector<std::string>> values_;
  std::set<std::string> given_, paths_;
  std::string command_, resumed_command_;
  std::map<std::string, std::string> forms_;  // of all options: the placeholder
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

/// What a command accepts, from which both parsing and --help follow.
class OptionTable {
 public:
  /// @param usage  e.g. "kvspectrum capture --model PATH --text PATH --out FILE"
  OptionTable(std::string usage, std::string summary, std::vector<std::string> examples);
  ~OptionTable();
  OptionTable(OptionTable&&) noexcept;

  OptionTable& group(const std::string& title);
  /// A single-valued option; an empty `standard` means that it has no default. The placeholder says the value's form,
  /// and parse() checks it: words joined by | are the only values, one capital letter is a whole number, SHARE a number
  /// above 0 and at most 1, A:B a range of windows, LAYERS a list of indices; the rest is text.
  OptionTable& value(const std::string& name, const std::string& placeholder, const std::string& help,
                     const std::string& standard = "");
  /// An option that may repeat and take several values at once.
  OptionTable& list(const std::string& name, const std::string& placeholder, const std::string& help);
  OptionTable& flag(const std::string& name, const std::string& help);
  /// The last option takes a whole number of at least so much, whatever its placeholder.
  OptionTable& whole(double least);
  /// The numbers that the last option takes: one, or a LIST of whole numbers.
  OptionTable& from(double least, double most = std::numeric_limits<double>::infinity());
  /// The last option's name in version 0.1, which is still read, with a note.
  OptionTable& formerly(const std::string& name);
  /// The last option must be given.
  OptionTable& required();
  /// `--help` beside the last option prints what `describe` says of its value, and nothing else.
  OptionTable& describes(std::function<std::string(const std::string& value)> describe);
  /// What parse() checks last. A check reads no file, so that a command has no lock or output when it throws.
  OptionTable& check(std::function<void(const Options&)> check);
  /// A required argument without a name.
  OptionTable& positional(const std::string& name, const std::string& help);
  /// The same, one or more of them.
  OptionTable& positionals(const std::string& name, const std::string& help);

  /// Options and their values' forms are checked before --help is answered, so that a command line can be tried with
  /// it.
  /// @return nothing if --help was asked for (it has been printed to `out`).  @throws Error kUsage.
  std::optional<Options> parse(Arguments arguments, std::ostream& out) const;

 private:
  Options parse_words(const std::vector<std::string>& words) const;
  void print_help(std::ostream& out) const;

  struct State;
  std::unique_ptr<State> state_;
};

/// Whether `word` is --help or -h, and whether one of `words` before "--" is.
bool is_help(std::string_view word) noexcept;
bool asks_for_help(Arguments words) noexcept;

/// `text` as one word for a POSIX shell.
std::string shell_quoted(std::string_view text);

}  // namespace kvs
