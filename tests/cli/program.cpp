// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "tests/io/safetensors_bytes.h"

extern char** environ;

namespace kvs::testing {
namespace {

constexpr std::size_t kLayers = 4, kModel = 48, kQueryHeads = 6, kKvHeads = 2, kHeadDim = 8, kFeedForward = 64,
                      kVocabulary = 64;

int status_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 1000 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

/// Sends `signal` (0: none) as soon as `due` says so.
Outcome run_with(const std::string& program, const std::vector<std::string>& arguments, int signal,
                 const std::function<bool()>& due) {
  const TemporaryFolder folder;
  const std::string out = folder / "out", err = folder / "err",
                    path = program.front() == '/' ? program : std::string(KVS_BINARY_DIR) + "/" + program;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT, 0600);
  std::vector<char*> argv{const_cast<char*>(path.c_str())};
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawnattr_t attributes;  // a program leaves signals ignored that are, as they may be where the tests run
  sigset_t heeded;
  sigemptyset(&heeded);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGXCPU}) sigaddset(&heeded, number);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigdefault(&attributes, &heeded);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  if (posix_spawn(&child, path.c_str(), &actions, &attributes, argv.data(), environ) != 0)
    throw std::runtime_error("cannot start " + path);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  while (signal != 0 && !due()) {
    if (waitpid(child, &status, WNOHANG) == child) return {status_of(status), slurp(out), slurp(err)};
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (signal != 0) kill(child, signal);
  waitpid(child, &status, 0);
  return {status_of(status), slurp(out), slurp(err)};
}

/// Files above this are compared by size and time alone.
constexpr std::uintmax_t kLarge = 16U << 20;

std::string kept_of(const std::filesystem::directory_entry& entry) {
  if (entry.is_symlink()) return "link to " + std::filesystem::read_symlink(entry.path()).string();
  if (!entry.is_regular_file()) return entry.is_directory() ? "a folder" : "a special file";
  if (entry.file_size() <= kLarge) return slurp(entry.path());
  return std::to_string(entry.file_size()) + " bytes of " +
         std::to_string(entry.last_write_time().time_since_epoch().count());
}

}  // namespace

Outcome run(const std::string& program, const std::vector<std::string>& arguments) {
  return run_with(program, arguments, 0, {});
}

Outcome run_and_interrupt(const std::string& program, const std::vector<std::string>& arguments,
                          const std::filesystem::path& journal, int signal) {
  return run_with(program, arguments, signal, [&] {
    const std::string lines = slurp(journal);  // what it belongs to, then what is done: without that none is left
    return std::ranges::count(lines, '\n') > 1;
  });
}

int run_with_kills(const std::string& program, const std::vector<std::string>& first,
                   const std::vector<std::string>& again, std::mt19937& random, unsigned most) {
  constexpr int kTries = 20;
  using Clock = std::chrono::steady_clock;
  for (int kills = 0;; ++kills) {
    const auto deadline = Clock::now() + std::chrono::milliseconds(random() % most);
    const Outcome outcome = run_with(program, kills == 0 ? first : again, kills < kTries ? SIGKILL : 0,
                                     [&] { return Clock::now() >= deadline; });
    if (outcome.status == 1000 + SIGKILL) continue;
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return kills;
  }
}

bool run_until(const std::string& program, const std::vector<std::string>& arguments,
               const std::filesystem::path& journal, int records) {
  const Outcome outcome = run_with(program, arguments, SIGKILL, [&] {
    const std::string lines = slurp(journal);
    return std::ranges::count(lines, '\n') > records;
  });
  return outcome.status == 1000 + SIGKILL;
}

std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> words_on_texts(const std::string& command, const std::filesystem::path& model,
                                        const std::filesystem::path& tokens, const std::vector<std::string>& more,
                                        const std::string& threads) {
  std::vector<std::string> words{command,    "--model", model,     "--tokens-file", tokens,
                                 "--window", "32",      "--quiet", "--threads",     threads};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::map<std::string, std::string> contents_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    files[entry.path().lexically_relative(folder)] = kept_of(entry);
  return files;
}

