"""The C++ of the kernels, each in four forms: loops in another order, fused or not, tiled or not.

`@unroll@`, `@threads@` and the constant `TILE` are filled in by `benchmarks/search/kernels.py`.
"""

from __future__ import annotations

MATMUL = (
    r"""
void run(const float* __restrict a, const float* __restrict b, float* __restrict c, long M, long K, long N,
         double, double) {
    @threads@
    for (long i = 0; i < M; ++i)
        for (long j = 0; j < N; ++j) {
            float sum = 0;
            @unroll@
            for (long k = 0; k < K; ++k) sum += a[i * K + k] * b[k * N + j];
            c[i * N + j] = sum;
        }
}
""",
    r"""
void run(const float* __restrict a, const float* __restrict b, float* __restrict c, long M, long K, long N,
         double, double) {
    @threads@
    for (long i = 0; i < M; ++i) {
        std::memset(c + i * N, 0, N * sizeof(float));
        for (long k = 0; k < K; ++k) {
            const float value = a[i * K + k];
            @unroll@
            for (long j = 0; j < N; ++j) c[i * N + j] += value * b[k * N + j];
        }
    }
}
""",
    r"""
void run(const float* __restrict a, const float* __restrict b, float* __restrict c, long M, long K, long N,
         double, double) {
    @threads@
    for (long from = 0; from < N; from += TILE) {
        const long width = std::min(TILE, N - from);
        for (long i = 0; i < M; ++i) {
            float sums[TILE] = {};
            for (long k = 0; k < K; ++k) {
                const float value = a[i * K + k];
                @unroll@
                for (long j = 0; j < width; ++j) sums[j] += value * b[k * N + from + j];
            }
            std::memcpy(c + i * N + from, sums, width * sizeof(float));
        }
    }
}
""",
    r"""
void run(const float* __restrict a, const float* __restrict b, float* __restrict c, long M, long K, long N,
         double, double) {
    constexpr long ROWS = 4;
    @threads@
    for (long from = 0; from < N; from += TILE) {
        const long width = std::min(TILE, N - from);
        for (long i = 0; i < M; i += ROWS) {
            float sums[ROWS][TILE] = {};
            const long rows = std::min(ROWS, M - i);
            for (long k = 0; k < K; ++k)
                for (long r = 0; r < rows; ++r) {
                    const float value = a[(i + r) * K + k];
                    @unroll@
                    for (long j = 0; j < width; ++j) sums[r][j] += value * b[k * N + from + j];
                }
            for (long r = 0; r < rows; ++r)
                std::memcpy(c + (i + r) * N + from, sums[r], width * sizeof(float));
        }
    }
}
""",
)

_ROW_MAX_START = r"""
static float largest(const float* row, long width, float scale, float bound) {
    float most = -std::numeric_limits<float>::infinity();
    @unroll@
    for (long j = 0; j < width; ++j) {
        const float value = std::min(std::max(row[j] * scale, -bound), bound);
        most = value > most ? value : most;
    }
    return most;
}

void run(const float* x, const float*, float* y, long rows, long width, long, double scale, double bound) {
"""
ROW_MAX = (
    r"""
void run(const float* x, const float*, float* y, long rows, long width, long, double scale, double bound) {
    std::vector<float> scaled(rows * width), held(rows * width);
    @unroll@
    for (long i = 0; i < rows * width; ++i) scaled[i] = x[i] * float(scale);
    @unroll@
    for (long i = 0; i < rows * width; ++i)
        held[i] = std::min(std::max(scaled[i], -float(bound)), float(bound));
    @threads@
    for (long i = 0; i < rows; ++i) y[i] = *std::max_element(&held[i * width], &held[i * width] + width);
}
""",
    r"""
void run(const float* x, const float*, float* y, long rows, long width, long, double scale, double bound) {
    @threads@
    for (long from = 0; from < rows; from += TILE) {
        const long count = std::min(TILE, rows - from);
        std::vector<float> held(count * width);
        @unroll@
        for (long i = 0; i < count * width; ++i)
            held[i] = std::min(std::max(x[from * width + i] * float(scale), -float(bound)), float(bound));
        for (long i = 0; i < count; ++i)
            y[from + i] = *std::max_element(&held[i * width], &held[i * width] + width);
    }
}
""",
    _ROW_MAX_START
    + r"""
    @threads@
    for (long i = 0; i < rows; ++i) y[i] = largest(x + i * width, width, scale, bound);
}
""",
    _ROW_MAX_START
    + r"""
    @threads@
    for (long from = 0; from < rows; from += TILE)
        for (long i = from; i < std::min(from + TILE, rows); ++i) {
            float most = x[i * width];
            @unroll@
            for (long j = 1; j < width; ++j) most = x[i * width + j] > most ? x[i * width + j] : most;
            y[i] = largest(&most, 1, scale, bound);
        }
}
""",
)

