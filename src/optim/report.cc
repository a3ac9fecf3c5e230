#include <cmath>

#include <cautious/optimizer.h>

namespace cautious {

namespace {
double root_mean(double sum, std::int64_t count) { return std::sqrt(sum / static_cast<double>(count)); }
}  // namespace

double Tally::rms_x() const { return root_mean(x2, count); }
double Tally::rms_g() const { return root_mean(g2, count); }
double Tally::rms_u() const { return root_mean(u2, count); }

}  // namespace cautious
