"""DOMKRLS written literally: normal equations, explicit inverses, loops; imports numpy only.

What a learner's samples leave of a fit is the matrix A = ridge·I + Σ w z zᵀ, forgotten in time. A
step of the fit is A⁻¹z·(error), with A after the sample: the same as any form of recursive least
squares. Everything else is written as docs and docstrings say it, for one learner at a time.

A learner has two halves. Each is a whole learner without belief and deviation: one is in the
network, and the other really is alone, with fits of its own.
"""

import math
from statistics import NormalDist

import numpy as np
from paper import features

TOP_PRIOR = [0.94, 0.05, 0.01]  # of the mixtures m and b, and of the last label
FINAL_PRIOR = [0.95, 0.05]  # of no correction, and of one
LEAK = 0.01
BANDS = [0.5, 0.8, 0.95]


class Settings:
    """The parameters, and what follows from them."""

    def __init__(self, sizes, forget, ridge, linear, logistic, lag, horizon, period):
        P, self.D, self.n_inputs, self.M = sizes
        self.ridge, self.linear, self.logistic = ridge, linear, logistic
        self.lag, self.horizon, self.period = lag, horizon, period
        self.forgets = [forget, 1 - 0.01 / horizon]
        # fits: memories alternate over the kernels, and the last kernel has both
        self.kernel = [*range(P), P - 1]
        self.memory = [p % 2 for p in range(P - 1)] + [0, 1]
        self.F = P + 1
        self.ridges = []
        for p in self.kernel:
            has_spectrum = not (linear and p == P - 1)
            self.ridges.append(10 * ridge if has_spectrum and p % 2 == 1 else ridge)
        self.prior = np.full(self.F, 1 / self.F)

    def own_prior(self):
        """Of all experts, for b."""
        persistence = [5e-4] * (1 if self.lag is None else 2)
        return np.array([*(0.999 * self.prior), *(0.001 * self.prior), *persistence])

    def base(self, x):
        return 0.0 if self.lag is None else x[self.lag]

    def waves(self, step):
        """Sine and cosine of four harmonics."""
        angles = [2 * math.pi * j * step / self.period for j in (1, 2, 3, 4)]
        return [wave for angle in angles for wave in (math.sin(angle), math.cos(angle))]

    def has_waves(self):
        return self.linear and self.n_inputs + 9 <= self.D

    def turns(self, step):
        """w_mᵀwaves: w uniform of deviation 1, by multiples of powers of a ratio."""
        ratio, spread = 1.0757660660868371, 0.1  # the root of r⁹ = r + 1
        angles = []
        for m in range(1, self.M + 1):
            w = [math.sqrt(3) * (2 * (m / ratio**j % 1) - 1) for j in range(1, 9)]
            angles.append(spread * sum(a * b for a, b in zip(w, self.waves(step), strict=True)))
        return np.array(angles)

    def turned(self, vector, angle):
        M = self.M
        sine, cosine = vector[:M].copy(), vector[M : 2 * M].copy()
        vector[:M] = sine * np.cos(angle) + cosine * np.sin(angle)
        vector[M : 2 * M] = cosine * np.cos(angle) - sine * np.sin(angle)

    def shown(self, z, step):
        """Features with the season: kernels 6, 14, … are turned, the linear one has waves."""
        if not self.period:
            return z
        z = [each.copy() for each in z]
        for p in range(6, len(z) - 1, 8):
            self.turned(z[p], self.turns(step))
        if self.has_waves():
            place = self.n_inputs + 1
            z[-1][place : place + 8] = 0.1 * np.array(self.waves(step))
        return z

    def set_aside(self, vectors, step):
        """Make them functions of features without the season, in this step."""
        if not self.period:
            return
        for p in range(6, len(vectors) - 1, 8):
            self.turned(vectors[p], -self.turns(step))
        if self.has_waves():
            waves = vectors[-1][self.n_inputs + 1 : self.n_inputs + 9]
            vectors[-1][self.n_inputs] += 0.1 * waves @ self.waves(step)
            waves[:] = 0.0


