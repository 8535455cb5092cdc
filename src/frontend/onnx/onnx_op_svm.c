/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of SVMClassifier and SVMRegressor. A class is chosen by votes of the pairs, also where there are
 * probabilities: onnxruntime does so, and the label need not be the most probable class. */
#include "frontend/onnx/onnx_ml.h"

#include <string.h>

typedef enum kernel { LINEAR, POLY, RBF, SIGMOID } kernel;

typedef struct machine {
    onnx_node *n;
    kernel kind;
    double gamma, coef0, degree;
    graph_value *x; /* f32 [rows, width] */
    int64_t width, vectors;
    ml_floats coefficients, rho;
    const double *support; /* [vectors, width] */
} machine;

static bool read_kernel(machine *m)
{
    static const char *const names[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
    onnx_node *n = m->n;
    const char *name = onnx_attr_string(n, "kernel_type", "LINEAR");
    const ml_floats p = ml_attr_floats(n, "kernel_params");
    int kind = -1;
    for (int i = 0; i < 4; i++)
        kind = strcmp(name, names[i]) == 0 ? i : kind;
    if (kind < 0)
        return onnx_fail(n, DIAG_FORMAT, "there is no kernel_type '%s'", name);
    if (p.n != 0 && p.n != 3)
        return onnx_fail(n, DIAG_FORMAT, "kernel_params has %u numbers; gamma, coef0 and degree are needed", p.n);
    m->kind = (kernel)kind;
    m->gamma = p.n ? p.v[0] : 0;
    m->coef0 = p.n ? p.v[1] : 0;
    m->degree = p.n ? p.v[2] : 0;
    return !n->failed;
}

/* The attributes of both operators. vectors 0: the model is linear in x. */
static bool read_machine(onnx_node *n, int64_t vectors, machine *m)
{
    const ml_floats support = ml_attr_floats(n, "support_vectors");
    *m = (machine){.n = n, .vectors = vectors};
    m->x = ml_rows(n, onnx_in(n, 0), DT_F32, &m->width);
    m->coefficients = ml_attr_floats(n, "coefficients");
    m->rho = ml_attr_floats(n, "rho");
    m->support = support.v;
    if (n->failed || !read_kernel(m))
        return false;
    if (vectors < 0 || vectors * m->width != support.n)
        return onnx_fail(n, DIAG_FORMAT, "support_vectors has %u numbers; %lld vectors of %lld features are needed",
                         support.n, (long long)vectors, (long long)m->width);
    return m->rho.n > 0 || onnx_fail(n, DIAG_FORMAT, "rho is missing");
}

static graph_value *scaled(onnx_node *n, graph_value *x, double by, double plus)
{
    x = onnx_binary(n, "multiply", x, onnx_const_like(n, x, by));
    return plus != 0 ? onnx_binary(n, "add", x, onnx_const_like(n, x, plus)) : x;
}

/* exp(-gamma * |x - v|^2) for each vector: differences, because products would cancel. */
static graph_value *radial(const machine *m)
{
    onnx_node *n = m->n;
    const int64_t one = 1, last = 2;
    graph_value *v = ml_matrix(n, DT_F32, 2, (int64_t[]){m->vectors, m->width}, m->support);
    graph_value *d = onnx_binary(n, "subtract", onnx_expand_dims(n, m->x, 1, &one), v);
    graph_value *s = onnx_reduce(n, "sum", onnx_binary(n, "multiply", d, d), 1, &last, false);
    return onnx_unary(n, "exp", scaled(n, s, -m->gamma, 0));
}

/* [rows, vectors] */
static graph_value *kernels(const machine *m)
{
    onnx_node *n = m->n;
    if (m->kind == RBF)
        return radial(m);
    graph_value *v = ml_matrix(n, DT_F32, 2, (int64_t[]){m->vectors, m->width}, m->support);
    graph_value *k = onnx_matmul(n, m->x, v, false, true, DT_NONE);
    if (m->kind == LINEAR)
        return k;
    k = scaled(n, k, m->gamma, m->coef0);
    return m->kind == SIGMOID ? onnx_unary(n, "tanh", k) : onnx_binary(n, "power", k, onnx_const_like(n, k, m->degree));
}

/* A linear kernel needs no vectors when the model runs: count of them from the first, times their coefficients, are
 * weights of the features. They are added in f64, so that less is lost than in sums of products. */
static void add_weights(const machine *m, int64_t first, int64_t count, const double *coefficients, double *w)
{
    for (int64_t v = 0; v < count; v++)
        for (int64_t f = 0; f < m->width; f++)
            w[f] += coefficients[v] * m->support[(first + v) * m->width + f];
}

/* --- regressor --- */

bool onnx_op_svm_regressor(onnx_node *n)
{
    machine m;
    const int64_t vectors = onnx_attr_int(n, "n_supports", 0);
    const bool one_class = onnx_attr_int(n, "one_class", 0) != 0;
    (void)onnx_attr_find(n, "post_transform"); /* it does nothing */
    if (!read_machine(n, vectors, &m))
        return false;
    const int64_t terms = vectors ? vectors : m.width;
    if (m.coefficients.n != terms)
        return onnx_fail(n, DIAG_FORMAT, "there are %u coefficients; %lld are needed", m.coefficients.n,
                         (long long)terms);
    const bool linear = vectors == 0 || m.kind == LINEAR;
    double *sums = arena_array(&n->c->mem, double, (size_t)m.width + 1u);
    add_weights(&m, 0, linear ? vectors : 0, m.coefficients.v, sums);
    const int64_t count = linear ? m.width : vectors;
    graph_value *w = ml_matrix(n, DT_F32, 2, (int64_t[]){1, count}, linear && vectors ? sums : m.coefficients.v);
    graph_value *y = onnx_matmul(n, linear ? m.x : kernels(&m), w, false, true, DT_NONE);
    y = onnx_binary(n, "add", y, onnx_const_like(n, y, m.rho.v[0]));
    if (one_class)
        y = onnx_where(n, onnx_binary(n, "greater", y, onnx_const_like(n, y, 0)), onnx_const_like(n, y, 1),
                       onnx_const_like(n, y, -1));
    return onnx_alias(n, 0, y);
}

/* --- classifier --- */

typedef struct classes {
    machine m;
    ml_labels labels;
    int64_t n, pairs;
    const int64_t *per_class, *first; /* vectors of a class; their first */
} classes;

/* Few classes: a row of coefficients for each pair, 0 for the vectors of other classes. */
static graph_value *scores_at_once(const classes *s, graph_value *k)
{
    onnx_node *n = s->m.n;
    const int64_t all = s->m.vectors;
    double *w = arena_array(&n->c->mem, double, (size_t)(s->pairs * all) + 1u);
    int64_t q = 0;
    for (int64_t i = 0; i < s->n; i++)
        for (int64_t j = i + 1; j < s->n; j++, q++) {
            for (int64_t v = 0; v < s->per_class[i]; v++)
                w[q * all + s->first[i] + v] = s->m.coefficients.v[(j - 1) * all + s->first[i] + v];
            for (int64_t v = 0; v < s->per_class[j]; v++)
                w[q * all + s->first[j] + v] = s->m.coefficients.v[i * all + s->first[j] + v];
        }
    return onnx_matmul(n, k, ml_matrix(n, DT_F32, 2, (int64_t[]){s->pairs, all}, w), false, true, DT_NONE);
}

/* Columns of x by number. */
static graph_value *pick(onnx_node *n, graph_value *x, int64_t count, const int64_t *columns)
{
    attr axis = attr_int(n->c, "axis", 1);
    return onnx_emit(n, ONNX_ARGS("take", 1, &axis, x, onnx_const_ints(n, (uint32_t)count, columns)));
}

/* Many classes: what the vectors of each class give to each of its pairs; a pair is the sum of two of these. */
static graph_value *scores_by_class(const classes *s, graph_value *k)
{
    onnx_node *n = s->m.n;
    const int64_t all = s->m.vectors;
    graph_value **part = arena_array(&n->c->mem, graph_value *, (size_t)s->n);
    int64_t *of_i = arena_array(&n->c->mem, int64_t, (size_t)s->pairs);
    int64_t *of_j = arena_array(&n->c->mem, int64_t, (size_t)s->pairs), q = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t count = s->per_class[i], from = s->first[i];
        double *w = arena_array(&n->c->mem, double, (size_t)((s->n - 1) * count) + 1u);
        for (int64_t r = 0; r < s->n - 1; r++)
            for (int64_t v = 0; v < count; v++)
                w[r * count + v] = s->m.coefficients.v[r * all + from + v];
        graph_value *rows = ml_matrix(n, DT_F32, 2, (int64_t[]){s->n - 1, count}, w);
        part[i] = onnx_matmul(n, onnx_slice(n, k, 1, from, from + count), rows, false, true, DT_NONE);
        for (int64_t j = i + 1; j < s->n; j++, q++) {
            of_i[q] = i * (s->n - 1) + j - 1;
            of_j[q] = j * (s->n - 1) + i;
        }
    }
    graph_value *sums = onnx_concat(n, (uint32_t)s->n, part, 1);
    return onnx_binary(n, "add", pick(n, sums, s->pairs, of_i), pick(n, sums, s->pairs, of_j));
}

