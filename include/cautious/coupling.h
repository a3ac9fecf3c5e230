// How weight decay follows the learning rate: the factor that multiplies a decayed parameter in step t.
//   plain        lr_t * wd                 (AdamW as in PyTorch)
//   corrected    lr_t^2 / lr_max * wd      (AdamC)
//   independent  lr_t / lr_max * wd        (wd alone at the peak)
//   squared      lr_t^2 * wd
#pragma once

#include <array>
#include <string_view>

namespace cautious {

enum class Coupling { plain, corrected, independent, squared };

constexpr auto names_of(Coupling) { return std::array<std::string_view, 4>{"plain", "corrected", "independent", "squared"}; }

// The weight decay that, multiplied by lr, gives the coupled factor. lr_max is the schedule's peak; corrected and independent
// throw an Error where it is not positive.
double coupled_weight_decay(Coupling coupling, double weight_decay, double lr, double lr_max);

}  // namespace cautious
