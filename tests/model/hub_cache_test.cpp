// SPDX-License-Identifier: Apache-2.0
#include "model/hub_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/error.h"
#include "model/model.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

/// A cache with one model of two snapshots, where main is the second, and one model that was not fetched completely.
class HubCache : public ::testing::Test {
 protected:
  HubCache() {
    for (const char* name : {"HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"}) ::unsetenv(name);
    for (const char* snapshot : {"0ld", "new"}) {
      std::filesystem::create_directories(model_ / "snapshots" / snapshot);
      folder_.write("hub/models--Qwen--Qwen3-0.6B/snapshots/" + std::string(snapshot) + "/README.md", "x");
    }
    std::filesystem::create_directories(model_ / "refs");
    folder_.write("hub/models--Qwen--Qwen3-0.6B/refs/main", "new");
    std::filesystem::create_directories(folder_ / "hub/models--a--b/blobs");
  }
  ~HubCache() override { ::unsetenv("HF_HOME"); }

  static std::string refusal(const std::filesystem::path& path) {
    try {
      (void)ModelSource::open(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput);
      return error.what();
    }
    ADD_FAILURE() << path << " was opened";
    return {};
  }

  test::TemporaryDirectory folder_;
  std::filesystem::path model_ = folder_ / "hub/models--Qwen--Qwen3-0.6B";
};

TEST_F(HubCache, NamesOfTheHubAreFoundInIt) {
  const std::string snapshot = (model_ / "snapshots/new").string();
  for (const auto& [name, value] : {std::pair{"HF_HOME", folder_.path()}, std::pair{"HF_HUB_CACHE", folder_ / "hub"}}) {
    ::setenv(name, value.c_str(), 1);
    EXPECT_THAT(refusal("Qwen/Qwen3-0.6B"), AllOf(HasSubstr("Qwen/Qwen3-0.6B: no such file"),
                                                  EndsWith("the hub's model of this name is in " + snapshot)));
    ::unsetenv(name);
  }
  ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
  std::filesystem::create_directory(folder_ / "huggingface");
  std::filesystem::rename(folder_ / "hub", folder_ / "huggingface/hub");
  EXPECT_THAT(refusal("Qwen/Qwen3-0.6B"), HasSubstr("huggingface/hub/models--Qwen--Qwen3-0.6B/snapshots/new"));
  ::unsetenv("XDG_CACHE_HOME");
}

TEST_F(HubCache, WhatItHasNotIsToBeFetched) {
  ::setenv("HF_HOME", folder_.path().c_str(), 1);
  for (const char* name : {"a/b", "Qwen/Qwen9"})
    EXPECT_THAT(refusal(name), HasSubstr("fetch it first: hf download " + std::string(name) + " --local-dir"));
  for (const char* path : {"a/b/c", "/a/b", "./b", "../b", "a/", "b", "a b/c"})
    EXPECT_THAT(refusal(path), Not(HasSubstr("hf download"))) << path;
}

TEST_F(HubCache, ItsFoldersNameTheSnapshot) {
  const std::string snapshot = (model_ / "snapshots/new").string();
  for (const std::filesystem::path& path : {model_, model_ / "", model_ / "snapshots", folder_ / "hub", folder_.path()})
    EXPECT_THAT(refusal(path), AllOf(HasSubstr("the hub's cache"), EndsWith(snapshot))) << path;
  std::filesystem::remove_all(model_ / "refs");
  EXPECT_THAT(refusal(model_), EndsWith((model_ / "snapshots/0ld").string()));
}

}  // namespace
}  // namespace kvs
