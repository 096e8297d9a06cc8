// SPDX-License-Identifier: Apache-2.0
// The environment that a caller may leave to a program: variables, limits, ignored signals, closed pipes.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/calibrate_fixture.h"

namespace kvs::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CallersEnvironment : public CalibratePrograms {
 protected:
  CallersEnvironment() { std::filesystem::create_directory(folder_ / "here"); }

  /// A shell in the folder here/ does `setup`, then runs the command in its own place. No hang outlives two minutes.
  Outcome run_after(const std::string& setup, const std::string& program,
                    const std::vector<std::string>& command) const {
    std::vector<std::string> words{"-k",
                                   "1",
                                   "120",
                                   "/bin/bash",
                                   "-c",
                                   "cd '" + (folder_ / "here").string() + "' && " + setup + " \"$0\" \"$@\"",
                                   KVS_BINARY_DIR "/" + program};
    words.insert(words.end(), command.begin(), command.end());
    return run("/usr/bin/timeout", words);
  }
  std::vector<std::string> transform(const std::string& threads = "2") const {
    return words_on_texts(
        "transform", folder_ / "model", folder_ / "tokens.jsonl",
        {"--budget", "50%", "--sinks", "1", "--recent", "2", "--json", "--out", folder_ / "out/t.json"}, threads);
  }
  std::vector<std::string> retain() const {
    return words_on_texts("retain", folder_ / "model", folder_ / "tokens.jsonl",
                          {"--kept-shares", "1,0.25", "--prefix", "20", "--out", folder_ / "out/r.json"});
  }
  /// The bytes that the command writes after `setup`; it prints only JSON.
  std::map<std::string, std::string> outputs_after(const std::string& setup, const std::vector<std::string>& command) {
    std::filesystem::remove_all(folder_ / "out");
    std::filesystem::create_directory(folder_ / "out");
    const Outcome outcome = run_after(setup, "kvcalibrate", command);
    EXPECT_EQ(outcome.status, 0) << setup << ": " << outcome.err;
    EXPECT_NO_THROW((void)parse_json(outcome.out, "standard output")) << setup << ": " << outcome.out;
    EXPECT_THAT(contents_of(folder_ / "here"), IsEmpty()) << setup;
    return contents_of(folder_ / "out");
  }
};

TEST_F(CallersEnvironment, NoVariableChangesWhatIsComputedOrPrinted) {
  const auto plain = outputs_after("exec", transform());
  ASSERT_EQ(plain.size(), 2U);
  for (const char* const variable : {"OMP_DYNAMIC=true",
                                     "OMP_MAX_ACTIVE_LEVELS=0",
                                     "OMP_NESTED=true",
                                     "OMP_STACKSIZE=16k",
                                     "OMP_STACKSIZE=99999G",
                                     "GOMP_STACKSIZE=16",
                                     "OMP_NUM_THREADS=1",
                                     "OMP_NUM_THREADS=64",
                                     "OMP_NUM_THREADS=1,3",
                                     "OMP_PROC_BIND=true",
                                     "OMP_PROC_BIND=spread OMP_PLACES=cores",
                                     "GOMP_CPU_AFFINITY=0",
                                     "OMP_SCHEDULE=guided,7",
                                     "OMP_CANCELLATION=true",
                                     "GOMP_SPINCOUNT=0",
                                     "KMP_AFFINITY=verbose",
                                     "KMP_BLOCKTIME=0",
                                     "MKL_NUM_THREADS=1",
                                     "OPENBLAS_NUM_THREADS=64",
                                     "GOTO_NUM_THREADS=3",
                                     "OMP_ADAPTIVE=1",
                                     "OPENBLAS_BLOCK_FACTOR=99",
                                     "OPENBLAS_VERBOSE=5",
                                     "DNNL_VERBOSE=2",
                                     "ONEDNN_VERBOSE=2",
                                     "ONEDNN_VERBOSE_TIMESTAMP=1 ONEDNN_VERBOSE=1",
                                     "DNNL_JIT_DUMP=1",
                                     "ONEDNN_JIT_DUMP=1",
                                     "ONEDNN_DEFAULT_FPMATH_MODE=BF16",
                                     "DNNL_CPU_ISA_HINTS=PREFER_YMM",
                                     "DNNL_PRIMITIVE_CACHE_CAPACITY=0",
                                     "HDF5_USE_FILE_LOCKING=FALSE",
                                     "HDF5_USE_FILE_LOCKING=what",
                                     "HDF5_DEBUG=all",
                                     "HDF5_PLUGIN_PRELOAD=::",
                                     "MALLOC_ARENA_MAX=1",
                                     "MALLOC_PERTURB_=85",
                                     "MALLOC_CHECK_=3",
                                     "MALLOC_MMAP_THRESHOLD_=0",
                                     "GLIBC_TUNABLES=glibc.malloc.perturb=170",
                                     "LC_ALL=de_DE.UTF-8",
                                     "TMPDIR=/nowhere",
                                     "HOME=/nowhere",
                                     "POSIXLY_CORRECT=1",
                                     "OPENSSL_CONF=/nowhere"})
    EXPECT_EQ(difference(plain, outputs_after(std::string("exec env ") + variable, transform())), "") << variable;
}

