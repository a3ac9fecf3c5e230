// All rules. A rule answers one question: which direction u? It never sees x, the learning rate or the weight decay.
// To add one: a file beside these and a word in this list.
#pragma once

#include <variant>

#include <cautious/rules/adam.h>
#include <cautious/rules/lion.h>
#include <cautious/rules/lion_k.h>
#include <cautious/rules/muon.h>
#include <cautious/rules/sgd.h>
#include <cautious/rules/sgdm.h>

namespace cautious {

using Rule = std::variant<Sgd, Sgdm, Adam, Lion, LionK, Muon>;

}  // namespace cautious
