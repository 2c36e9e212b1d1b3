"""Print the polynomials of core/features.py: sin(πr)/r and cos(πr) in r², r in [−1/2, 1/2].

Interpolation at Chebyshev nodes, in 60 digits. Needs mpmath (``pip install mpmath``), which
nothing else here does.
"""

import mpmath


def fit(function, n_terms):
    """Coefficients, lowest power first, of the interpolant in q = r² on [0, 1/4]."""
    mpmath.mp.dps = 60
    angles = [mpmath.pi * (2 * i + 1) / (2 * n_terms) for i in range(n_terms)]
    nodes = [(1 + mpmath.cos(a)) / 8 for a in angles]
    powers = mpmath.matrix([[q**j for j in range(n_terms)] for q in nodes])
    values = mpmath.matrix([function(mpmath.sqrt(q)) for q in nodes])
    return [float(c) for c in mpmath.lu_solve(powers, values)]


def main():
    for bits, n_terms in (("single", 6), ("double", 11)):
        print(bits, "sine  ", fit(lambda r: mpmath.sin(mpmath.pi * r) / r, n_terms))
        print(bits, "cosine", fit(lambda r: mpmath.cos(mpmath.pi * r), n_terms))


if __name__ == "__main__":
    main()