/* A linear kernel: a row of weights for each pair. */
static graph_value *scores_of_features(const classes *s)
{
    onnx_node *n = s->m.n;
    const int64_t all = s->m.vectors, width = s->m.width;
    double *w = arena_array(&n->c->mem, double, (size_t)(s->pairs * width) + 1u);
    int64_t q = 0;
    for (int64_t i = 0; i < s->n; i++)
        for (int64_t j = i + 1; j < s->n; j++, q++) {
            const double *of_i = s->m.coefficients.v + (j - 1) * all + s->first[i];
            const double *of_j = s->m.coefficients.v + i * all + s->first[j];
            add_weights(&s->m, s->first[i], s->per_class[i], of_i, w + q * width);
            add_weights(&s->m, s->first[j], s->per_class[j], of_j, w + q * width);
        }
    return onnx_matmul(n, s->m.x, ml_matrix(n, DT_F32, 2, (int64_t[]){s->pairs, width}, w), false, true, DT_NONE);
}

static graph_value *scores_of_vectors(const classes *s)
{
    graph_value *k = kernels(&s->m);
    return s->n <= 4 ? scores_at_once(s, k) : scores_by_class(s, k);
}

/* [rows, pairs]: above 0 is for the first class of a pair. */
static graph_value *pair_scores(const classes *s)
{
    onnx_node *n = s->m.n;
    const bool by_feature = s->m.kind == LINEAR && s->pairs <= s->m.vectors; /* otherwise the vectors are smaller */
    graph_value *y = by_feature ? scores_of_features(s) : scores_of_vectors(s);
    return onnx_binary(n, "add", y, ml_vector(n, DT_F32, (uint32_t)s->pairs, s->m.rho.v));
}

