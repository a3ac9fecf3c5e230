// A toy study turned into the figure that report draws.
#pragma once

#include <span>

#include "lab/toy.h"
#include "report/plane_figure.h"

namespace cautious {

PlaneFigure toy_picture(std::span<const ToyStudy> studies);

}  // namespace cautious
