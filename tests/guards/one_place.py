"""Algorithm 1 exists once. Recognised by meaning, in several spellings: a mask, which compares the signs of a direction (or
gradient) and a parameter, and a decay term, which is weight decay times a parameter. Samples below check the recognition."""
import re

from tree import files, finish, read

# Where they are, and how often: the three masks of decays.h and the count of active coordinates in each loop; the decay term of
# Algorithm 1 itself.
MASKS = {"include/cautious/decays.h": 3, "src/kernels/apply.h": 2, "src/kernels/grid.h": 1, "src/torch/aten_step.cc": 1}
TERMS = {"src/kernels/algorithm1.h": 1}

U = r"(?<!\w)(?:u|g|d|grads?|gradients?|updates?|directions?|dir)_?(?!\w)"
X = r"(?<!\w)(?:x|w|p|theta|params?|parameters?|weights?|pull|away|shrunk|moved)_?(?!\w)"
WD = r"(?<!\w)(?:wd|weight_decay|decay_rate|lambda_?)_?(?!\w)"
COMPARED = r"\)*(?:[<>]=?\(*0(?![.\w]*[1-9])|\.(?:ge|le|gt|lt|greater|less)(?:_equal)?\(0)"


def pair(between):
    return rf"(?:{U}{between}{X}|{X}{between}{U})"


def signs(between):
    """Both signs, of whatever name: a function of each or a method of each; or a direction and a parameter compared with zero."""
    spellings = (r"(?:sign|sgn|signbit)\(\w+\)", r"\w\.(?:sign|sgn|signbit)\(\)", r"copysign\([^,()]*,\w+\)")
    compared = [rf"\(*{of}[<>]=?0\)*" for of in (U, X)]
    return [f"{one}{between}\\w*{one}" for one in spellings] + [between.join(compared), between.join(reversed(compared))]


MASK = [
    pair(r"\)*\*\(*") + COMPARED,
    rf"(?<![\w.])0[<>]=?\(*{pair(r'[)]*[*][(]*')}",
    rf"(?:mul\({pair(',')}|fma\({pair(',')},0)\){COMPARED}", rf"\.mul\((?:{U}|{X})\){COMPARED}",
    rf"(?:ge|le|gt|lt)\(\(*{pair('[*]')}\)*,0",
    *signs(r"\)*(?:\*|==|!=|\^|&&|\.mul\(|\.eq\(|\.ne\(|,)\(*(?:\w+::)?"),
    r"(?:(?<!\w)|(?<=return))signed_product\(",
]
ON_X = rf"\(*(?:(?:\w+::)?(?:select|where)\([^;]*?,|[^;,?]*\?(?:0:)?)?{X}"
TERM = [
    rf"{WD}\)*\*(?:\w+\*)?{ON_X}", rf"{X}\)*\*\(*(?:1-)?\(*(?:-?lr\*)?{WD}",
    rf"fma\(-?(?:lr\*)?{WD},{ON_X}",
    rf"(?:add|sub)_?\({ON_X}[^;]*?,-?(?:lr\*)?{WD}", rf"addcmul_?\([^;]*{X}[^;]*{WD}",
    rf"(?:mul_?\(|\*=)\(*1-\(*lr\*{WD}",
]


def plain(text):
    """Without comments, text, casts, indices, owners and spaces; names for a product or a sign are replaced by what they name."""
    text = re.sub(r"//.*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"", "", text)
    text = re.sub(r"^\s*#.*", "", text, flags=re.M)
    text = re.sub(r"(?:static_cast|as)<[^<>]*>|\[[^\[\]]*\]|\b(?:const|std::|at::(?!Tensor)|this->)|\b(?:double|float|T)(?=\()", "", text)
    text = re.sub(r"\b\w+(?:\.|->)(?=\w+\b(?!\())", "", text)
    text = re.sub(r"(?<!\w)\((\w+)\)(?=\s*[*<>])", r"\1", text)
    named = re.findall(r"\b(?:auto|T|V|float|double|bool|Tensor)&?\s+(\w+)\s*=\s*([^;{}]{3,80});", text)
    text = re.sub(r"\s+", "", text)
    for name, value in named:
        value = re.sub(r"\s+", "", value)
        if re.fullmatch(rf"\(*{pair('[*]')}\)*|mul\({pair(',')}\)|(?:sign|signbit)\((?:{U}|{X})\)|(?:{U}|{X})\.sign\(\)", value):
            text = re.sub(rf"(?<!\w){name}(?!\w)(?!=[^=])", value, text)
        elif re.search(rf"\?(?:{WD}:0|0:{WD})", value):
            text = re.sub(rf"(?<!\w){name}(?!\w)(?!=[^=])", "wd", text)
    return re.sub(r"(?<=[(*=<>,])\((\w+)\)", r"\1", text)


def count(patterns, text):
    return len({match.start() for pattern in patterns for match in re.finditer(pattern, text)})


# Algorithm 1 as others would write it; both halves must be seen in each.
AGAIN = [
    "for (int i = 0; i < n; ++i) if (u[i] * x[i] >= 0) x[i] -= lr * wd * x[i];",
    "const bool on = std::signbit(g[i]) == std::signbit(w[i]);  w[i] *= 1 - (lr * weight_decay) * on;",
    "const at::Tensor on = (update.sign() * p.sign()).ge(0);  p.add_(at::where(on, p, zero), -lr * wd);",
    "const T product = static_cast<T>(u[i]) * x[i];  x[i] = fma(-lr, fma(wd, product < 0 ? 0 : x[i], u[i]), x[i]);",
    "auto off = at::mul(grad, param) < 0;  param.sub_(group.weight_decay * at::where(off.logical_not(), param, 0));",
    "const T k = std::copysign(1.f, u) == std::copysign(1.f, x) ? wd : 0;  x = x - lr * u - lr * k * x;",
    "auto mask = (u.mul(p) >= 0).to(at::kFloat);  p.add_(p * mask, -lr * wd);",
    "at::Tensor opposite(at::Tensor a, at::Tensor b) { return a.sign() * b.sign() < 0; }  x.add(u.add(shrunk, move.wd), -move.lr);",
    "const bool on = !(lane.u > 0 && lane.pull < 0);  y = lane.x - lr * (lane.u + options.wd * lane.pull);",
]
# What looks similar and is something else.
OTHER = [
    "m = mix(m, g, b1, r1);  v = mix(v, g * g, b2, r2);  return sign(m);",
    "return weight_decay * (lr / lr_max);  budget *= move.lr * move.wd;",
    "if (width * height > 0 && options.weight_decay > 0) total += x * x;",
]

faults = [f"the guard does not see this as {what}: {sample}" for sample in AGAIN
          for what, patterns in (("a mask", MASK), ("a decay term", TERM)) if not count(patterns, plain(sample))]
faults += [f"the guard takes this for Algorithm 1: {sample}" for sample in OTHER if count(MASK + TERM, plain(sample))]
code = {str(path): plain(read(path)) for path in files("include", "src", suffixes={".h", ".cc", ".cu"})}
for what, patterns, expected in (("a mask", MASK, MASKS), ("a decay term", TERM, TERMS)):
    for path, text in code.items():
        found, allowed = count(patterns, text), expected.get(path, 0)
        if found != allowed:
            faults.append(f"{path}: {what} is written {found} times, {allowed} expected; masks belong in include/cautious/decays.h, "
                          "the step in src/kernels/algorithm1.h")
finish(faults, len(code))
