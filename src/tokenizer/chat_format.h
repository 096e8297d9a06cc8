// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/text_range.h"

namespace kvs::inline tokenizer {

/// A turn of a conversation.
struct ChatMessage {
  std::string role, content;  // role: system, user or assistant
};

/// A conversation as a model's chat template writes it.
struct ChatText {
  std::string text;
  std::vector<TextRange> contents = {};  // of the messages in it, ascending; none is empty
};

/// How a model's chat template writes conversations. There is no Jinja interpreter: the template is recognised by the
/// expressions that write its turns, and written as one of the common formats.
class ChatFormat {
 public:
  /// Recognises ChatML, Llama 3, Gemma, Mistral and Phi.
  /// @param text   the template, as files hold it;  @param where  names it in messages
  /// @param bos    the text of the model's begin-of-sequence token; empty: none
  /// @throws Error kUnsupported if the template is none of these, names what it begins with
  static ChatFormat of_template(std::string_view text, const std::string& where, std::string_view bos);

  const std::string& name() const noexcept { return name_; }
  /// Writes a conversation and the beginning of the assistant's next turn, as `apply_chat_template` of Transformers
  /// does with `add_generation_prompt`. A template with today's date gets that which it has for engines without a
  /// clock.
  /// @param messages  an optional system message, then user and assistant in turns, the user first and last
  /// @throws Error kInput for other roles or another order; kUnsupported for a system message that the template refuses
  ChatText render(std::span<const ChatMessage> messages, const std::string& where) const;

 private:
  struct Turn {
    std::string before, after;
  };
  enum class System { kOwnTurn, kFirstUser, kLastUser, kRefused };
  friend class ChatFormats;

  std::string name_, begin_;
  Turn system_, user_, assistant_;
  System place_ = System::kOwnTurn;
  std::string preamble_;        // of the system's turn
  std::string default_system_;  // content of the system's turn without a system message
  std::string generation_;      // begins the assistant's next turn
  bool trims_ = false, trims_assistant_ = false, trims_system_ = false;
  bool drops_thoughts_ = false;  // of former assistant turns
};

}  // namespace kvs::inline tokenizer
