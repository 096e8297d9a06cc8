// SPDX-License-Identifier: Apache-2.0
// Conversations against Transformers' apply_chat_template (tests/golden/make_chat_golden.py).
#include "tokenizer/chat_format.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "core/error.h"
#include "io/json.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

std::vector<ChatMessage> messages_of(const Json& json) {
  std::vector<ChatMessage> messages;
  for (const Json& message : json) messages.push_back({message.at("role"), message.at("content")});
  return messages;
}

TEST(ChatFormat, WritesWhatTransformersWrites) {
  const std::string path = std::string(KVS_GOLDEN_DIR) + "/chat_formats.json";
  std::ifstream file(path);
  const Json cases = parse_json(std::string(std::istreambuf_iterator<char>(file), {}), path);
  ASSERT_GT(cases.size(), 10U);
  for (const Json& golden : cases) {
    const auto name = golden.at("name").get<std::string>();
    const auto text = golden.at("template").get<std::string>(), bos = golden.at("bos").get<std::string>();
    SCOPED_TRACE(name);
    if (golden.at("format").is_null()) {
      test::expect_error(ErrorCode::kUnsupported, "expected one of ChatML",
                         [&] { (void)ChatFormat::of_template(text, name, bos); });
      continue;
    }
    const ChatFormat format = ChatFormat::of_template(text, name, bos);
    EXPECT_EQ(format.name(), golden.at("format"));
    for (const Json& expected : golden.at("texts")) {
      const auto messages = messages_of(expected.at("messages"));
      if (expected.at("text").is_null())
        test::expect_error(ErrorCode::kUnsupported, "system message", [&] { (void)format.render(messages, name); });
      else
        EXPECT_EQ(format.render(messages, name).text, expected.at("text").get<std::string>());
    }
  }
}

TEST(ChatFormat, SaysWhatUsersWrote) {
  const ChatFormat format = ChatFormat::of_template(
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n'}}"
      "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
      "template", "");
  const std::vector<ChatMessage> messages{{"system", "s<|im_end|>"}, {"user", ""}, {"assistant", "a"}, {"user", "u"}};
  const ChatText chat = format.render(messages, "line 1");
  std::vector<std::string> contents;
  for (const TextRange& range : chat.contents)
    contents.push_back(chat.text.substr(range.begin, range.end - range.begin));
  EXPECT_EQ(contents, (std::vector<std::string>{"s<|im_end|>", "a", "u"}));
}

TEST(ChatFormat, RefusesConversationsOutOfTurn) {
  const ChatFormat format = ChatFormat::of_template(
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n'}}"
      "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
      "template", "");
  const std::vector<std::vector<ChatMessage>> cases{{},
                                                    {{"system", "a"}},
                                                    {{"assistant", "a"}},
                                                    {{"user", "a"}, {"assistant", "b"}},
                                                    {{"user", "a"}, {"user", "b"}, {"user", "c"}},
                                                    {{"tool", "a"}}};
  for (const auto& messages : cases)
    test::expect_error(ErrorCode::kInput, "expected", [&] { (void)format.render(messages, "line 1"); });
  EXPECT_EQ(format.render(std::vector<ChatMessage>{{"user", "a"}}, "line 1").text,
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatFormat, RefusesDamagedTemplates) {
  const std::string whole =
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n'}}"
      "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
  for (std::size_t length = 0; length + 40 < whole.size(); ++length)
    test::expect_error(ErrorCode::kUnsupported, "chat template",
                       [&] { (void)ChatFormat::of_template(whole.substr(0, length), "template", ""); });
}

}  // namespace
}  // namespace kvs
