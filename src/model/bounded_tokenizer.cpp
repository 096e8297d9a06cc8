// SPDX-License-Identifier: Apache-2.0
#include "model/bounded_tokenizer.h"

#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"

namespace kvs::inline model {
namespace {

class BoundedTokenizer final : public Tokenizer {
 public:
  BoundedTokenizer(std::unique_ptr<Tokenizer> tokenizer, std::size_t rows, std::string where)
      : tokenizer_(std::move(tokenizer)), rows_(rows), where_(std::move(where)), notes_(tokenizer_->notes()) {
    notes_.push_back(where_ + ": found " + std::to_string(tokenizer_->vocabulary_size()) +
                     " tokens, the embedding has " + std::to_string(rows_) +
                     " rows: a text with one of the others is refused");
    if (tokenizer_->bos() >= 0 && !fits(tokenizer_->bos()))
      notes_.push_back(where_ + ": the begin-of-sequence token " + shown(tokenizer_->bos()) +
                       " has no row of the embedding, so that there is none");
  }

  std::vector<std::int32_t> encode_turns(std::string_view text, std::span<const TextRange> literal) const override {
    std::vector<std::int32_t> ids = tokenizer_->encode_turns(text, literal);
    for (const std::int32_t id : ids)
      if (!fits(id))
        throw Error(ErrorCode::kInput, where_,
                    "found token " + shown(id) + " in a text, expected an id below the " + std::to_string(rows_) +
                        " rows of the embedding");
    return ids;
  }
  std::string decode(const std::vector<std::int32_t>& ids) const override { return tokenizer_->decode(ids); }
  std::size_t vocabulary_size() const noexcept override { return tokenizer_->vocabulary_size(); }
  std::int32_t bos() const noexcept override { return fits(tokenizer_->bos()) ? tokenizer_->bos() : -1; }
  bool adds_bos() const noexcept override { return tokenizer_->adds_bos() && bos() >= 0; }
  std::int32_t find(std::string_view token) const noexcept override { return tokenizer_->find(token); }
  const std::vector<std::string>& notes() const noexcept override { return notes_; }

 private:
  bool fits(std::int32_t id) const noexcept { return id >= 0 && static_cast<std::size_t>(id) < rows_; }
  std::string shown(std::int32_t id) const {
    return '"' + printable(tokenizer_->decode({id}), 100) + "\" with id " + std::to_string(id);
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  std::size_t rows_;
  std::string where_;
  std::vector<std::string> notes_;
};

}  // namespace

std::unique_ptr<Tokenizer> bound_tokenizer(std::unique_ptr<Tokenizer> tokenizer, std::size_t rows, std::string where) {
  if (tokenizer->vocabulary_size() <= rows) return tokenizer;
  return std::make_unique<BoundedTokenizer>(std::move(tokenizer), rows, std::move(where));
}

}  // namespace kvs::inline model
