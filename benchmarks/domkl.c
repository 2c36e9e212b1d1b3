/* DOMKL in C: the arithmetic of src/domkl/core, trial by trial, round by round.
 *
 * The reference that the compiled Python is measured against. Same features (projection and range
 * reduction in double, polynomials in the state's type), same step from the center, same Hedge,
 * same exact CV. A trial's state stays in the second-level cache, as C allows.
 *
 * -DBLOCKED=0 is the program as one writes it, one learner after the other; -DBLOCKED=1 lets two
 * learners share each load in the two heaviest loops, projection and CV.
 *
 *     cc -O3 -march=native -ffast-math -DREAL=float -DBLOCKED=0 domkl.c -o domkl -lm
 *     ./domkl INPUT REPEATS    prints, per repeat: microseconds per learner-step, MSE, CV
 *
 * INPUT is written by bench_speed.py: int64 T B K P M d, then double rho eta_l eta_g, X (T,K,d),
 * y (T,K), turns (B,d,P*M), then per trial int64 indptr (K+1) and indices.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef REAL
#define REAL float
#endif
#ifndef BLOCKED
#define BLOCKED 0
#endif
typedef REAL real;

static void *room(size_t bytes) {
    void *p = NULL;
    if (posix_memalign(&p, 64, bytes ? bytes : 64)) exit(1);
    memset(p, 0, bytes);
    return p;
}

static void *fetch(FILE *file, size_t size, size_t count) {
    void *p = room(size * count);
    if (fread(p, size, count, file) != count) { fprintf(stderr, "short input\n"); exit(1); }
    return p;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void project(double *restrict u, const double *x, const double *restrict turns, int64_t d,
                    int64_t n) {
    for (int64_t m = 0; m < n; m++) u[m] = x[0] * turns[m];
    int64_t j = 1;
    for (; j + 4 <= d; j += 4) {
        const double *v0 = turns + j * n, *v1 = v0 + n, *v2 = v1 + n, *v3 = v2 + n;
        double x0 = x[j], x1 = x[j + 1], x2 = x[j + 2], x3 = x[j + 3];
        for (int64_t m = 0; m < n; m++)
            u[m] += x0 * v0[m] + x1 * v1[m] + x2 * v2[m] + x3 * v3[m];
    }
    for (; j < d; j++) {
        const double *v = turns + j * n;
        for (int64_t m = 0; m < n; m++) u[m] += x[j] * v[m];
    }
}

static void project_pair(double *restrict u, double *restrict w, const double *x, const double *y,
                         const double *restrict turns, int64_t d, int64_t n) {
    for (int64_t m = 0; m < n; m++) { u[m] = x[0] * turns[m]; w[m] = y[0] * turns[m]; }
    int64_t j = 1;
    for (; j + 4 <= d; j += 4) {
        const double *v0 = turns + j * n, *v1 = v0 + n, *v2 = v1 + n, *v3 = v2 + n;
        double x0 = x[j], x1 = x[j + 1], x2 = x[j + 2], x3 = x[j + 3];
        double y0 = y[j], y1 = y[j + 1], y2 = y[j + 2], y3 = y[j + 3];
        for (int64_t m = 0; m < n; m++) {
            u[m] += x0 * v0[m] + x1 * v1[m] + x2 * v2[m] + x3 * v3[m];
            w[m] += y0 * v0[m] + y1 * v1[m] + y2 * v2[m] + y3 * v3[m];
        }
    }
    for (; j < d; j++) {
        const double *v = turns + j * n;
        for (int64_t m = 0; m < n; m++) { u[m] += x[j] * v[m]; w[m] += y[j] * v[m]; }
    }
}

static void sincos_turns(const double *restrict turns, real *restrict sine, real *restrict cosine,
                         int64_t n, real scale) {
    for (int64_t i = 0; i < n; i++) {
        real r = (real)(turns[i] - rint(turns[i]));
        real q = r * r;
        real s = r * ((real)3.141592653536132 + q * ((real)-5.167712764593 + q * ((real)2.550163317938427
                 + q * ((real)-0.599252186531583 + q * ((real)0.08205035020147247 + q * (real)-0.007028303855203096)))));
        real c = (real)0.999999999779154 + q * ((real)-4.934802136928946 + q * ((real)4.058709154763134
                 + q * ((real)-1.3352119493905503 + q * ((real)0.2349370685950865 + q * (real)-0.024395932097550446))));
        real lifted = 2 * scale * s;
        sine[i] = lifted * c;
        cosine[i] = scale - lifted * s;
    }
}

static real dot(const real *restrict a, const real *restrict b, int64_t n) {
    real sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static void dot_block(const real *restrict a, const real *restrict b, const real *restrict c,
                      const real *restrict d, int64_t n, real out[4]) {
    real ac = 0, ad = 0, bc = 0, bd = 0;
    for (int64_t i = 0; i < n; i++) {
        ac += a[i] * c[i]; ad += a[i] * d[i]; bc += b[i] * c[i]; bd += b[i] * d[i];
    }
    out[0] = ac; out[1] = ad; out[2] = bc; out[3] = bd;
}

int main(int argc, char **argv) {
    if (argc < 3) { fprintf(stderr, "usage: domkl INPUT REPEATS\n"); return 2; }
    FILE *file = fopen(argv[1], "rb");
    if (!file) { perror(argv[1]); return 2; }
    int64_t *sizes = fetch(file, sizeof(int64_t), 6);
    int64_t T = sizes[0], B = sizes[1], K = sizes[2], P = sizes[3], M = sizes[4], d = sizes[5];
    double *params = fetch(file, sizeof(double), 3);
    double rho = params[0], eta_l = params[1], eta_g = params[2];
    double *X = fetch(file, sizeof(double), T * K * d), *Y = fetch(file, sizeof(double), T * K);
    int64_t n_angles = P * M, D = 2 * M, L = P * D;
    double *all_turns = fetch(file, sizeof(double), B * d * n_angles);
    int64_t **indptr = room(B * sizeof *indptr), **indices = room(B * sizeof *indices);
    for (int64_t b = 0; b < B; b++) {
        indptr[b] = fetch(file, sizeof(int64_t), K + 1);
        indices[b] = fetch(file, sizeof(int64_t), indptr[b][K]);
    }
    fclose(file);

    size_t bytes = K * L * sizeof(real);
    real *theta = room(bytes), *dual = room(bytes), *center = room(bytes), *z = room(bytes);
    real *blend = room(bytes), *gap = room(L * sizeof(real));
    double *u = room(n_angles * sizeof(double)), *w = room(n_angles * sizeof(double));
    double *loss = room(K * P * sizeof(double)), *q = room(K * P * sizeof(double));
    double *values = room((K + 1) * (K + 1) * sizeof(double)), *factor = room(P * sizeof(double));
    real scale = (real)(1 / sqrt((double)M));

    for (int repeat = 0; repeat < atoi(argv[2]); repeat++) {
        double mse = 0, cv = 0, start = now();
        for (int64_t b = 0; b < B; b++) {
            const double *turns = all_turns + b * d * n_angles;
            const int64_t *ptr = indptr[b], *adj = indices[b];
            memset(theta, 0, bytes); memset(dual, 0, bytes); memset(center, 0, bytes);
            memset(loss, 0, K * P * sizeof(double));
            for (int64_t i = 0; i < K * P; i++) q[i] = 1.0 / P;
            for (int64_t t = 0; t < T; t++) {
                const double *y = Y + t * K;
                for (int64_t k = 0; k < K && !BLOCKED; k++) {
                    project(u, X + (t * K + k) * d, turns, d, n_angles);
                    for (int64_t p = 0; p < P; p++) {
                        real *zk = z + k * L + p * D;
                        sincos_turns(u + p * M, zk, zk + M, M, scale);
                    }
                }
                for (int64_t k = 0; k < K && BLOCKED; k += 2) {
                    int64_t l = k + 1 < K ? k + 1 : k;
                    project_pair(u, w, X + (t * K + k) * d, X + (t * K + l) * d, turns, d, n_angles);
                    for (int64_t p = 0; p < P; p++) {
                        real *zk = z + k * L + p * D, *zl = z + l * L + p * D;
                        sincos_turns(u + p * M, zk, zk + M, M, scale);
                        if (l > k) sincos_turns(w + p * M, zl, zl + M, M, scale);
                    }
                }
                for (int64_t i = 0; i < K * P; i++) {
                    real weight = (real)q[i];
                    for (int64_t j = 0; j < D; j++) blend[i * D + j] = weight * theta[i * D + j];
                }
                for (int64_t k = 0; k < K && !BLOCKED; k++)
                    for (int64_t l = 0; l < K; l++)
                        values[k * (K + 1) + l] = dot(z + k * L, blend + l * L, L);
                for (int64_t k = 0; k < K && BLOCKED; k += 2)
                    for (int64_t l = 0; l < K; l += 2) {
                        int64_t k2 = k + 1 < K ? k + 1 : k, l2 = l + 1 < K ? l + 1 : l;
                        real out[4];
                        dot_block(z + k * L, z + k2 * L, blend + l * L, blend + l2 * L, L, out);
                        values[k * (K + 1) + l] = out[0]; values[k * (K + 1) + l + 1] = out[1];
                        values[(k + 1) * (K + 1) + l] = out[2]; values[(k + 1) * (K + 1) + l + 1] = out[3];
                    }
                for (int64_t k = 0; k < K; k++) {
                    double own = values[k * (K + 1) + k];
                    mse += (own - y[k]) * (own - y[k]);
                    for (int64_t l = 0; l < K; l++) {
                        double apart = own - values[k * (K + 1) + l];
                        cv += apart * apart;
                    }
                }
                for (int64_t k = 0; k < K; k++) {
                    double stiffness = eta_l + rho * (ptr[k + 1] - ptr[k]);
                    real *th = theta + k * L, *ce = center + k * L, *zk = z + k * L;
                    for (int64_t p = 0; p < P; p++) {
                        double e = dot(th + p * D, zk + p * D, D) - y[k];
                        loss[k * P + p] += e * e;
                        double v = dot(ce + p * D, zk + p * D, D);
                        factor[p] = 2 * (y[k] - v) / (stiffness + 2);
                    }
                    for (int64_t p = 0; p < P; p++) {
                        real f = (real)factor[p];
                        for (int64_t i = p * D; i < (p + 1) * D; i++) th[i] = ce[i] + f * zk[i];
                    }
                }
                for (int64_t k = 0; k < K; k++) {
                    double stiffness = eta_l + rho * (ptr[k + 1] - ptr[k]);
                    real half = (real)(rho / 2), compliance = (real)(1 / stiffness);
                    real *du = dual + k * L, *ce = center + k * L, *th = theta + k * L;
                    memset(gap, 0, L * sizeof(real));
                    for (int64_t e = ptr[k]; e < ptr[k + 1]; e++) {
                        const real *other = theta + adj[e] * L;
                        for (int64_t i = 0; i < L; i++) gap[i] += other[i] - th[i];
                    }
                    for (int64_t i = 0; i < L; i++) {
                        real pulled = half * gap[i], risen = du[i] - pulled;
                        du[i] = risen;
                        ce[i] = th[i] + compliance * (pulled - risen);
                    }
                    double best = 0, total = 0;
                    for (int64_t p = 0; p < P; p++) {
                        double sum = loss[k * P + p];
                        for (int64_t e = ptr[k]; e < ptr[k + 1]; e++) sum += loss[adj[e] * P + p];
                        q[k * P + p] = sum;
                        if (p == 0 || sum < best) best = sum;
                    }
                    for (int64_t p = 0; p < P; p++) {
                        q[k * P + p] = exp((best - q[k * P + p]) / eta_g);
                        total += q[k * P + p];
                    }
                    for (int64_t p = 0; p < P; p++) q[k * P + p] /= total;
                }
            }
        }
        double steps = (double)T * B * K;
        printf("%.6f %.9g %.9g\n", 1e6 * (now() - start) / steps, mse / steps,
               K > 1 ? cv / (steps * (K - 1)) : 0.0);
        fflush(stdout);
    }
    return 0;
}