TEST_F(CallersEnvironment, AConfigurationOfOpenSslWithoutDigests) {
  const auto plain = outputs_after("exec", transform());
  std::ofstream(folder_ / "null.cnf") << "openssl_conf = i\n[i]\nproviders = p\n[p]\nnull = n\n[n]\nactivate = 1\n";
  const std::string setup = "exec env OPENSSL_CONF='" + (folder_ / "null.cnf").string() + "'";
  EXPECT_EQ(difference(plain, outputs_after(setup, transform())), "");
}

TEST_F(CallersEnvironment, ALimitOfThreadsIsThatOfThreads) {
  const auto one = outputs_after("exec", transform("1"));
  std::filesystem::remove_all(folder_ / "out");
  std::filesystem::create_directory(folder_ / "out");
  auto words = transform("4");
  std::erase(words, "--quiet");
  const Outcome outcome = run_after("exec env OMP_THREAD_LIMIT=1", "kvcalibrate", words);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("note: --threads 4: the environment (OMP_THREAD_LIMIT) leaves 1\n"));
  EXPECT_EQ(contents_of(folder_ / "out").at("t.safetensors"), one.at("t.safetensors"));
}

TEST_F(CallersEnvironment, SmallStacks) {
  const auto plain = outputs_after("exec", transform());
  for (const char* const kibibytes : {"64", "96", "128", "192", "512"}) {
    const std::string limit = std::string("ulimit -Ss ") + kibibytes;
    EXPECT_EQ(difference(plain, outputs_after(limit + " && exec", transform())), "") << limit;
  }
  const Outcome outcome = run_after("ulimit -Ss 192 && ulimit -Hs 192 && exec", "kvcalibrate", transform());
  EXPECT_EQ(outcome.status, 6);
  EXPECT_EQ(outcome.err, "kvcalibrate: error: stack: found a limit of 192 KiB, expected at least 1024 (ulimit -s)\n");
  EXPECT_EQ(difference(plain, outputs_after("ulimit -Ss 1024 && ulimit -Hs 1024 && exec", transform())), "");
}

TEST_F(CallersEnvironment, ACallerThatIgnoresItsChildren) {
  std::filesystem::create_directory(folder_ / "out");
  const Outcome outcome = run_after("exec env --ignore-signal=CHLD", "kvspectrum", retain());
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out/r.svg"));
}

TEST_F(CallersEnvironment, HelpThatIsReadInPart) {
  for (const std::string command : {"--help", "help", "--version", "eval --help", "eval -h --window 3"}) {
    const Outcome outcome =
        run("/bin/bash", {"-c", "exec > >(exec true); wait $!; exec " KVS_BINARY_DIR "/kvcalibrate " + command});
    EXPECT_EQ(outcome.status, 0) << command << outcome.err;
    EXPECT_EQ(outcome.err, "") << command;
  }
  const Outcome full = run("/bin/bash", {"-c", "exec " KVS_BINARY_DIR "/kvcalibrate eval --help >/dev/full"});
  EXPECT_EQ(full.status, 6);
}

}  // namespace
}  // namespace kvs::testing