std::string difference(const std::map<std::string, std::string>& before,
                       const std::map<std::string, std::string>& after) {
  std::string names;
  for (const auto& [name, bytes] : before)
    if (!after.contains(name)) names += " -" + name;
  for (const auto& [name, bytes] : after)
    if (!before.contains(name))
      names += " +" + name;
    else if (before.at(name) != bytes)
      names += " *" + name;
  return names;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "kvs-cli-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = pattern;
}
TemporaryFolder::~TemporaryFolder() { std::filesystem::remove_all(path_); }

std::vector<float> tiny_weights(std::mt19937& random, std::size_t size, std::size_t inputs) {
  const float scale = 2.0F / std::sqrt(static_cast<float>(inputs));
  std::vector<float> values(size);
  for (float& value : values) value = scale * (static_cast<float>(random() >> 8) * 0x1p-23F - 1.0F);
  return values;
}

void write_tiny_model(const std::filesystem::path& folder, TinyKind kind) {
  std::filesystem::create_directories(folder);
  std::mt19937 random(7);  // mt19937's sequence is fixed by the standard; distributions are not, so none is used
  std::vector<std::pair<std::vector<std::size_t>, std::vector<float>>> storage;
  std::vector<test::NamedTensor> tensors;
  const auto add = [&](const std::string& name, std::vector<std::size_t> shape, bool ones = false) {
    std::size_t size = 1;
    for (const std::size_t extent : shape) size *= extent;
    std::vector<float> values = ones ? std::vector<float>(size, 1.0F) : tiny_weights(random, size, shape.back());
    tensors.push_back({name, std::move(shape), std::move(values)});
  };
  add("model.embed_tokens.weight", {kVocabulary, kModel});
  add("model.norm.weight", {kModel}, true);
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    add(prefix + "input_layernorm.weight", {kModel}, true);
    add(prefix + "post_attention_layernorm.weight", {kModel}, true);
    add(prefix + "self_attn.q_proj.weight", {kQueryHeads * kHeadDim, kModel});
    add(prefix + "self_attn.k_proj.weight", {kKvHeads * kHeadDim, kModel});
    add(prefix + "self_attn.v_proj.weight", {kKvHeads * kHeadDim, kModel});
    add(prefix + "self_attn.o_proj.weight", {kModel, kQueryHeads * kHeadDim});
    add(prefix + "mlp.gate_proj.weight", {kFeedForward, kModel});
    add(prefix + "mlp.up_proj.weight", {kFeedForward, kModel});
    add(prefix + "mlp.down_proj.weight", {kModel, kFeedForward});
  }
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".self_attn.";
    if (kind == TinyKind::kBiased) {
      add(prefix + "q_proj.bias", {kQueryHeads * kHeadDim});
      add(prefix + "k_proj.bias", {kKvHeads * kHeadDim});
      add(prefix + "v_proj.bias", {kKvHeads * kHeadDim});
      add(prefix + "o_proj.bias", {kModel});
    } else if (kind == TinyKind::kNormed) {
      add(prefix + "q_norm.weight", {kHeadDim}, true);
      add(prefix + "k_norm.weight", {kHeadDim}, true);
    }
  }
  const std::string bytes = test::safetensors_bytes(tensors);
  std::ofstream(folder / "model.safetensors", std::ios::binary) << bytes;
  const bool normed = kind == TinyKind::kNormed;
  std::ofstream(folder / "config.json") << R"({"architectures": [")" << (normed ? "Qwen3" : "Llama")
                                        << R"(ForCausalLM"], "model_type": ")" << (normed ? "qwen3" : "llama")
                                        << R"(", "attention_bias": )" << (kind == TinyKind::kBiased ? "true" : "false")
                                        << R"(,
    "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 4, "num_attention_heads": 6,
    "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 64, "max_position_embeddings": 512, "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": true})";
}

void write_tokens_file(const std::filesystem::path& path, std::size_t lines, std::size_t tokens) {
  std::ofstream file(path);
  std::mt19937 random(11);
  for (std::size_t line = 0; line < lines; ++line) {
    file << '[';
    for (std::size_t n = 0; n < tokens; ++n) file << (n > 0 ? "," : "") << random() % kVocabulary;
    file << "]\n";
  }
}

}  // namespace kvs::testing
