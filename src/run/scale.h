// What a step costs with so many ranks on some hardware, on paper: peak, bandwidths and the part of them that is reached are
// inputs. Nothing is measured here; `cautious bench scale` holds the model against runs on this machine.
#pragma once

#include <string>
#include <string_view>
#include <tuple>

#include <cautious/detail/field.h>

#include "run/config.h"

namespace cautious::run {

// Of one rank, from its data sheet. Bandwidths are of one direction, in bytes per second.
struct Hardware {
  std::string label;
  double peak = 0;              // FLOP/s of matrix products in bf16
  double memory = 0;            // bytes
  double memory_bandwidth = 0;  // read and write together
  double link = 0;              // to the other ranks of its machine
  double network = 0;           // to those of other machines
  double per_machine = 8;       // ranks
  double utilization = 0.4;     // of the peak, in training

  static constexpr auto fields() {
    return std::tuple{Field{"peak", &Hardware::peak, kPositive, "FLOP/s of matrix products"},
                      Field{"memory", &Hardware::memory, kPositive, "bytes"},
                      Field{"memory_bandwidth", &Hardware::memory_bandwidth, kPositive, "bytes per second"},
                      Field{"link", &Hardware::link, kPositive, "bytes per second to ranks of the same machine"},
                      Field{"network", &Hardware::network, kPositive, "bytes per second to ranks of other machines"},
                      Field{"per_machine", &Hardware::per_machine, kPositive, "ranks of a machine"},
                      Field{"utilization", &Hardware::utilization, kFraction, "fraction of the peak that training reaches"}};
  }
};

std::vector<std::string> hardware_names();
// "a100-80g", or with other numbers: "a100-80g utilization=0.5 network=50e9".
Hardware parse_hardware(std::string_view line);

// What a step does, whatever the hardware.
struct Load {
  double parameters = 0;
  double weight_bytes = 4, gradient_bytes = 4, state_bytes = 8;  // of a parameter, in memory
  double sum_bytes = 4;                                          // of a gradient on its way: sums are in f32
  double activation_bytes = 0;                                   // of a rank
  double flops = 0;                                              // of all ranks
};
// The activations are those of one of `ranks`.
Load load_of(const RunConfig& config, int ranks);

struct StepCost {
  double memory = 0;                     // bytes of a rank
  double sent = 0;                       // bytes by a rank: gradients, then parameters, (n - 1) / n of each
  double compute = 0;                    // seconds
  double gradients = 0, parameters = 0;  // seconds on the way
  double exposed = 0;                    // of those that the backward pass, two thirds of the computing, does not hide
  double optimizer = 0;                  // seconds
  double step() const { return compute + exposed + optimizer; }
};
StepCost cost_of(const Load& load, const Hardware& hardware, int ranks);

// The part of gradients and parameters on their way that is not hidden behind `compute` seconds.
double exposed_seconds(double compute, double gradients, double parameters);

}  // namespace cautious::run