class Half:
    def __init__(self, settings):
        s = self.s = settings
        F, E = s.F, 2 * s.F + (1 if s.lag is None else 2)
        # means over learners
        self.S = [np.zeros(s.D) for _ in range(F)]
        self.N = np.zeros(F)
        self.loss, self.R, self.V, self.rounds = np.zeros(F), np.zeros(F), np.zeros(F), 0.0
        # its own
        self.phi = [np.zeros(s.D) for _ in range(F)]
        self.A = [ridge * np.eye(s.D) for ridge in s.ridges]
        self.n = np.zeros(F)
        self.own_R, self.own_V = np.zeros(E), np.zeros(E)
        self.score, self.final, self.own_rounds = np.zeros(3), np.zeros(2), 0.0
        self.correction, self.clue_A = np.zeros(6), 10 * np.eye(6)
        self.errors = {}  # by step
        self.residual, self.nearby = 0.0, 0.0
        self.last, self.same, self.other = 0.0, 0, 0
        self.has_last = False

    # weights

    def mixtures(self):
        """Weights of m over the θs, of b over all experts, and at the top."""
        s = self.s
        m = polynomial(self.R, self.V, s.prior)
        b = polynomial(self.own_R, self.own_V, s.own_prior())
        scale = s.horizon * self.scale(self.score, self.own_rounds)
        share = self.newest_share()
        top = [(1 - share) * w for w in evidence(self.score, TOP_PRIOR, scale)]
        if s.lag is None:
            top[2] += share
        return m, b, top

    def newest_share(self):
        """A half for the lag before the first label, less with each; or for an only label."""
        s, n = self.s, self.n[0]
        if s.lag is not None:
            return 0.5 / (1 + (n / (2 * s.horizon)) ** 2)
        return 0.5 if n == 1 and not s.logistic else 0.0

    def scale(self, losses, rounds):
        return 1.0 if self.s.logistic else 2 * variance(losses, rounds)

    def shares(self):
        """Of each θ, of each φ, of last label and of the lag, in the mixture of the mixtures."""
        m, b, top = self.mixtures()
        F = self.s.F
        thetas = [top[0] * m[i] + top[1] * b[i] for i in range(F)]
        phis = [top[1] * b[F + i] for i in range(F)]
        others = [top[1] * w for w in b[2 * F :]]
        others[0] += top[2]
        if self.s.lag is not None:
            others[1] += self.newest_share()
        if not self.has_last:  # m stands for it
            thetas = [thetas[i] + others[0] * m[i] for i in range(F)]
            others[0] = 0.0
        return thetas, phis, others

    def theta(self, i):
        """The own fit stands for the mean while nobody has samples."""
        return self.S[i] / self.N[i] if self.N[i] > 0 else self.phi[i]

    # prediction

    def predict(self, x, z, ago, label_ago):
        """With the step of a season ago and its label; None without one."""
        s = self.s
        m, b, top = self.mixtures()
        base = s.base(x)
        thetas = [base + self.theta(i) @ z[s.kernel[i]] for i in range(s.F)]
        phis = [base + self.phi[i] @ z[s.kernel[i]] for i in range(s.F)]
        f_m = sum(m[i] * thetas[i] for i in range(s.F))
        last = self.last * self.odds() if self.has_last else f_m
        experts = [*thetas, *phis, last] + ([] if s.lag is None else [base])
        f_b = sum(w * f for w, f in zip(b, experts, strict=True))
        f = top[0] * f_m + top[1] * f_b + top[2] * last
        if s.lag is not None:
            f += self.newest_share() * base
        deviation = 0.0
        if self.own_rounds > 0 and not s.logistic:
            deviation = math.sqrt(self.final[0] / self.own_rounds)
        gap = clip((self.last - f) / deviation) if deviation > 0 else 0.0
        error_ago, season_gap = 0.0, 0.0
        if deviation > 0 and label_ago is not None:
            error_ago, season_gap = self.errors[ago], clip((label_ago - f) / deviation)
        clues = [1.0, self.residual, self.nearby, error_ago, gap, season_gap]
        corrected = f + deviation * (self.correction @ clues)
        scale = s.horizon * self.scale(self.final, self.own_rounds)
        q = evidence(self.final, FINAL_PRIOR, scale)
        return {
            "experts": experts,
            "mixtures": [f_m, f_b, last],
            "final": [f, corrected],
            "clues": clues,
            "y_hat": q[0] * f + q[1] * corrected,
        }

    def odds(self):
        """What the last label counts: of labels ±1 the log-odds that the next one is the same."""
        return math.log((1 + self.same) / (1 + self.other)) if self.s.logistic else 1.0

    # learning: what is said to the neighbors is returned

    def repeat(self):
        means = ([v.copy() for v in self.S], self.N, self.loss, self.R, self.V, self.rounds)
        return (*means, 0.0)

    def learn(self, x, z, y, said):
        accounts = self.shared_accounts(y, said)
        residual = self.learn_correction(y, said)
        self.add_own(y, said)
        S, N = self.learn_fits(x, z, y)
        if self.s.logistic and self.has_last:
            if y == self.last:
                self.same += 1
            else:
                self.other += 1
        self.last, self.has_last = y, True
        return (S, N, *accounts, residual)

    def shared_accounts(self, y, said):
        """Losses of the θs, regrets of m towards them, and the number of labels."""
        keep = 2 * self.rounds / (2 * self.rounds + 1)
        s2 = variance(self.loss, self.rounds)
        thetas, f = said["experts"][: self.s.F], said["mixtures"][0]
        losses = np.array([self.loss_of(each, y, s2) for each in thetas])
        r = np.array([self.slope(f, y, s2) * apart(f, each) for each in thetas])
        V = keep * self.V + r**2
        return keep * self.loss + losses, keep * self.R + r, V, keep * self.rounds + 1

    def add_own(self, y, said):
        if not self.has_last:  # the first label: nothing told the experts apart before
            return
        keep = 2 * self.own_rounds / (2 * self.own_rounds + 1)
        s2, final_s2 = (variance(each, self.own_rounds) for each in (self.score, self.final))
        f = said["mixtures"][1]
        r = np.array([self.slope(f, y, s2) * apart(f, each) for each in said["experts"]])
        self.own_R, self.own_V = keep * self.own_R + r, keep * self.own_V + r**2
        for j in range(3):
            self.score[j] = keep * self.score[j] + self.loss_of(said["mixtures"][j], y, 4 * s2)
        for j in range(2):
            self.final[j] = keep * self.final[j] + self.loss_of(said["final"][j], y, final_s2)
        self.own_rounds = keep * self.own_rounds + 1

    def learn_correction(self, y, said):
        if self.own_rounds == 0 or self.final[0] == 0 or self.s.logistic:
            self.residual = 0.0
            return 0.0
        error = clip((y - said["final"][0]) / math.sqrt(self.final[0] / self.own_rounds))
        clues = np.array(said["clues"])
        self.clue_A = 0.999 * self.clue_A + np.outer(clues, clues)
        left = error - self.correction @ clues
        self.correction = self.correction + np.linalg.inv(self.clue_A) @ clues * left
        self.clue_A = capped(self.clue_A, 10.0)
        self.residual = error
        return error

    def learn_fits(self, x, z, y):
        """S + n⁺φ⁺ − nφ and N + n⁺ − n, and a leak towards n⁺φ⁺ and n⁺, less where N is less."""
        s, before = self.s, self.n
        self.n = np.array([s.forgets[s.memory[i]] * before[i] + 1 for i in range(s.F)])
        N = self.N + self.n - before
        leak = [LEAK * min(1.0, N[i] / self.n[i]) ** 2 for i in range(s.F)]
        said = []
        for i in range(s.F):
            forget, phi = s.forgets[s.memory[i]], self.phi[i]
            self.phi[i] = self.fitted(i, z[s.kernel[i]], y - s.base(x), forget)
            moved = self.S[i] + self.n[i] * self.phi[i] - before[i] * phi
            said.append((1 - leak[i]) * moved + leak[i] * self.n[i] * self.phi[i])
        return said, np.array([(1 - leak[i]) * N[i] + leak[i] * self.n[i] for i in range(s.F)])

    def fitted(self, i, z, y, forget):
        """The fit with one more sample."""
        phi, f = self.phi[i], self.phi[i] @ z
        if self.s.logistic:
            inverse = np.linalg.inv(forget * self.A[i])
            reach = z @ inverse @ z
            s = logistic_minimiser(f, y, reach)
            move = (s - f) / reach * inverse @ z
            curvature = max(sigmoid(s) * (1 - sigmoid(s)), 1e-6)
            self.A[i] = forget * self.A[i] + curvature * np.outer(z, z)
        else:
            self.A[i] = forget * self.A[i] + np.outer(z, z)
            move = np.linalg.inv(self.A[i]) @ z * (y - f)
        if forget < 1:
            self.A[i] = capped(self.A[i], self.s.ridge)
        return phi + move

    def loss_of(self, f, y, s2):
        return math.log1p(math.exp(-y * f)) if self.s.logistic else robust(y - f, s2)

    def slope(self, f, y, s2):
        if self.s.logistic:
            return -y * sigmoid(-y * f)
        return f - y if s2 == 0 else max(-5 * math.sqrt(s2), min(f - y, 5 * math.sqrt(s2)))

    def merge(self, S, N, loss, R, V, rounds, nearby):
        self.S, self.N, self.loss, self.R, self.V, self.rounds = S, N, loss, R, V, rounds
        self.nearby = nearby


