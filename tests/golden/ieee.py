"""Binary floating point by exact rational arithmetic, standard library only.

Every operation takes and gives Python floats that are exactly representable in the format, rounds once to nearest even, and
treats numbers below the smallest normal one as zero of the same sign: operands before the operation, results after it (a
result is tiny if it is below that limit after rounding with an unbounded exponent). Slow and meant to be read.
"""

import math
from fractions import Fraction

INF, NAN = math.inf, math.nan


def is_negative(a):
    return math.copysign(1.0, a) < 0


class Format:
    def __init__(self, precision, emax):
        self.precision, self.emax, self.emin = precision, emax, 1 - emax
        self.smallest_normal = math.ldexp(1.0, self.emin)

    def flush(self, a):
        return math.copysign(0.0, a) if abs(a) < self.smallest_normal else a

    def nearest(self, q, negative_zero=False):
        """The Fraction q rounded to the format; an exact zero has the given sign."""
        if q == 0:
            return -0.0 if negative_zero else 0.0
        sign, n, d = (-1.0 if q < 0 else 1.0), abs(q.numerator), q.denominator
        e = n.bit_length() - d.bit_length()  # 2^(e-1) < n/d < 2^(e+1); made 2^e <= n/d < 2^(e+1)
        if (n << -e if e < 0 else n) < (d << e if e > 0 else d):
            e -= 1
        shift = e - self.precision + 1  # exponent of the last place
        digits = round(Fraction(n << max(-shift, 0), d << max(shift, 0)))  # ties to even
        if digits >> self.precision:
            e += 1
        if e < self.emin:
            return sign * 0.0
        if e > self.emax:
            return sign * INF
        return sign * math.ldexp(float(digits), shift)

    def of(self, a):
        """A double converted to the format."""
        if a == 0 or math.isnan(a) or math.isinf(a):
            return a
        return self.nearest(Fraction(a))

    def fma(self, a, b, c):
        a, b, c = self.flush(a), self.flush(b), self.flush(c)
        if math.isnan(a) or math.isnan(b) or math.isnan(c):
            return NAN
        negative = is_negative(a) != is_negative(b)
        if math.isinf(a) or math.isinf(b):
            product = -INF if negative else INF
            invalid = a == 0 or b == 0 or c == -product
            return NAN if invalid else product
        if math.isinf(c):
            return c
        if a == 0 or b == 0:
            if c != 0:
                return c
            return -0.0 if negative and is_negative(c) else 0.0
        return self.nearest(Fraction(a) * Fraction(b) + Fraction(c))

    def mul(self, a, b):
        return self.fma(a, b, -0.0 if is_negative(a) != is_negative(b) else 0.0)

    def add(self, a, b):
        return self.fma(1.0, a, b)

    def sub(self, a, b):
        return self.fma(1.0, a, -b)

    def div(self, a, b):
        a, b = self.flush(a), self.flush(b)
        if math.isnan(a) or math.isnan(b):
            return NAN
        sign = -1.0 if is_negative(a) != is_negative(b) else 1.0
        if math.isinf(a):
            return NAN if math.isinf(b) else sign * INF
        if math.isinf(b):
            return sign * 0.0
        if b == 0:
            return NAN if a == 0 else sign * INF
        return self.nearest(Fraction(a) / Fraction(b), sign < 0)

    def sqrt(self, a):
        a = self.flush(a)
        if a == 0 or math.isnan(a) or a == INF:
            return a
        if a < 0:
            return NAN
        q = Fraction(a)
        scale = 2 * max(self.precision, q.denominator.bit_length())  # far more bits than the result has
        scaled = (q.numerator << (2 * scale)) // q.denominator
        root = math.isqrt(scaled)
        sticky = 0 if root * root == scaled else 1  # decides on which side of a tie the root lies
        return self.nearest(Fraction(2 * root + sticky, 1 << (scale + 1)))


F32, F64 = Format(24, 127), Format(53, 1023)
