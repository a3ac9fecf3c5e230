// Text in a chart: how wide it may get in the reader's font, and where it breaks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cautious::report {

// On the safe side: that of semi-bold type in a wide font.
double text_width(std::string_view text, double font_size);

// Lines no wider than `width`: broken between words, or inside a word that is wider. At least one line, which may be empty.
std::vector<std::string> wrapped(std::string_view text, double font_size, double width);

}  // namespace cautious::report
