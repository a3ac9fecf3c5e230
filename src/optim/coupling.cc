#include <cautious/error.h>
#include <cautious/recipe.h>

#include <fmt/format.h>

namespace cautious {

double coupled_weight_decay(Coupling coupling, double weight_decay, double lr, double lr_max) {
  const bool needs_peak = coupling == Coupling::corrected || coupling == Coupling::independent;
  if (needs_peak && !(lr_max > 0)) {
    throw Error(Fault::usage, fmt::format("coupling '{}' needs the schedule's peak: lr_max is {}; valid: (0, inf)",
                                          name_of(coupling), lr_max));
  }
  switch (coupling) {
    case Coupling::plain:
      return weight_decay;
    case Coupling::corrected:
      return weight_decay * (lr / lr_max);  // exactly weight_decay at the peak
    case Coupling::independent:
      return weight_decay / lr_max;
    case Coupling::squared:
      return weight_decay * lr;
  }
  throw Error(Fault::usage, fmt::format("coupling {} is none of the four", static_cast<int>(coupling)));
}

}  // namespace cautious
