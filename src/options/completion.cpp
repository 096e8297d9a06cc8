// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/nearest.h"
#include "options/shell_files.h"
#include "options/words.h"

namespace kvs::inline options {
namespace {

using Writer = std::string (*)(const ProgramText& program);

/// Returns the words that are the only values of an option; empty if there are others.
std::vector<std::string_view> choices_of(const OptionEntry& option) {
  return option.placeholder.find('|') == std::string::npos ? std::vector<std::string_view>()
                                                           : split(option.placeholder, '|');
}

std::string joined(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) text += (text.empty() ? "" : " ") + std::string(word);
  return text;
}

/// Returns the first clause of a help text: what fits beside an option.
std::string_view clause_of(std::string_view help) {
  return help.substr(0, std::min({help.find(';'), help.find(". "), help.find(" ["), help.find(" (default")}));
}

/// Puts a backslash before each of `letters`.
std::string escaped(std::string_view text, std::string_view letters) {
  std::string out;
  for (const char letter : text) {
    if (letters.find(letter) != std::string_view::npos) out += '\\';
    out += letter;
  }
  return out;
}

/// Returns the lines of bash's `case` for the values of a command's options.
std::string bash_values(const std::string& command, const CommandText& text) {
  std::string lines, files, others;
  for (const OptionEntry& option : text.options) {
    const std::string pattern = command + ":--" + option.name;
    if (const auto choices = choices_of(option); !choices.empty())
      lines += "    " + pattern + ") COMPREPLY=($(compgen -W '" + joined(choices) + "' -- \"$word\")); return ;;\n";
    else if (is_path_form(option.placeholder))
      files += (files.empty() ? "" : " | ") + pattern;
    else if (!option.placeholder.empty())
      others += (others.empty() ? "" : " | ") + pattern;
  }
  if (!files.empty()) lines += "    " + files + ") return ;;\n";
  if (!others.empty()) lines += "    " + others + ") compopt +o default; return ;;\n";
  return lines;
}

/// Bash completes file names where the script finds no word.
std::string bash_script(const ProgramText& program) {
  std::string names, values, options;
  for (const auto& [name, text] : program.commands) {
    names += (names.empty() ? "" : " ") + name;
    values += bash_values(name, text);
    options += "    " + name + ") COMPREPLY=($(compgen -W '--help";
    for (const OptionEntry& option : text.options) options += " --" + option.name;
    options += "' -- \"$word\")) ;;\n";
  }
  return "# " + program.name + " " + program.version + ": completion for bash\n_" + program.name +
         "() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}\n"
         "  COMPREPLY=()\n"
         "  if ((COMP_CWORD == 1)); then\n"
         "    COMPREPLY=($(compgen -W '" +
         names +
         " --help --version' -- \"$word\"))\n"
         "    return\n"
         "  fi\n"
         "  case $command:$before in\n" +
         values +
         "  esac\n"
         "  [[ $word == -* ]] || return\n"
         "  case $command in\n" +
         options +
         "  esac\n"
         "}\n"
         "complete -o default -F _" +
         program.name + " " + program.name + "\n";
}

/// Returns the argument of zsh's _arguments for an option.
std::string zsh_argument(const OptionEntry& option) {
  std::string spec =
      (option.repeats ? "*--" : "--") + option.name + "[" + escaped(clause_of(option.help), "[]:\\") + "]";
  if (const auto choices = choices_of(option); !choices.empty())
    spec += ":value:(" + joined(choices) + ")";
  else if (is_path_form(option.placeholder))
    spec += ":" + option.placeholder + ":_files";
  else if (!option.placeholder.empty())
    spec += ":" + escaped(option.placeholder, ":\\") + ":";
  return shell_quoted(spec);
}

std::string zsh_script(const ProgramText& program) {
  const std::string function = "_" + program.name;
  std::string commands, cases;
  for (const auto& [name, text] : program.commands) {
    commands += "    " + shell_quoted(name + ":" + escaped(text.purpose, ":\\")) + "\n";
    cases += "    " + name + ")\n      _arguments '--help[print help]'";
    for (const OptionEntry& option : text.options) cases += " \\\n        " + zsh_argument(option);
    if (!text.positional.empty()) cases += " \\\n        '*:" + text.positional + ":_files'";
    cases += " ;;\n";
  }
  return "#compdef " + program.name + "\n# " + program.name + " " + program.version + ": completion for zsh\n" +
         function +
         "() {\n"
         "  local -a commands=(\n" +
         commands +
         "  )\n"
         "  if ((CURRENT == 2)); then\n"
         "    _describe command commands\n"
         "    return\n"
         "  fi\n"
         "  shift words\n"
         "  ((CURRENT--))\n"
         "  case $words[1] in\n" +
         cases +
         "  esac\n"
         "}\n"
         "if [[ ${funcstack[1]} == " +
         function + " ]]; then " + function + " \"$@\"; else compdef " + function + " " + program.name + "; fi\n";
}

/// Returns fish's line for an option. @param begin  `complete` with the program and the command
std::string fish_option(const std::string& begin, const OptionEntry& option) {
  std::string line = begin + " -l " + option.name;
  if (const auto choices = choices_of(option); !choices.empty())
    line += " -x -a '" + joined(choices) + "'";
  else if (is_path_form(option.placeholder))
    line += " -r -F";
  else if (!option.placeholder.empty())
    line += " -x";
  return line + " -d '" + escaped(clause_of(option.help), "'\\") + "'\n";
}

std::string fish_script(const ProgramText& program) {
  const std::string complete = "complete -c " + program.name;
  std::string script = "# " + program.name + " " + program.version + ": completion for fish\n" + complete + " -f\n";
  for (const auto& [name, text] : program.commands) {
    script += complete + " -n __fish_use_subcommand -a " + name + " -d '" + escaped(text.purpose, "'\\") + "'\n";
    const std::string begin = complete + " -n '__fish_seen_subcommand_from " + name + "'";
    if (!text.positional.empty()) script += begin + " -F\n";
    for (const OptionEntry& option : text.options) script += fish_option(begin, option);
  }
  return script;
}

constexpr std::array<std::pair<std::string_view, Writer>, 3> kShells{
    {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}}};

}  // namespace

std::string completion_script(const ProgramText& program, std::string_view shell) {
  std::vector<std::string> names;
  for (const auto& [name, writer] : kShells) {
    if (name == shell) return writer(program);
    names.emplace_back(name);
  }
  throw Error(
      ErrorCode::kUsage, program.name + " completion",
      "found '" + std::string(shell) + "', expected one of " + listed(names) + did_you_mean(std::string(shell), names));
}

}  // namespace kvs::inline options