/* The class with the most votes; of equal ones the first. Counts of votes are exact in f32. */
static graph_value *voted(const classes *s, graph_value *y)
{
    onnx_node *n = s->m.n;
    double *w = arena_array(&n->c->mem, double, (size_t)(s->n * s->pairs));
    double *least = arena_array(&n->c->mem, double, (size_t)s->n);
    int64_t q = 0;
    for (int64_t i = 0; i < s->n; i++)
        for (int64_t j = i + 1; j < s->n; j++, q++) {
            w[i * s->pairs + q] = 1;
            w[j * s->pairs + q] = -1;
            least[j] += 1;
        }
    graph_value *first = onnx_cast(n, onnx_binary(n, "greater", y, onnx_const_like(n, y, 0)), DT_F32);
    if (s->n == 2) {
        graph_value *one = onnx_const_float(n, DT_F32, 1);
        return onnx_reshape(n, onnx_cast(n, onnx_binary(n, "subtract", one, first), DT_I64), 1, y->type.shape.dims);
    }
    graph_value *votes = onnx_matmul(n, first, ml_matrix(n, DT_F32, 2, (int64_t[]){s->n, s->pairs}, w), false, true,
                                     DT_NONE);
    return ml_argmax(n, onnx_binary(n, "add", votes, ml_vector(n, DT_F32, (uint32_t)s->n, least)));
}

/* Probabilities of pairs, kept away from 0 and 1, and from these those of the classes. */
static graph_value *probabilities(const classes *s, graph_value *y, ml_floats a, ml_floats b)
{
    onnx_node *n = s->m.n;
    const uint32_t pairs = (uint32_t)s->pairs;
    graph_value *z = onnx_binary(n, "multiply", y, ml_vector(n, DT_F32, pairs, a.v));
    z = onnx_binary(n, "add", z, ml_vector(n, DT_F32, pairs, b.v));
    graph_value *one = onnx_const_float(n, DT_F32, 1), *r = onnx_binary(n, "subtract", one, ml_logistic(n, z));
    graph_value *low = onnx_const_float(n, DT_F32, (double)1e-7f);
    graph_value *high = onnx_const_float(n, DT_F32, (double)(1 - 1e-7f));
    r = onnx_emit(n, ONNX_ARGS("clip", 0, NULL, r, low, high));
    attr count = attr_int(n->c, "classes", s->n);
    return onnx_emit(n, ONNX_ARGS("pairwise_coupling", 1, &count, r));
}

