/* naive_math.c: matrix products, norms, activations and rotations as plain loops. */
#include "io/json.h"
#include "support/naive_private.h"
#include "support/test.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

double *product(pass *p, const double *x, size_t rows, size_t in, size_t out, const double *w,
                const double *b)
{
    double *y = pass_memory(p, rows * out);
    for (size_t r = 0; r < rows; r++)
        for (size_t o = 0; o < out; o++) {
            double sum = b != NULL ? b[o] : 0;
            for (size_t i = 0; i < in; i++)
                sum += w[o * in + i] * x[r * in + i];
            y[r * out + o] = sum;
        }
    return y;
}

double *product_in_out(pass *p, const double *x, size_t rows, size_t in, size_t out,
                       const double *w, size_t width, size_t from, const double *b)
{
    double *y = pass_memory(p, rows * out);
    for (size_t r = 0; r < rows; r++)
        for (size_t o = 0; o < out; o++) {
            double sum = b[from + o];
            for (size_t i = 0; i < in; i++)
                sum += w[i * width + from + o] * x[r * in + i];
            y[r * out + o] = sum;
        }
    return y;
}

double *linear(pass *p, const double *x, size_t rows, size_t in, size_t out, const char *format,
               ...)
{
    char name[256];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    return product(p, x, rows, in, out, pass_tensor(p, true, "%s.weight", name),
                   pass_tensor(p, false, "%s.bias", name));
}

double *layer_norm(pass *p, const double *x, size_t rows, size_t n, const double *w,
                   const double *b, double eps)
{
    double *y = pass_memory(p, rows * n);
    for (size_t r = 0; r < rows; r++) {
        const double *from = x + r * n;
        double mean = 0, variance = 0;
        for (size_t i = 0; i < n; i++)
            mean += from[i] / (double)n;
        for (size_t i = 0; i < n; i++)
            variance += (from[i] - mean) * (from[i] - mean) / (double)n;
        double scale = 1 / sqrt(variance + eps);
        pass_freeze(p, NAIVE_SCALE, &scale, 1);
        for (size_t i = 0; i < n; i++)
            y[r * n + i] = (from[i] - mean) * scale * w[i] + b[i];
    }
    return y;
}

double *rms_norm(pass *p, const double *x, size_t rows, size_t n, const double *w, double plus,
                 double eps)
{
    double *y = pass_memory(p, rows * n);
    for (size_t r = 0; r < rows; r++) {
        double square = 0;
        for (size_t i = 0; i < n; i++)
            square += x[r * n + i] * x[r * n + i] / (double)n;
        double scale = 1 / sqrt(square + eps);
        pass_freeze(p, NAIVE_SCALE, &scale, 1);
        for (size_t i = 0; i < n; i++)
            y[r * n + i] = x[r * n + i] * scale * (plus + w[i]);
    }
    return y;
}

void activate(const char *name, double *x, size_t n)
{
    bool tanh_form = strcmp(name, "gelu_new") == 0 || strcmp(name, "gelu_pytorch_tanh") == 0;
    for (size_t i = 0; i < n; i++) {
        double v = x[i];
        if (tanh_form)
            x[i] = 0.5 * v * (1 + tanh(sqrt(2 / pi) * (v + 0.044715 * v * v * v)));
        else if (strcmp(name, "gelu") == 0)
            x[i] = 0.5 * v * (1 + erf(v / sqrt(2.0)));
        else if (strcmp(name, "silu") == 0)
            x[i] = v / (1 + exp(-v));
        else if (strcmp(name, "relu") == 0)
            x[i] = v > 0 ? v : 0;
        else if (strcmp(name, "tanh") == 0)
            x[i] = tanh(v);
        else
            fail_msg("no activation %s", name);
    }
}

void add(double *y, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

void scale_by(double *x, size_t n, double factor)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= factor;
}

void rotate(double *x, size_t rows, size_t heads, size_t K, const double *freq, bool pair)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t h = 0; h < heads; h++) {
            double *v = x + (r * heads + h) * K, y[512];
            assert_in_range(K, 2, 512);
            for (size_t i = 0; i < K / 2; i++) {
                double c = cos((double)r * freq[i]), s = sin((double)r * freq[i]);
                double a = v[pair ? 2 * i : i], b = v[pair ? 2 * i + 1 : i + K / 2];
                y[i] = a * c - b * s;
                y[i + K / 2] = b * c + a * s;
            }
            memcpy(v, y, K * sizeof *v);
        }
}

double *frequencies(pass *p, const char *key, size_t K, double otherwise)
{
    double *f = pass_memory(p, K / 2), theta = otherwise;
    char at[128];
    snprintf(at, sizeof at, "%s.rope_theta", key);
    theta = config_number(p->n, at, theta);
    snprintf(at, sizeof at, "%s.factor", key);
    double factor = config_number(p->n, at, 1);
    snprintf(at, sizeof at, "%s.rope_type", key);
    const char *type = config_text(p->n, at, "default");
    for (size_t i = 0; i < K / 2; i++) {
        f[i] = pow(theta, -2 * (double)i / (double)K);
        if (strcmp(type, "linear") == 0)
            f[i] /= factor;
        if (strcmp(type, "llama3") != 0)
            continue;
        snprintf(at, sizeof at, "%s.original_max_position_embeddings", key);
        double length = config_number(p->n, at, 0), wave = 2 * pi / f[i];
        snprintf(at, sizeof at, "%s.low_freq_factor", key);
        double low = config_number(p->n, at, 0);
        snprintf(at, sizeof at, "%s.high_freq_factor", key);
        double high = config_number(p->n, at, 0);
        double blend = (length / wave - low) / (high - low);
        if (wave > length / low)
            f[i] /= factor;
        else if (wave >= length / high)
            f[i] = (1 - blend) * f[i] / factor + blend * f[i];
    }
    return f;
}
