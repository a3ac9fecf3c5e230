// Where to put a label beside a point: the free one of the places around it, seen the things that are already there.
#pragma once

#include <string_view>
#include <vector>

#include "report/contour.h"

namespace cautious::report {

struct LabelPlace {
  SvgPoint at;              // of the text's anchor on its baseline
  std::string_view anchor;  // style class: "start", "middle" or "end"
  Rectangle space;          // what the text covers
};

// Avoids lines (given as dense points) and, harder, the spaces of other labels; never leaves the area.
class LabelPlanner {
 public:
  explicit LabelPlanner(const Rectangle& area) : area_(area) {}
  void avoid(const std::vector<SvgPoint>& line);
  void avoid(const Rectangle& space) { taken_.push_back(space); }

  // Places the label at least `gap` from the point and keeps its space from then on.
  LabelPlace place(SvgPoint point, std::string_view text, double font_size, double gap);

 private:
  double cost(const Rectangle& space) const;
  Rectangle area_;
  std::vector<SvgPoint> ink_;
  std::vector<Rectangle> taken_;
};

}  // namespace cautious::report
