"""Numbers that the paper prints, as data, with their place."""

#: Table I: (eta_g, rho) → set → (MSE, CV), both times 100; rho as printed, K = 10, connection 0.25
TABLE_1: dict[tuple[int, int], dict[str, tuple[float, float]]] = {
    (10, 10): {"conductivity": (5.23, 3.11), "weather": (0.41, 0.25)},
    (10, 100): {"conductivity": (4.78, 1.10), "weather": (0.49, 0.19)},
    (10, 1000): {"conductivity": (4.98, 0.46), "weather": (0.86, 0.21)},
    (100, 10): {"conductivity": (5.68, 2.77), "weather": (0.55, 0.28)},
    (100, 100): {"conductivity": (4.93, 0.95), "weather": (0.66, 0.23)},
    (100, 1000): {"conductivity": (5.27, 0.46), "weather": (1.16, 0.25)},
}

#: (43), as printed: for features that are not divided by the root of M
RHO, ETA_L, ETA_G, N_FREQUENCIES = 100, 10, 10, 50

#: rho of Table I
RHOS = (10, 100, 1000)

#: what the printed rho and eta_l are divided by to suit eq. (5), whose features are
UNSCALED = 50

#: Section V-B: the best kernel of the Wave energy data
BEST_KERNEL = {"wave": 1e-2}
