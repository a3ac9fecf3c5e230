// How charts look: sizes of type, the style sheet, a marker per series, how wide text may get and where labels go. Twelve
// series in colours that colour-blind readers can tell apart, most of the first ones those of Okabe and Ito; in lines they have
// a contrast of 3 with the ground, in names of 4.5. A series differs in its dash and marker too.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/svg.h"

namespace cautious::report {

inline constexpr std::size_t kSeriesStyles = 12;

// Sizes that the layout has to know.
inline constexpr double kTitleSize = 17, kNameSize = 12.5, kSoftSize = 12, kAxisSize = 11.5, kSmallSize = 10;

// The style sheet of a chart. No custom properties: some SVG readers do not know them.
std::string chart_style();

// What it has of the series, for other drawings: the colours of the classes s0 to s11.
std::string series_colours();

// Colours and dashes for the scripts of a page, as custom properties: --s0, --d0.
std::string series_properties();

// "s0" to "s11" after the other classes.
std::string style_class(std::string_view classes, std::size_t colour);

// Path data of the closed shape that marks a series: each of the twelve styles has its own.
std::string marker_path(SvgPoint at, std::size_t series, double radius);
void draw_markers(Svg& svg, const std::vector<SvgPoint>& at, std::size_t colour, double radius);

// Width of the text in the reader's font, on the safe side: that of semi-bold type in a wide font.
double text_width(std::string_view text, double font_size);

// Lines no wider than `width`: broken between words, or inside a word that is wider. At least one line, which may be empty.
std::vector<std::string> wrapped(std::string_view text, double font_size, double width);

// Positions as near to the wanted ones (ascending) as they can be (least squares) `gap` apart and between low and high.
std::vector<double> spread(const std::vector<double>& wanted, double gap, double low, double high);

}  // namespace cautious::report