class Learner:
    def __init__(self, settings):
        self.s = settings
        self.net, self.alone = Half(settings), Half(settings)
        self.sides, self.rounds = np.zeros(2), 0.0  # losses of both, and their number
        self.noise, self.n_noise = 0.0, 0.0
        # half widths of the bands of 50, 80 and 95 %, below and above the prediction
        self.bands = [[1.96 * math.log(1 / (1 - c)) / math.log(20)] * 2 for c in BANDS]
        self.Q, self.n_Q, self.row, self.beyond = 0.0, 0.0, 0, 0.0
        self.confirmed = 0.0  # square of how far labels were on the network's side
        self.low, self.high, self.gate = None, None, 1.0
        self.steps, self.period, self.looked, self.labels = 0, settings.period or 0, 0, {}
        self.mean, self.excess = 0.0, 0.0  # of labels; its squared errors less the last label's

    def trust(self):
        """More and more for the half that is alone, unless its losses say otherwise."""
        n = self.net.n[0]
        alone = 0.66 * n**2 / (n**2 + 200**2)
        scale = self.s.horizon * self.net.scale(self.sides, self.rounds)
        return evidence(self.sides, [1 - alone, alone], scale)

    def shares(self):
        """Of each θ, of each φ, of last label and of the lag; alone, θ and φ are the same."""
        halves = [half.shares() for half in (self.net, self.alone)]
        (thetas, phis, others), (theirs, own, last) = halves
        F, (q, r) = self.s.F, self.trust()
        phis = [q * phis[i] + r * (own[i] + theirs[i]) for i in range(F)]
        others = [q * a + r * b for a, b in zip(others, last, strict=True)]
        return [q * w for w in thetas], phis, others

    # prediction

    def is_wild(self, x):
        if self.low is None:
            return False
        for value, low, high in zip(x, self.low, self.high, strict=True):
            room = 10 * self.gate * max(high - low, abs(low), abs(high), 1.0)
            if value < low - room or value > high + room:
                return True
        return False

    def step(self):
        """Of what is predicted now."""
        return self.steps + self.s.horizon - 1

    def season_ago(self):
        """The newest step with a label, whole periods ago; None where there is none."""
        if self.period == 0:
            return None
        then = self.step() - self.period * math.ceil(self.s.horizon / self.period)
        return then if then in self.labels else None

    def predict(self, x, z):
        z, ago = self.s.shown(z, self.step()), self.season_ago()
        past = ago, self.labels.get(ago)
        said = [half.predict(x, z, *past) for half in (self.net, self.alone)]
        if self.is_wild(x):
            calm = self.mean if self.excess < 0 else self.net.last * self.net.odds()
            for each in said:
                each["y_hat"] = calm
        if self.n_Q > 0:
            reach = math.sqrt(144 * self.Q / self.n_Q + self.confirmed)
            apart = said[0]["y_hat"] - said[1]["y_hat"]
            said[0]["y_hat"] = said[1]["y_hat"] + min(max(apart, -reach), reach)
        q = self.trust()
        thetas, phis, _ = self.shares()
        return {
            "halves": said,
            "reach": self.reach(z, [thetas[i] + phis[i] for i in range(self.s.F)]),
            "experts": said[0]["experts"],
            "final": [q[0] * said[0]["final"][0] + q[1] * said[1]["final"][0]],
            "shares": [thetas[i] + phis[i] for i in range(self.s.F)],
            "noise": self.noise_variance(),
            "y_hat": q[0] * said[0]["y_hat"] + q[1] * said[1]["y_hat"],
        }

    def reach(self, z, shares):
        kernel = self.s.kernel
        return sum(
            shares[i] * (z[kernel[i]] @ np.linalg.inv(self.net.A[i]) @ z[kernel[i]])
            for i in range(self.s.F)
        )

    def noise_variance(self):
        """The network's noise counts as 5/(1 + n) labels beside the n of the learner's own."""
        heard = 5 / (1 + self.n_noise) if self.net.rounds > 0 else 0.0
        if self.n_noise + heard == 0:
            return math.inf
        total = self.noise + heard * variance(self.net.loss, self.net.rounds)
        return total / (self.n_noise + heard)

    def told(self, said):
        """By the noise of the time of the prediction."""
        return max(math.sqrt(said["noise"] + disagreement(said)), 1e-9)

    def deviation(self, said):
        if self.s.logistic:
            return math.sqrt(said["reach"] + disagreement(said))
        return sum(self.bands[-1]) / 2 / 1.96 * self.told(said)

    def quantiles(self, said, levels):
        """Between the ends of bands, and beyond them, linear in the logarithm of the tail."""
        if self.s.logistic:
            deviation = self.deviation(said)
            return [said["y_hat"] + NormalDist().inv_cdf(level) * deviation for level in levels]
        ends, scale = [], self.told(said)
        for c, (below, above) in zip(BANDS, self.bands, strict=True):
            ends += [(math.log(1 - c), -below), (-math.log(1 - c), above)]
        tails, ends = zip(*sorted(ends), strict=True)
        found = []
        for level in levels:
            tail = math.log(2 * level) if level < 0.5 else -math.log(2 - 2 * level)
            at = float(np.interp(tail, tails, ends))
            if abs(tail) > tails[-1]:
                at *= abs(tail) / tails[-1]
            found.append(said["y_hat"] + (0.0 if at == 0 else at * scale))
        return found

    # learning

    def believed(self, x, y, y_hat):
        """The label within 20 root mean squares of errors; None if it is not believed at all."""
        if self.is_wild(x):
            self.gate *= 2
            return None
        if not self.s.logistic:
            error = y - y_hat
            if self.n_Q == 0:
                limit = 20 * max(1.0, max(abs(value) for value in x))
            else:
                limit = 20 * math.sqrt(self.Q / self.n_Q)
            if abs(error) <= limit or (self.n_Q > 0 and self.Q == 0):
                self.row = 0
            else:
                goes_on = self.row > 0 and 0.1 <= abs(error / self.beyond) <= 10
                self.row, self.beyond = self.row + 1 if goes_on else 1, error
                is_huge = abs(error) > max(5 * limit, 1.0, max(abs(value) for value in x))
                if is_huge and self.row < 3:
                    self.Q += (limit / 3) ** 2
                    return None
                if self.row < 2:
                    error = limit if error > 0 else -limit
            keep = 2 * self.n_Q / (2 * self.n_Q + 1)
            self.Q, self.n_Q = keep * self.Q + error**2, keep * self.n_Q + 1
            y = y_hat + error
        if self.low is None:
            self.low, self.high = np.array(x), np.array(x)
        else:
            shrunk = 0.01 * (self.high - self.low) / 2
            self.low = np.minimum(self.low + shrunk, x)
            self.high = np.maximum(self.high - shrunk, x)
        self.gate = 1.0
        return y

    def learn(self, x, z, y, said):
        """Give what is said to the neighbors; look for a period in every 64th step."""
        told = self.learn_label(x, self.s.shown(z, self.steps), y, said)
        self.steps += 1
        if self.s.period is None and not self.s.logistic and self.steps % 64 == 0:
            found = self.found_period()
            self.period = found if found == self.looked else self.period
            self.looked = found
        return told

    def found_period(self):
        """Where the mean square of the change over so many steps falls to less than a half."""
        first = min([i for i in self.labels if i >= self.steps - 336], default=self.steps)
        values = np.array([self.labels.get(i, math.nan) for i in range(first, self.steps)])
        n = len(values)
        if n < 2:
            return 0
        changes = [0.0]
        for p in range(1, min(168, n // 2) + 2):
            moved = (values[p:] - values[:-p]) ** 2
            known = moved[~np.isnan(moved)]
            changes.append(known.mean() if 2 * len(known) >= n - p else math.nan)
        found, least = 0, math.inf
        for p in range(2, len(changes) - 1):
            here, highest = changes[p], np.fmax.reduce(changes[:p])
            limit = least if 2 * (p + 1) < 3 * found else 0.6 * least
            is_dip = here < 0.5 * highest and here < changes[p - 1] and here <= changes[p + 1]
            if is_dip and here < limit:
                found, least = p, here
        return found

    def learn_label(self, x, z, y, said):
        if not math.isnan(y):
            y = self.believed(x, y, said["halves"][1]["y_hat"])
        if y is None or math.isnan(y):
            return self.net.repeat()
        net, alone = said["halves"]
        if not self.s.logistic:
            apart, towards = net["y_hat"] - alone["y_hat"], y - alone["y_hat"]
            agreed = min(towards if apart >= 0 else -towards, 2 * abs(apart))
            self.confirmed = max(0.98 * self.confirmed, max(agreed, 0.0) ** 2)
        if self.net.has_last:
            keep = 2 * self.rounds / (2 * self.rounds + 1)
            losses = [self.net.loss_of(half["y_hat"], y, 0.0) for half in (net, alone)]
            self.sides = keep * self.sides + np.array(losses)
            self.rounds = keep * self.rounds + 1
            scale = self.s.horizon * self.net.scale(self.sides, self.rounds)
            in_network, by_itself = self.sides
            self.sides[0] = min(in_network, by_itself + 6 * scale)
            self.sides[1] = min(by_itself, in_network + 30 * scale)
        told = self.net.learn(x, z, y, net)
        S, N, loss, R, V, rounds, _ = self.alone.learn(x, z, y, alone)
        self.alone.merge(S, N, loss, R, V, rounds, 0.0)
        self.learn_deviation(y, said)
        self.labels[self.steps] = y
        for half in (self.net, self.alone):
            half.errors[self.steps] = half.residual
        if not self.s.logistic:
            last = alone["experts"][2 * self.s.F]
            excess = (y - self.mean) ** 2 - (y - last) ** 2
            self.excess += (excess - self.excess) / self.n_Q
            self.mean += (y - self.mean) / self.n_Q
        return told

    def merge(self, *heard):
        self.net.merge(*heard)

    def learn_deviation(self, y, said):
        error, told = y - said["y_hat"], self.told(said)
        if told < math.inf and not self.s.logistic:
            self.learn_bands(error / told)
        n = self.n_noise
        keep = min(2 * n / (2 * n + 1), 1 - 0.03 / self.s.horizon)
        s2 = self.noise / n if n > 0 else 0.0
        self.noise = keep * self.noise + robust(error, s2)
        self.n_noise = keep * n + 1

    def learn_bands(self, error):
        """Outside widens, inside narrows; a little more on the side of the error."""
        inner = [1e-3, 1e-3]
        for c, rate, band in zip(BANDS, [0.3, 0.2, 0.15], self.bands, strict=True):
            rate /= self.s.horizon**0.75
            is_outside = [int(error < -band[0]), int(error > band[1])]
            excess = sum(is_outside) - (1 - c)
            for side in (0, 1):
                turn = 0.1 * (is_outside[side] - is_outside[1 - side])
                size = band[side] * math.exp(rate * (excess + turn))
                band[side] = inner[side] = min(max(size, inner[side]), 1e3)

    # the learned function, without the correction

    def weighted(self):
        """q_p θ_p of each kernel, and q_p."""
        s, P, net = self.s, self.s.F - 1, self.net
        thetas, phis, others = self.shares()
        vectors, q = [np.zeros(s.D) for _ in range(P)], np.zeros(P)
        for i in range(s.F):
            p = s.kernel[i]
            vectors[p] += thetas[i] * net.theta(i) + phis[i] * net.phi[i]
            q[p] += thetas[i] + phis[i]
        s.set_aside(vectors, self.step())
        if s.linear:
            constant = s.n_inputs  # the linear kernel's features are the inputs, then 1
            vectors[-1][constant] += others[0] * net.last * net.odds()
            if s.lag is not None:
                vectors[-1][s.lag] += 1 - others[0]
            q[-1] = max(q[-1] + sum(others), 1e-6)
        return vectors, q


def domkrls(
    X, Y, neighbors, frequencies, forget, ridge,
    linear=False, logistic=False, lag=None, horizon=None, delay=0, period=None, levels=(),
):  # fmt: skip
    """NaN in Y: no label. What is learned at the end of round t is the sample of t − delay."""
    T, K, d = X.shape
    first = features(X[0, 0], frequencies, linear)
    horizon = delay + 1 if horizon is None else horizon
    sizes = (len(first), len(first[0]), d, len(frequencies[0]))
    settings = Settings(sizes, forget, ridge, linear, logistic, lag, horizon, period)
    learners = [Learner(settings) for _ in range(K)]
    waiting, predictions, deviations, quantiles, spread = [], [], [], [], []
    for t in range(T):
        zs = [features(X[t, k], frequencies, linear) for k in range(K)]
        said = [learners[k].predict(X[t, k], zs[k]) for k in range(K)]
        predictions.append([each["y_hat"] for each in said])
        deviations.append([learners[k].deviation(said[k]) for k in range(K)])
        quantiles.append([learners[k].quantiles(said[k], levels) for k in range(K)])
        spread.append(violation(learners, zs))
        waiting.append((X[t], zs, Y[t], said))
        if len(waiting) > delay:
            x, zs, y, said = waiting.pop(0)
            told = [learners[k].learn(x[k], zs[k], y[k], said[k]) for k in range(K)]
            for k in range(K):
                learners[k].merge(*heard(told, k, neighbors))
    ends = [learner.weighted() for learner in learners]
    return {
        "predictions": np.array(predictions),
        "deviation": np.array(deviations),
        "quantiles": np.array(quantiles),
        "cv": np.cumsum(spread) / np.arange(1, T + 1),
        "weighted": np.array([vectors for vectors, _ in ends]),
        "weights": np.array([q for _, q in ends]),
        "own": np.array([learner.net.phi for learner in learners]),
    }


def violation(learners, zs):
    K, total = len(learners), 0.0
    functions = [learner.weighted()[0] for learner in learners]
    for k in range(K):
        f = [sum(v @ z for v, z in zip(each, zs[k], strict=True)) for each in functions]
        for other in range(K):
            if other != k:
                total += (f[k] - f[other]) ** 2
    return total / (K * (K - 1)) if K > 1 else 0.0


def heard(told, k, neighbors):
    """All but the last by Metropolis weights; of the last the neighbors' mean."""
    means = []
    for field in range(6):
        values = [each[field] for each in told]
        if field == 0:
            n_fits = len(values[0])
            means.append([mean([v[i] for v in values], k, neighbors) for i in range(n_fits)])
        else:
            means.append(mean(values, k, neighbors))
    near = [told[other][6] for other in neighbors[k]]
    return (*means, sum(near) / len(near) if near else 0.0)


def mean(values, k, neighbors):
    """Metropolis weights."""
    left, mixed = 1.0, 0.0
    for i in neighbors[k]:
        a = 1 / (1 + max(len(neighbors[k]), len(neighbors[i])))
        left -= a
        mixed = mixed + a * values[i]
    return mixed + left * values[k]


def evidence(losses, prior, scale):
    best = min(losses)
    if scale == 0:
        w = [a if loss == best else 0.0 for a, loss in zip(prior, losses, strict=True)]
    else:
        w = [a * math.exp(-(loss - best) / scale) for a, loss in zip(prior, losses, strict=True)]
    return np.array(w) / sum(w)


def polynomial(R, V, prior):
    w = [r / v if r > 0 and v > 0 else 0.0 for r, v in zip(R, V, strict=True)]
    return np.array(w if sum(w) > 0 else prior) / sum(w if sum(w) > 0 else prior)


def apart(f, g):
    """What is left by rounding is no difference."""
    return 0.0 if abs(f - g) <= 1e-12 * abs(f) else f - g


def variance(losses, rounds):
    """The best one's mean loss."""
    return min(losses) / rounds if rounds > 0 else 0.0


def robust(r, s2):
    if s2 == 0 or r * r <= 25 * s2:
        return r * r
    return 25 * s2 * (1 + math.log(r * r / (25 * s2)))


def disagreement(said):
    f = said["final"][0]
    return sum(w * (g - f) ** 2 for w, g in zip(said["shares"], said["experts"], strict=False))


def clip(value):
    return min(max(value, -5.0), 5.0)


def sigmoid(a):
    return 1 / (1 + math.exp(min(-a, 700.0)))


def logistic_minimiser(f, y, reach):
    """Argmin over s of log(1 + exp(−ys)) + (s − f)²/2·reach, by bisection."""
    low, high = f - reach - 1, f + reach + 1
    for _ in range(200):
        s = (low + high) / 2
        if (s - f) / reach - y * sigmoid(-y * s) > 0:
            high = s
        else:
            low = s
    return (low + high) / 2


def capped(A, ridge):
    """C = A⁻¹ as U D Uᵀ, U unit upper triangular, and no element of D above 1/ridge."""
    root = np.linalg.cholesky(np.linalg.inv(A)[::-1, ::-1])[::-1, ::-1]  # C = root rootᵀ, upper
    D = np.diag(root) ** 2
    U = root / np.diag(root)
    return np.linalg.inv(U @ np.diag(np.minimum(D, 1 / ridge)) @ U.T)
