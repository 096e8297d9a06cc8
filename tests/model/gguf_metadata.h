// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "core/error.h"
#include "model/parsed_config.h"
#include "tests/io/fake_gguf.h"

namespace kvs::test {

/// Metadata of a model of `layers` layers, 64 channels in 4 heads, without what differs between architectures.
inline FakeGguf metadata(const std::string& architecture, std::uint64_t layers = 3) {
  static std::deque<std::string> names;  // the file holds views
  names.push_back(architecture);
  FakeGguf file;
  file.values["general.architecture"] = std::string_view(names.back());
  const auto set = [&](const std::string& key, const GgufValue& value) {
    file.values[architecture + "." + key] = value;
  };
  set("block_count", layers);
  set("embedding_length", std::uint64_t{64});
  set("feed_forward_length", std::uint64_t{96});
  set("attention.head_count", std::uint64_t{4});
  set("attention.head_count_kv", std::uint64_t{2});
  set("attention.key_length", std::uint64_t{16});
  set("attention.value_length", std::uint64_t{16});
  set("vocab_size", std::uint64_t{100});
  set("context_length", std::uint64_t{512});
  set(architecture == "gptneox" ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", 1e-6);
  return file;
}

inline void expect_refused(const FakeGguf& file, ErrorCode code, const std::string& message) {
  try {
    parse_gguf_config(file);
    ADD_FAILURE() << "no error, expected " << message;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(std::string(error.what()), testing::HasSubstr(message));
  }
}

}  // namespace kvs::test
