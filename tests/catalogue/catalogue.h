// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "tests/cli/program.h"

namespace kvs::testing {

/// A folder with the tiny model and letters_tokenizer() in model/, texts in tokens.jsonl and an earlier output in out/.
/// A test puts something wrong there and runs a program.
class Catalogue : public ::testing::Test {
 protected:
  using Words = std::vector<std::string>;
  using Parts = std::initializer_list<std::string_view>;

  Catalogue();

  /// Runs a program and expects exit status `status`, nothing on standard output, and one line on standard error that
  /// begins "PROGRAM: error: " and has every one of `parts`. Every file must be as before.
  void expect_refused(const std::string& program, const Words& words, int status, Parts parts) const;
  /// Like the function above, after a shell has run `setup`: limits, redirections, variables.
  void expect_refused_after(const std::string& setup, const std::string& program, const Words& words, int status,
                            Parts parts) const;

  /// Expects `words` to exit with 0. @return its outcome.
  Outcome expect_done(const std::string& program, const Words& words) const;

  /// `kvspectrum capture` of `model` (a name in the folder) that would replace the earlier output.
  Words capture_words(const std::string& model = "model") const;
  /// Captures `texts` with `more`, for --tokens-file, in the same way.
  Words text_words(const Words& texts, const Words& more = {}) const;
  void expect_model_refused(int status, Parts parts, const std::string& model = "model") const;
  void expect_model_taken(const std::string& model = "model") const;

  /// `kvcalibrate COMMAND` on the model and the texts, with `more`.
  Words calibrate_words(const std::string& command, const Words& more) const;

  void write(const std::string& name, std::string_view bytes) const;
  /// Changes the JSON of a file.
  void edit_json(const std::string& name, const std::function<void(Json&)>& change) const;

  TemporaryFolder folder_;

 private:
  void check_refused(const std::string& program, const std::function<Outcome()>& act, int status, Parts parts) const;
};

/// Runs a program as a shell does after `setup`.
Outcome run_after(const std::string& setup, const std::string& program, const std::vector<std::string>& words);

}  // namespace kvs::testing
