// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace kvs::testing {

/// How a program ended.
struct Outcome {
  int status = -1;  // exit status, or 1000 + signal
  std::string out, err;
};

/// Runs a program of build/<preset>/bin, or one given by absolute path, with `arguments` and waits for it.
Outcome run(const std::string& program, const std::vector<std::string>& arguments);

/// Starts it, sends `signal` once a unit of work stands in `journal`, waits. The outcome of a program that ended before
/// is its own.
Outcome run_and_interrupt(const std::string& program, const std::vector<std::string>& arguments,
                          const std::filesystem::path& journal, int signal = SIGINT);

/// Runs `first` and, for as long as a SIGKILL at a random time stops it, `again`; the last of many tries is let alone.
/// Expects it to end with status 0. @param most  milliseconds after which it is killed. @return the number of kills.
int run_with_kills(const std::string& program, const std::vector<std::string>& first,
                   const std::vector<std::string>& again, std::mt19937& random, unsigned most = 80);

/// Starts it and kills it once its journal has `records` records. @return whether it was killed
bool run_until(const std::string& program, const std::vector<std::string>& arguments,
               const std::filesystem::path& journal, int records);

std::string slurp(const std::filesystem::path& path);

/// COMMAND on a model and a file of tokens, in windows of 32, quietly, with `more`.
std::vector<std::string> words_on_texts(const std::string& command, const std::filesystem::path& model,
                                        const std::filesystem::path& tokens, const std::vector<std::string>& more,
                                        const std::string& threads = "1");

/// Each file and folder below `folder` with what is in it.
std::map<std::string, std::string> contents_of(const std::filesystem::path& folder);
/// Names of what differs between two of them, for a message: "-" gone, "+" new, "*" changed.
std::string difference(const std::map<std::string, std::string>& before,
                       const std::map<std::string, std::string>& after);

/// A folder that lives as long as the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// A random Llama in Hugging Face form: 4 layers, d_model 48, 6 query and 2 KV heads of 8 channels, 64 tokens of
/// vocabulary, weights from a fixed seed. It has no tokenizer: texts come from a tokens file.
/// Biased: with biases of q, k, v and output. Normed: a Qwen 3, that is with QK-norm.
enum class TinyKind { kPlain, kBiased, kNormed };
void write_tiny_model(const std::filesystem::path& folder, TinyKind kind = TinyKind::kPlain);

/// Weights of a matrix that takes `inputs` values.
std::vector<float> tiny_weights(std::mt19937& random, std::size_t size, std::size_t inputs);

/// `lines` texts of `tokens` ids below 64, one JSON array per line.
void write_tokens_file(const std::filesystem::path& path, std::size_t lines, std::size_t tokens);

}  // namespace kvs::testing
