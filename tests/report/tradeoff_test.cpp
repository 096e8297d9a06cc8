#include "export/report/tradeoff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TradePoint trade_point(const std::string& label, double bytes, double loss) {
  TradePoint point{.label = label, .method = label, .told = {}, .interval = {}};
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
  const std::string html = draw_tradeoff({"plot", "Plot", "A plot."}, perplexity_scale(), points, 400, 300).html();
  // 300 high less the margin of 44; a circle for the first series, a square around its middle for the second.
  EXPECT_THAT(html, HasSubstr("cy=\"256\""));
  EXPECT_THAT(html, HasSubstr("251.8L"));
}

TEST(ReportTradeoff, TellsAPointAndNamesItsScale) {
  TradePoint point = trade_point("lagkv", 0.25, 0.03);
  point.told = "a <little> more";
  const std::string html = draw_tradeoff({"plot", "Plot", "A plot."}, divergence_scale(), {point}, 400, 300).html();
  EXPECT_THAT(html, AllOf(HasSubstr("lagkv: 25\u00A0% of the bytes, a &lt;little&gt; more"),
                          HasSubstr(">KL divergence, nats a token<"), HasSubstr(">\u2264\u00A01e\u22124<")));
}

TEST(ReportTradeoff, LabelsOfSmallSharesDoNotTouch) {
  // 0.39 % to 100 % are nine ticks 36 apart: "0.781 %" takes 53.
  const std::string html =
      draw_tradeoff({"plot", "Plot", "A plot."}, divergence_scale(), {trade_point("a", 0.0039, 1)}, 370, 300).html();
  EXPECT_THAT(html, AllOf(HasSubstr(">100\u00A0%<"), HasSubstr(">25\u00A0%<"), Not(HasSubstr(">50\u00A0%<"))));
}

}  // namespace
}  // namespace kvs