_SILU_START = r"""
void run(const float* __restrict gate, const float* __restrict up, float* __restrict y, long rows, long width,
         long, double, double) {
    const long count = rows * width;
"""
SILU = (
    _SILU_START
    + r"""
    std::vector<float> powers(count), shares(count);
    @unroll@
    for (long i = 0; i < count; ++i) powers[i] = std::exp(-gate[i]);
    @unroll@
    for (long i = 0; i < count; ++i) shares[i] = gate[i] / (1.0f + powers[i]);
    @threads@
    for (long i = 0; i < count; ++i) y[i] = shares[i] * up[i];
}
""",
    _SILU_START
    + r"""
    @threads@
    for (long from = 0; from < count; from += TILE) {
        float powers[TILE];
        const long width = std::min(TILE, count - from);
        @unroll@
        for (long i = 0; i < width; ++i) powers[i] = std::exp(-gate[from + i]);
        for (long i = 0; i < width; ++i) y[from + i] = gate[from + i] / (1.0f + powers[i]) * up[from + i];
    }
}
""",
    _SILU_START
    + r"""
    @threads@
    for (long from = 0; from < count; from += TILE * TILE) {
        const long to = std::min(from + TILE * TILE, count);
        @unroll@
        for (long i = from; i < to; ++i) y[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
    }
}
""",
    r"""
static inline float power(float x) {  // e^x: x = n ln 2 + r, and a polynomial for e^r
    x = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
    const float t = x * 1.44269504f;
    const int n = (int)(t + (t < 0.0f ? -0.5f : 0.5f));
    const float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
    float sum = 1.0f / 720;
    sum = sum * r + 1.0f / 120;
    sum = sum * r + 1.0f / 24;
    sum = sum * r + 1.0f / 6;
    sum = sum * r + 0.5f;
    sum = (sum * r + 1.0f) * r + 1.0f;
    const int bits = (n + 127) << 23;
    float scale;
    std::memcpy(&scale, &bits, 4);
    return sum * scale;
}
"""
    + _SILU_START
    + r"""
    @threads@
    for (long from = 0; from < count; from += TILE * TILE) {
        const long to = std::min(from + TILE * TILE, count);
        @unroll@
        for (long i = from; i < to; ++i) y[i] = gate[i] / (1.0f + power(-gate[i])) * up[i];
    }
}
""",
)

_TRANSPOSE_START = r"""
void run(const float* __restrict x, const float*, float* __restrict y, long batch, long rows, long columns,
         double, double) {
    @threads@
    for (long b = 0; b < batch; ++b) {
        const float* from = x + b * rows * columns;
        float* to = y + b * rows * columns;
"""
TRANSPOSE = (
    _TRANSPOSE_START
    + r"""
        for (long i = 0; i < rows; ++i) {
            @unroll@
            for (long j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
        }
    }
}
""",
    _TRANSPOSE_START
    + r"""
        for (long j = 0; j < columns; ++j) {
            @unroll@
            for (long i = 0; i < rows; ++i) to[j * rows + i] = from[i * columns + j];
        }
    }
}
""",
    _TRANSPOSE_START
    + r"""
        for (long ii = 0; ii < rows; ii += TILE)
            for (long jj = 0; jj < columns; jj += TILE)
                for (long j = jj; j < std::min(jj + TILE, columns); ++j) {
                    @unroll@
                    for (long i = ii; i < std::min(ii + TILE, rows); ++i)
                        to[j * rows + i] = from[i * columns + j];
                }
    }
}
""",
    _TRANSPOSE_START
    + r"""
        for (long ii = 0; ii < rows; ii += TILE)
            for (long j = 0; j < columns; ++j) {
                @unroll@
                for (long i = ii; i < std::min(ii + TILE, rows); ++i)
                    to[j * rows + i] = from[i * columns + j];
            }
    }
}
""",
)
