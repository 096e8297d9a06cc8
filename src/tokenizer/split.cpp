// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/split.h"

#include <string>
#include <utility>

#include "tokenizer/normalizer.h"

namespace kvs::inline tokenizer {
namespace {

struct Span {
  std::size_t begin, end;
  bool is_match;
};

class RegexSplit final : public SplitStep {
 public:
  RegexSplit(Regex pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void split(std::string_view text, bool first, const PieceSink& sink) const override {
    const auto hand_out = [&](const Span& span) {
      sink(text.substr(span.begin, span.end - span.begin), first && span.begin == 0);
    };
    if (behavior_ == SplitBehavior::kIsolated) {
      for_each_span(text, hand_out);
      return;
    }
    for (const Span& span : arrange(text)) hand_out(span);
  }

 private:
  template <class Visit>
  void for_each_span(std::string_view text, Visit visit) const {
    std::string storage;
    const std::string_view searched = pattern_.searchable(text, storage);
    std::size_t done = 0;
    while (done < text.size()) {
      const auto match = pattern_.search(searched, done);
      if (!match || match->end == match->begin) break;
      if (match->begin > done) visit(Span{done, match->begin, invert_});
      visit(Span{match->begin, match->end, !invert_});
      done = match->end;
    }
    if (done < text.size()) visit(Span{done, text.size(), invert_});
  }

  std::vector<Span> arrange(std::string_view text) const {
    std::vector<Span> spans, out;
    for_each_span(text, [&](Span span) { spans.push_back(span); });
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const Span& span = spans[i];
      const bool after_match = i > 0 && spans[i - 1].is_match;
      bool joins = false;  // this span continues the previous piece
      switch (behavior_) {
        case SplitBehavior::kIsolated:
          break;
        case SplitBehavior::kRemoved:
          if (span.is_match) continue;
          break;
        case SplitBehavior::kMergedWithPrevious:
          joins = i > 0 && span.is_match && !after_match;
          break;
        case SplitBehavior::kMergedWithNext:
          // A match starts a new piece that includes the text after it, unless another match follows.
          joins = after_match && !span.is_match;
          break;
        case SplitBehavior::kContiguous:
          joins = i > 0 && span.is_match == after_match;
          break;
      }
      if (joins) {
        out.back().end = span.end;
      } else {
        out.push_back(span);
      }
    }
    return out;
  }

  Regex pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

class PrefixSpace final : public SplitStep {
 public:
  void split(std::string_view text, bool first, const PieceSink& sink) const override {
    if (text.starts_with(' ')) {
      sink(text, first);
    } else {
      sink(" " + std::string(text), first);
    }
  }
};

class Metaspace final : public SplitStep {
 public:
  Metaspace(std::string marker, PrependScheme scheme, bool split)
      : marker_(std::move(marker)), scheme_(scheme), spaces_(make_replace(" ", marker_)) {
    if (split) splitter_ = make_regex_split(Regex(marker_, true), SplitBehavior::kMergedWithNext);
  }

  void split(std::string_view text, bool first, const PieceSink& sink) const override {
    std::string marked = spaces_->apply(text);
    const bool prepends = scheme_ == PrependScheme::kAlways || (scheme_ == PrependScheme::kFirst && first);
    if (prepends && !marked.starts_with(marker_)) marked.insert(0, marker_);
    if (splitter_) {
      splitter_->split(marked, first, sink);
    } else {
      sink(marked, first);
    }
  }

 private:
  std::string marker_;
  PrependScheme scheme_;
  std::unique_ptr<const Normalizer> spaces_;
  std::unique_ptr<const SplitStep> splitter_;
};

class MarkerSplit final : public SplitStep {
 public:
  MarkerSplit(std::string_view marker, std::bitset<256> joined) : marker_(marker), joined_(joined) {}

  void split(std::string_view text, bool first, const PieceSink& sink) const override {
    std::size_t done = 0;
    for (std::size_t at = text.find(marker_); at < text.size(); at = text.find(marker_, at)) {
      if (at > done && !joined_[static_cast<unsigned char>(text[at - 1])]) {
        sink(text.substr(done, at - done), first && done == 0);
        done = at;
      }
      while (text.substr(at).starts_with(marker_)) at += marker_.size();
    }
    if (done < text.size()) sink(text.substr(done), first && done == 0);
  }

 private:
  std::string marker_;
  std::bitset<256> joined_;
};

}  // namespace

std::unique_ptr<const SplitStep> make_regex_split(Regex pattern, SplitBehavior behavior, bool invert) {
  return std::make_unique<RegexSplit>(std::move(pattern), behavior, invert);
}

std::unique_ptr<const SplitStep> make_prefix_space() { return std::make_unique<PrefixSpace>(); }

std::unique_ptr<const SplitStep> make_metaspace(std::string marker, PrependScheme scheme, bool split) {
  return std::make_unique<Metaspace>(std::move(marker), scheme, split);
}

std::unique_ptr<const SplitStep> make_marker_split(std::string_view marker, std::bitset<256> joined) {
  return std::make_unique<MarkerSplit>(marker, joined);
}

}  // namespace kvs::inline tokenizer
