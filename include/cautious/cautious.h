// Umbrella: all a user of raw buffers needs.
#pragma once

#include <cautious/error.h>
#include <cautious/optimizer.h>
#include <cautious/polar.h>
#include <cautious/recipe.h>
#include <cautious/schedule.h>
