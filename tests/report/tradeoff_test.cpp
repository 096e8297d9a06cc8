#include "export/report/tradeoff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvs {
namespace {

using ::testing::HasSubstr;

TradePoint trade_point(const std::string& label, double bytes, double loss) {
  TradePoint point{.label = label, .method = label, .interval = {}, .note = {}};
  point.bytes = bytes;
  point.loss = loss;
  return point;
}

TEST(ReportTradeoff, TheFrontIsWhatNoOtherBeatsInBothBytesAndLoss) {
  std::vector<TradePoint> points{trade_point("small", 0.25, 0.3), trade_point("beaten", 0.5, 0.4),
                                 trade_point("good", 0.5, 0.1), trade_point("full", 1, 0),
                                 trade_point("as good", 0.5, 0.1)};
  mark_front(points);
  std::vector<std::string> front;
  for (const TradePoint& point : points)
    if (point.front) front.push_back(point.label);
  EXPECT_EQ(front, (std::vector<std::string>{"small", "good", "full", "as good"}));
}

TEST(ReportTradeoff, LossesBelowATenthOfAPercentLieAtTheBottom) {
  std::vector<TradePoint> points{trade_point("none", 0.5, 0), trade_point("gain", 0.25, -0.01)};
  const std::string html = draw_tradeoff({"plot", "Plot", "A plot."}, points, 400, 300).html();
  // 300 high less the margin of 44; a circle for the first series, a square around its middle for the second.
  EXPECT_THAT(html, HasSubstr("cy=\"256\""));
  EXPECT_THAT(html, HasSubstr("251.8L"));
}

TEST(ReportTradeoff, TellsAPointWithItsIntervalAndNote) {
  TradePoint point = trade_point("lagkv", 0.25, 0.03);
  point.interval = {0.01, 0.05};
  point.note = "lag 64";
  EXPECT_THAT(
      draw_tradeoff({"plot", "Plot", "A plot."}, {point}, 400, 300).html(),
      HasSubstr("lagkv: 25\u00A0% of the bytes, perplexity +3.0\u00A0% (95\u00A0%: +1.0 to +5.0\u00A0%); lag 64"));
}

}  // namespace
}  // namespace kvs
