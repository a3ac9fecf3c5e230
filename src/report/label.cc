#include "report/label.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace cautious::report {
namespace {

constexpr double kAscent = 0.8, kDescent = 0.25;
constexpr double kPerInkPoint = 1, kPerOverlap = 1e4, kOutsideArea = 1e6;

// Width in font sizes, on the safe side: that of bold type in a wide font.
double width_of(std::string_view text) {
  double width = 0;
  for (const char c : text) {
    const bool narrow = std::string_view("fijlrt|,. ").find(c) != std::string_view::npos;
    const bool wide = std::string_view("mwMW").find(c) != std::string_view::npos;
    const bool continues = (c & 0xC0) == 0x80;  // of a character in UTF-8
    width += continues ? 0 : narrow ? 0.42 : wide ? 1.08 : 0.75;
  }
  return width;
}

bool overlap(const Rectangle& a, const Rectangle& b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

}  // namespace

void LabelPlanner::avoid(const std::vector<SvgPoint>& line) { ink_.insert(ink_.end(), line.begin(), line.end()); }

double LabelPlanner::cost(const Rectangle& space) const {
  if (space.left < area_.left || space.right > area_.right || space.top < area_.top || space.bottom > area_.bottom) {
    return kOutsideArea;
  }
  double total = 0;
  for (const Rectangle& other : taken_) total += overlap(space, other) ? kPerOverlap : 0;
  for (const SvgPoint& p : ink_) {
    total += p.x > space.left && p.x < space.right && p.y > space.top && p.y < space.bottom ? kPerInkPoint : 0;
  }
  return total;
}

LabelPlace LabelPlanner::place(SvgPoint point, std::string_view text, double font_size, double gap) {
  struct Side {
    double across, down;  // from the point to the text, in gaps; down also shifts by the text's height
  };
  constexpr std::array<Side, 8> sides{{{1, 0}, {-1, 0}, {0, -1}, {0, 1}, {0.8, -0.8}, {0.8, 0.8}, {-0.8, -0.8}, {-0.8, 0.8}}};
  const double width = width_of(text) * font_size;
  LabelPlace best{};
  double least = INFINITY;
  for (const double reach : {1.0, 1.6, 2.4, 3.4}) {
    for (const Side& side : sides) {
      const double middle = (kAscent - kDescent) / 2 * font_size;
      const double lift = side.down < 0 ? -kDescent * font_size : side.down > 0 ? kAscent * font_size : middle;
      const SvgPoint at{point.x + side.across * gap * reach, point.y + side.down * gap * reach + lift};
      const double left = side.across > 0 ? at.x : side.across < 0 ? at.x - width : at.x - width / 2;
      const Rectangle space{left, at.y - kAscent * font_size, left + width, at.y + kDescent * font_size};
      const double total = cost(space) + 2 * reach;
      if (total < least) {
        least = total;
        best = {at, side.across > 0 ? "start" : side.across < 0 ? "end" : "middle", space};
      }
    }
  }
  constexpr double kAir = 5;
  taken_.push_back({best.space.left - kAir, best.space.top - kAir, best.space.right + kAir, best.space.bottom + kAir});
  return best;
}

}  // namespace cautious::report
