"""Recipes as text, "adamw decay=cautious beta2=0.95", for reference.py: names, fields, ranges, defaults and couplings of
docs/spec.md, and what is wrong with a line. No tensors here."""
import difflib
import functools
import math
import re

QUINTIC = ((4.0848, -6.8946, 2.9270), (3.9505, -6.3029, 2.6377), (3.7418, -5.5913, 2.3037), (2.8769, -3.1427, 1.2046),
           (2.8366, -3.0525, 1.2012))
# a, b, c of each Newton-Schulz step
SCHEDULES = {
    "paper": ((3.4445, -4.7750, 2.0315),) * 5,
    "quintic": QUINTIC,
    "polar-express": ((8.156554524902461, -22.48329292557795, 15.878769915207462),
                      (4.042929935166739, -2.808917465908714, 0.5000178451051316),
                      (3.8916678022926607, -2.772484153217685, 0.5060648178503393),
                      (3.285753657755655, -2.3681294933425376, 0.46449024233003106),
                      (2.3465413258596377, -1.7097828382687081, 0.42323551169305323)),
    "polar-express-8": ((8.2051, -22.9019, 16.4607), (4.0664, -2.8612, 0.5184), (3.9096, -2.8234, 0.5250),
                        (3.2856, -2.4153, 0.4853), (2.2779, -1.6198, 0.3985), (1.8726, -1.2307, 0.3585),
                        (1.8564, -1.2132, 0.3568), (1.875, -1.25, 0.375)),
    "cans": ((8.4703, -25.1081, 18.6293), (4.1828, -3.1087, 0.5806), (3.9619, -2.9541, 0.5630), (3.2866, -2.4647, 0.5074),
             (2.2737, -1.6447, 0.4162)),
    "turbo": QUINTIC[1:],  # the preconditioner replaces the first
    "exact": (),
    "custom": (),
}

# A field is (owner in messages, default, valid): a range, the choices, or NUMBERS for a list.
MOMENTUM, FRACTION, NONNEGATIVE, POSITIVE, NUMBERS = "[0, 1)", "[0, 1]", "[0, inf)", "(0, inf)", "numbers, 1,2,3"
POLAR = {name: (" of the polar factor", *field) for name, field in {
    "schedule": ("paper", tuple(SCHEDULES)), "steps": (0, "[0, 100]"), "scale": ("none", ("none", "jordan", "rms")),
    "eps": (0.0, NONNEGATIVE), "blocks": (1, "[1, 1000000000]"), "coefficients": ((), NUMBERS)}.items()}
RULES = {
    "sgd": {},
    "sgdm": {"beta": (" of sgdm", 0.9, MOMENTUM)},
    "adam": {"beta1": (" of adam", 0.9, MOMENTUM), "beta2": (" of adam", 0.999, MOMENTUM),
             "eps": (" of adam", 1e-8, NONNEGATIVE)},
    "lion": {"beta1": (" of lion", 0.9, MOMENTUM), "beta2": (" of lion", 0.99, MOMENTUM)},
    "lion-k": {"beta1": (" of lion-k", 0.9, MOMENTUM), "beta2": (" of lion-k", 0.99, MOMENTUM),
               "k": (" of lion-k", "l1", ("l1", "l2", "lp", "huber", "relativistic", "threshold", "topk", "nuclear")),
               "p": (" of lion-k", 2.0, "[1, 1000]"), "e": (" of lion-k", 1e-3, POSITIVE),
               "fraction": (" of lion-k", 0.1, FRACTION), **POLAR},
    "muon": {"beta": (" of muon", 0.95, MOMENTUM), "nesterov": (" of muon", "off", ("off", "on")), **POLAR},
}
SHAPING = ("lion-k", "muon")
DECAYS = {name: {} for name in ("none", "decoupled", "cautious", "opposed", "gradient", "random", "shuffled", "layerwise",
                                "selective", "anchored")}
for masked in ("cautious", "opposed", "shuffled"):
    DECAYS[masked] = {"mask": (f" of {masked}", "direction", ("direction", "momentum"))}
DECAYS["random"] = {"density": (" of random", 0.5, FRACTION)}
# Named recipes: rule, decay, coupling, weight_decay.
RECIPES = {
    "sgd": ("sgd", "decoupled", "plain", 1e-4), "sgdm": ("sgdm", "decoupled", "plain", 1e-4),
    "adam": ("adam", "none", "plain", 0.0), "adamw": ("adam", "decoupled", "plain", 0.1),
    "adamc": ("adam", "decoupled", "corrected", 0.1), "lion": ("lion", "decoupled", "plain", 0.1),
    "lion-k": ("lion-k", "decoupled", "plain", 0.1), "muon": ("muon", "decoupled", "plain", 0.1),
}


def quoted(text):
    return f"'{text}'" if len(text) <= 80 else f"'{text[:80]}...' ({len(text)} bytes)"