/* The one score of two classes as two. PROBIT defines the first alone. */
static graph_value *two_scores(onnx_node *n, graph_value *s, ml_post post)
{
    graph_value *one = onnx_const_like(n, s, 1), *first = NULL;
    switch (post) {
    case ML_NONE: first = onnx_unary(n, "negative", s); break;
    case ML_LOGISTIC:
        s = ml_logistic(n, s);
        first = onnx_binary(n, "subtract", one, s);
        break;
    case ML_SOFTMAX:
    case ML_SOFTMAX_ZERO: first = onnx_binary(n, "subtract", one, s); break;
    case ML_PROBIT: s = first = ml_probit(n, s); break;
    }
    graph_value *both[2] = {first, s};
    return onnx_concat(n, 2, both, 1);
}

/* Without support vectors: a row of coefficients for each class, and the first rho for all. */
static bool classify_linear(onnx_node *n, const machine *m, const ml_labels *l, ml_post post)
{
    if (m->coefficients.n != m->width * l->n)
        return onnx_fail(n, DIAG_FORMAT, "%u coefficients do not make %u rows for %lld features", m->coefficients.n,
                         l->n, (long long)m->width);
    graph_value *w = ml_matrix(n, DT_F32, 2, (int64_t[]){l->n, m->width}, m->coefficients.v);
    graph_value *y = onnx_matmul(n, m->x, w, false, true, DT_NONE);
    y = onnx_binary(n, "add", y, onnx_const_like(n, y, m->rho.v[0]));
    return ml_result_labels(n, 0, ml_argmax(n, y), l) && onnx_alias(n, 1, ml_post_transform(n, y, post));
}

static bool read_classes(onnx_node *n, classes *s, ml_ints per_class)
{
    int64_t *first = arena_array(&n->c->mem, int64_t, per_class.n + 1u);
    s->n = per_class.n;
    s->pairs = s->n * (s->n - 1) / 2;
    s->per_class = per_class.v;
    s->first = first;
    for (uint32_t i = 0; i + 1 < per_class.n; i++)
        first[i + 1] = first[i] + per_class.v[i];
    if (s->labels.n != per_class.n || s->n < 2 || s->n > 1000)
        return onnx_fail(n, DIAG_FORMAT, "there are %u labels for %u classes of vectors", s->labels.n, per_class.n);
    if (s->m.coefficients.n != (s->n - 1) * s->m.vectors || s->m.rho.n != s->pairs)
        return onnx_fail(n, DIAG_FORMAT, "%lld classes of %lld vectors need %lld coefficients and %lld numbers rho",
                         (long long)s->n, (long long)s->m.vectors, (long long)((s->n - 1) * s->m.vectors),
                         (long long)s->pairs);
    return true;
}

static int64_t total(onnx_node *n, ml_ints l)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < l.n; i++) {
        if (l.v[i] < 0 || l.v[i] > INT32_MAX)
            return onnx_fail(n, DIAG_FORMAT, "vectors_per_class cannot be %lld", (long long)l.v[i]), 0;
        sum += l.v[i];
    }
    return sum;
}

bool onnx_op_svm_classifier(onnx_node *n)
{
    const ml_ints per_class = ml_attr_ints(n, "vectors_per_class");
    const ml_floats a = ml_attr_floats(n, "prob_a"), b = ml_attr_floats(n, "prob_b");
    const ml_post post = ml_attr_post(n);
    classes s = {.labels = ml_attr_labels(n, "classlabels_ints", "classlabels_strings")};
    const int64_t vectors = total(n, per_class);
    if (n->failed || !read_machine(n, vectors, &s.m))
        return false;
    if (vectors == 0)
        return s.labels.n ? classify_linear(n, &s.m, &s.labels, post)
                          : onnx_fail(n, DIAG_FORMAT, "classlabels_ints or classlabels_strings is missing");
    if (!read_classes(n, &s, per_class))
        return false;
    if (a.n != b.n || (a.n && a.n != s.pairs))
        return onnx_fail(n, DIAG_FORMAT, "prob_a has %u numbers and prob_b %u; %lld are needed", a.n, b.n,
                         (long long)s.pairs);
    graph_value *y = pair_scores(&s), *scores;
    if (a.n)
        scores = ml_post_transform(n, probabilities(&s, y, a, b), post);
    else
        scores = s.n == 2 ? two_scores(n, y, post) : ml_post_transform(n, y, post);
    return ml_result_labels(n, 0, voted(&s, y), &s.labels) && onnx_alias(n, 1, scores);
}
