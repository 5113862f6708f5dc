"""The complementary error function of float64, in arithmetic that processors have vectors of."""

from __future__ import annotations

from typing import Any

from tvmgraph.ops._numpy_math import polynomial

#: (1 + 2a) exp(a^2) erfc(a) in u = (9a/7 - 4) / (a + 4), on -1 <= u <= 1 for 0 <= a <= 28; highest
#: power first. A Chebyshev interpolation with an error below 2^-53.
_SCALED_POLY = (
    1.1810281311298875e-11, 5.701715004910485e-11, -1.6448475973780824e-10, -8.529233660704607e-10,
    1.6652124102185668e-09, 8.355991494838862e-09, -1.849319422692417e-08, -7.032610102642964e-08,
    2.3712161527009406e-07, 4.5316673350388675e-07, -3.125364178122722e-06, 6.694352838086534e-07,
    3.414612723890797e-05, -0.00010246350842849849, -8.368080572402221e-05, 0.0017257044655721579,
    -0.007665324198094414, 0.022129789677086262, -0.04793111599501418, 0.0808385707291274,
    -0.10434370398529631, 0.09124356129722531, -0.01663582317882339, -0.12193736651647731,
    1.2505272632390394,
)  # fmt: skip
#: erfc is 0 from here on.
_MAX = 28.0


def complementary_error(m: Any, x: Any) -> Any:
    """erfc(x) = exp(-a^2) P(u(a)) / (1 + 2a) with a = |x|, and 2 less that for x < 0.

    Args:
        m: A :class:`~tvmgraph.ops._pointwise.TirMath` of float64.
        x: The argument.
    """

    def of_magnitude(a: Any) -> Any:
        scaled = m.let((a * (9 / 7) - 4.0) / (a + 4.0), lambda u: polynomial(u, _SCALED_POLY))
        return m.let(_exp_of_square(m, a) * scaled / (a * 2.0 + 1.0), signed)

    def signed(y: Any) -> Any:
        value = m.where(x < 0, 2.0 - y, y)
        return m.where(m.isnan(x), x, value)

    magnitude = m.where(x < 0, -x, x)
    return m.let(m.where(magnitude < _MAX, magnitude, _MAX), of_magnitude)


def _exp_of_square(m: Any, a: Any) -> Any:
    """exp(-a^2) = exp(-h^2) exp(-d), h having half the bits so that its square is exact."""

    def series(d: Any) -> Any:  # of exp(-d) for d < 1e-4
        return 1.0 - d * (1.0 - d * (0.5 - d * (1 / 6)))

    def body(h: Any) -> Any:
        return m.exp(-h * h) * m.let((a - h) * (a + h), series)

    return m.let(m.tir.Cast("float64", m.tir.Cast("float32", a)), body)
