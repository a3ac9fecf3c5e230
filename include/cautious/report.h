// What one step did: counted and summed in the same pass as the step, the same bits for any number of threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cautious {

// Everything refers to the parameters before the step. Sums are zero when Options::norms is off.
struct Tally {
  std::int64_t count = 0;         // coordinates
  std::int64_t decayed = 0;       // coordinates that decayed
  std::int64_t active = 0;        // coordinates with u * x > 0, whatever the decay (x - x0 with an anchor)
  std::int64_t nonfinite = 0;     // NaN or infinite gradient entries
  double x2 = 0, g2 = 0, u2 = 0;  // sums of squares; g as given, before clipping
  double budget = 0;              // sum of |lr wd x| over decayed coordinates

  double ratio() const { return part(decayed); }        // NaN if empty
  double ratio_strict() const { return part(active); }  // the paper's r_t
  double rms_x() const;
  double rms_g() const;
  double rms_u() const;
  Tally& operator+=(const Tally& other) {
    count += other.count, decayed += other.decayed, active += other.active, nonfinite += other.nonfinite;
    x2 += other.x2, g2 += other.g2, u2 += other.u2, budget += other.budget;
    return *this;
  }

 private:
  double part(std::int64_t of) const { return static_cast<double>(of) / static_cast<double>(count); }
};

struct StepReport {
  std::int64_t step = 0;  // steps taken, this one included unless skipped
  bool skipped = false;   // a non-finite gradient under Nonfinite::skip
  double clip_scale = 1;  // what global-norm clipping multiplied the gradients by
  Tally total;
  std::vector<Tally> tensors;  // in the order they were added; zero counts for a tensor without gradient
};

}  // namespace cautious
