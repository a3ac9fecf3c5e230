// The colours of series: enough of them, legible on their ground, and different, to colour-blind readers as well.
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "report/style.h"

namespace cautious::report {
namespace palette_test {

using Colour = std::array<double, 3>;
using Matrix = std::array<Colour, 3>;

// Linear in light.
Colour read_colour(const std::string& text) {
  Colour colour{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double c = std::stoi(text.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    colour[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  return colour;
}

Colour times(const Matrix& m, const Colour& c) {
  Colour product{};
  for (std::size_t i = 0; i < 3; ++i) product[i] = m[i][0] * c[0] + m[i][1] * c[1] + m[i][2] * c[2];
  return product;
}

// WCAG 2.
double contrast(const Colour& a, const Colour& b) {
  const auto light = [](const Colour& c) { return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2] + 0.05; };
  return std::max(light(a), light(b)) / std::min(light(a), light(b));
}

// As seen without, and with protanopia, deuteranopia and tritanopia (Machado, Oliveira and Fernandes 2009).
constexpr std::array<Matrix, 4> kSeen{
    {{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
     {{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}},
     {{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.01182, 0.04294, 0.968881}}},
     {{{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.3039}}}}};

// In Oklab (Ottosson 2020), where black and white are 1 apart.
double distance(const Colour& a, const Colour& b, const Matrix& seen) {
  constexpr Matrix kCones{{{0.4122214708, 0.5363325363, 0.0514459929},
                           {0.2119034982, 0.6806995451, 0.1073969566},
                           {0.0883024619, 0.2817188376, 0.6299787005}}},
      kLab{{{0.2104542553, 0.793617785, -0.0040720468},
            {1.9779984951, -2.428592205, 0.4505937099},
            {0.0259040371, 0.7827717662, -0.808675766}}};
  const auto lab = [&](const Colour& c) {
    Colour shown = times(seen, c);
    for (double& one : shown) one = std::fmin(1, std::fmax(0, one));
    Colour cones = times(kCones, shown);
    for (double& one : cones) one = std::cbrt(one);
    return times(kLab, cones);
  };
  const Colour x = lab(a), y = lab(b);
  return std::hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]);
}

// What stands behind the key, up to a brace or a semicolon.
std::string after(const std::string& text, std::size_t from, const std::string& key) {
  const std::size_t at = text.find(key, from);
  if (at == text.npos) return "";
  return text.substr(at + key.size(), text.find_first_of("};", at) - at - key.size());
}

TEST(Palette, TwelveColoursAreLegibleAndDifferent) {
  const std::string style = series_colours();
  const std::size_t dark = style.find("@media");
  ASSERT_GE(kSeriesStyles, 12u);
  for (const bool is_dark : {false, true}) {
    const Colour ground = read_colour(is_dark ? "#11151c" : "#ffffff");
    std::vector<Colour> colours;
    for (std::size_t i = 0; i < kSeriesStyles; ++i) {
      SCOPED_TRACE(fmt::format("{} {}", is_dark ? "dark" : "light", i));
      const std::string name = after(style, is_dark ? dark : 0, fmt::format(".name.s{}{{color:", i));
      colours.push_back(read_colour(is_dark ? name : after(style, 0, fmt::format(".s{}{{color:", i))));
      EXPECT_GE(contrast(colours.back(), ground), 3);
      EXPECT_GE(contrast(read_colour(name), ground), 4.5);
      for (std::size_t other = 0; other < i; ++other) {
        for (std::size_t eye = 0; eye < kSeen.size(); ++eye) {
          EXPECT_GE(distance(colours[i], colours[other], kSeen[eye]), eye == 0 ? 0.12 : 0.035) << other << " " << eye;
        }
      }
    }
  }
}

// The scripts of a page draw with the colours and dashes of the still figures, and no two series have the same dash or marker.
TEST(Palette, ScriptsAndImagesHaveTheSame) {
  const std::string chart = chart_style(), page = series_properties();
  const std::size_t dark_chart = chart.rfind("@media"), dark_page = page.find("@media");
  std::vector<std::string> dashes, markers;
  for (std::size_t i = 0; i < kSeriesStyles; ++i) {
    EXPECT_EQ(after(page, 0, fmt::format("--s{}:", i)), after(chart, 0, fmt::format(".s{}{{color:", i))) << i;
    EXPECT_EQ(after(page, dark_page, fmt::format("--s{}:", i)), after(chart, dark_chart, fmt::format(".name.s{}{{color:", i)))
        << i;
    const std::string dash = after(page, 0, fmt::format("--d{}:", i)), marker = marker_path({0, 0}, i, 10);
    EXPECT_EQ(dash == " " ? "" : dash, after(chart, 0, fmt::format(".line.s{}{{stroke-dasharray:", i))) << i;
    EXPECT_EQ(std::count(dashes.begin(), dashes.end(), dash), 0) << i;
    EXPECT_EQ(std::count(markers.begin(), markers.end(), marker), 0) << i;
    dashes.push_back(dash);
    markers.push_back(marker);
  }
}

}  // namespace palette_test
}  // namespace cautious::report
