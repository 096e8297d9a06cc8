#include "io/tokenizer/split.h"

#include <string>
#include <utility>

namespace kvs {
namespace {

struct Span {
  std::size_t begin, end;
  bool is_match;
};

class RegexSplit final : public SplitStep {
 public:
  RegexSplit(Regex pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void split(std::string_view text, const PieceSink& sink) const override {
    if (behavior_ == SplitBehavior::kIsolated) {
      for_each_span(text, [&](Span span) { sink(text.substr(span.begin, span.end - span.begin)); });
      return;
    }
    for (const Span& span : arrange(text)) sink(text.substr(span.begin, span.end - span.begin));
  }

 private:
  template <class Visit>
  void for_each_span(std::string_view text, Visit visit) const {
    std::size_t done = 0;
    while (done < text.size()) {
      const auto match = pattern_.search(text, done);
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
      bool joins = false;  // this span continues the piece before it
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
          // A match opens the piece of what follows it, unless that is a match too.
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
  void split(std::string_view text, const PieceSink& sink) const override {
    if (text.starts_with(' ')) {
      sink(text);
    } else {
      sink(" " + std::string(text));
    }
  }
};

}  // namespace

std::unique_ptr<const SplitStep> make_regex_split(Regex pattern, SplitBehavior behavior, bool invert) {
  return std::make_unique<RegexSplit>(std::move(pattern), behavior, invert);
}

std::unique_ptr<const SplitStep> make_prefix_space() { return std::make_unique<PrefixSpace>(); }

}  // namespace kvs