def one_of(what, value, choices):
    if value in choices:
        return value
    meant = difflib.get_close_matches(value.lower()[:80], choices, 1)
    suggestion = f" did you mean '{meant[0]}'?" if meant else ""
    raise ValueError(f"no {what} named {quoted(value)};{suggestion} choices: {', '.join(choices)}")


def inside(value, valid):
    low, high = (float(end) if end != "inf" else 1e300 for end in valid[1:-1].split(", "))
    return (low <= value if valid[0] == "[" else low < value) and (value <= high if valid[-1] == "]" else value < high)


def read(what, text, whole, valid):
    """A number from text, strictly."""
    pattern = r"-?\d+" if whole else r"-?((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|inf|infinity|nan)"
    if not re.fullmatch(pattern, text, re.ASCII | re.IGNORECASE):
        raise ValueError(f"{what} is {quoted(text)}, not a {'whole ' if whole else ''}number; valid: {valid}")
    value = (int if whole else float)(text)
    if not inside(value, valid):
        raise ValueError(f"{what} is {quoted(text)}; valid: {valid}")
    return value


def value_of(what, text, default, valid):
    if isinstance(valid, tuple):
        return one_of(what, text, valid)
    if valid == NUMBERS:
        return tuple(read(what, part, False, "(-1e+300, inf)") for part in text.split(",")) if text else ()
    return read(what, text, isinstance(default, int), valid)


def check_together(made):
    if made.get("mask") == "momentum" and made["rule"] not in SHAPING:
        raise ValueError(f"mask=momentum is for rules that shape their direction ({', '.join(SHAPING)}); that of "
                         f"{made['rule']} is not shaped and has the signs of what it is made of already: leave mask=direction")
    if "schedule" not in made:
        return
    given, schedule = len(made["coefficients"]), made["schedule"]
    if given and schedule != "custom":
        raise ValueError(f"coefficients are given, but schedule is '{schedule}'; they belong to schedule 'custom'")
    if schedule == "custom" and (given == 0 or given % 3):
        raise ValueError(f"coefficients has {given} numbers; schedule 'custom' needs three for each step: a,b,c")
    if schedule == "exact" and made["steps"] > 0:
        raise ValueError(f"steps is {made['steps']}, but schedule 'exact' has none; leave it 0")


@functools.lru_cache(maxsize=None)
def parse(line):
    """The fields of a recipe by name, with `rule`, `decay`, `coupling` and `weight_decay`. Not to be changed: it is kept."""
    words = [(match.group(), match.start() + 1) for match in re.finditer(r"[^ \t]+", line)]
    if not words:
        raise ValueError('the recipe is empty; write one as in "adamw decay=cautious beta2=0.95"; recipes: '
                         + ", ".join(RECIPES))
    at = words[0][1]
    try:
        rule, decay, coupling, weight_decay = RECIPES[one_of("optimizer", words[0][0], tuple(RECIPES))]
        given = {}
        for word, at in words[1:]:
            field, equals, value = word.partition("=")
            if not equals or not field:
                raise ValueError(f"expected FIELD=VALUE, found {quoted(word)}")
            if field in given:
                raise ValueError(f"{field} is given twice")
            given[field] = (value, at)
        if "decay" in given:
            value, at = given.pop("decay")
            decay = one_of("decay", value, tuple(DECAYS))
        fields = {**RULES[rule], "decay": None, **DECAYS[decay],
                  "coupling": ("", coupling, ("plain", "corrected", "independent", "squared")),
                  "weight_decay": ("", weight_decay, NONNEGATIVE)}
        made = {"rule": rule, **{name: field[1] for name, field in fields.items() if field}, "decay": decay}
        for name, (value, at) in given.items():
            one_of(f"field of {rule} with decay {decay}", name, tuple(fields))
            owner, default, valid = fields[name]
            if name == "schedule" and value == "jordan":  # his quintic under his name
                value = "paper"
            made[name] = value_of(name + owner, value, default, valid)
        check_together(made)
        if "schedule" in made:  # the steps as they are done
            own = SCHEDULES[made["schedule"]] or tuple(zip(*[iter(made["coefficients"])] * 3))
            made["quintics"] = [own[min(i, len(own) - 1)] for i in range((made["steps"] or len(own)) if own else 0)]
        return made
    except ValueError as error:
        raise ValueError(f"recipe {quoted(line)}, character {at}: {error}") from None


def coupled(coupling, weight_decay, lr, lr_max):
    """The weight decay that, multiplied by lr, gives the coupled factor."""
    if coupling in ("corrected", "independent") and not lr_max > 0:
        raise ValueError(f"coupling '{coupling}' needs the schedule's peak: lr_max is {lr_max:g}; valid: (0, inf)")
    if coupling == "corrected":
        return weight_decay * (lr / lr_max)  # exactly weight_decay at the peak
    return weight_decay / lr_max if coupling == "independent" else weight_decay * lr if coupling == "squared" else weight_decay


def check_rates(**rates):
    for what, value in rates.items():
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{what} is {value}; it must be finite and not negative")
