/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler as tvm-ffi functions: each row of compiler_functions.def is a symbol of this library and, once it is
 * loaded behind libtvm_ffi, a global function under `lathe.compiler.`. Results carry the diagnostics with them. */
#include "args.h"
#include "compiler_functions.def"

#include <dlfcn.h>
#include <lathe/lathe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(lathe_dltensor) == sizeof(DLTensor), "the layout of DLPack 1");
_Static_assert(sizeof(lathe_managed_tensor) == sizeof(DLManagedTensorVersioned), "the layout of DLPack 1");

/* --- objects: models and executables behind tvm-ffi's header --- */

typedef struct holder {
    uint64_t reserved[2]; /* in front of every object: tvm-ffi may use it */
    TVMFFIObject head;
    lathe_model *model; /* one of the two */
    lathe_executable *executable;
} holder;

static int32_t holder_type; /* its number in this process; written while the library is loaded */

static holder *holder_of(TVMFFIObject *o)
{
    return o && o->type_index == holder_type ? (holder *)(void *)((char *)o - offsetof(holder, head)) : NULL;
}

static void delete_holder(void *self, int flags)
{
    holder *h = (holder *)(void *)((char *)self - offsetof(holder, head));
    if (flags & kTVMFFIObjectDeleterFlagBitMaskStrong) {
        lathe_model_free(h->model);
        lathe_executable_free(h->executable);
    }
    if (flags & kTVMFFIObjectDeleterFlagBitMaskWeak)
        free(h);
}

static int raise_memory(void)
{
    tvm_ffi()->TVMFFIErrorSetRaisedFromCStr("MemoryError", "no memory");
    return -1;
}

/* Takes the model or the executable. */
static int hold(lathe_model *m, lathe_executable *e, TVMFFIAny *out)
{
    holder *h = calloc(1, sizeof *h);
    if (!h) {
        lathe_model_free(m);
        lathe_executable_free(e);
        return raise_memory();
    }
    h->head.combined_ref_count = (UINT64_C(1) << 32) | 1;
    h->head.type_index = holder_type;
    h->head.deleter = delete_holder;
    h->model = m;
    h->executable = e;
    out->type_index = holder_type;
    out->v_obj = &h->head;
    return 0;
}

/* --- text that grows --- */

typedef struct text {
    char *data;
    size_t len, cap;
    bool failed;
} text;

static void put(text *t, const char *s, size_t n)
{
    if (!t->failed && t->len + n + 1 > t->cap) {
        const size_t cap = (t->len + n + 1) * 2;
        char *more = realloc(t->data, cap);
        t->failed = !more;
        t->data = more ? more : t->data;
        t->cap = more ? cap : t->cap;
    }
    if (t->failed)
        return;
    memcpy(t->data + t->len, s, n);
    t->len += n;
}

static void puts_text(text *t, const char *s)
{
    put(t, s, strlen(s));
}

static void put_string(text *t, const char *s)
{
    char code[8];
    if (!s) {
        puts_text(t, "null");
        return;
    }
    puts_text(t, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            put(t, "\\", 1);
        if ((unsigned char)*s < 32)
            put(t, code, (size_t)snprintf(code, sizeof code, "\\u%04x", (unsigned)*s));
        else
            put(t, s, 1);
    }
    puts_text(t, "\"");
}

static void put_field(text *t, const char *before, const char *key, const char *value)
{
    puts_text(t, before);
    put_string(t, key);
    puts_text(t, ": ");
    put_string(t, value);
}

static void put_int(text *t, int64_t v)
{
    char digits[24];
    put(t, digits, (size_t)snprintf(digits, sizeof digits, "%lld", (long long)v));
}

static int return_text(const ffi_row *row, text *t, TVMFFIAny *result)
{
    const int rc = t->failed ? raise_memory() : ffi_return_str(row, result, t->data ? t->data : "", t->len);
    free(t->data);
    return rc;
}

/* --- calls --- */

/* A call on its way: who watches it, and what a watcher raised. */
typedef struct work {
    const ffi_row *row;
    lathe_context *x;
    TVMFFIObject *watch; /* f(stage, share); NULL: nobody */
    int (*check_signals)(void);
    bool raised;      /* by the watcher, or by what came with a signal, */
    bool by_signal;   /* and is known to Python already */
    int32_t outcome;
    TVMFFIAny value;  /* owned */
} work;

static int progress(void *user, const char *stage, double share)
{
    work *w = user;
    TVMFFIAny args[2] = {{.type_index = kTVMFFIRawStr}, {.type_index = kTVMFFIFloat}}, result = {0};
    if (w->check_signals && w->check_signals() != 0) {
        w->raised = w->by_signal = true;
        return 1;
    }
    if (!w->watch || !*stage)
        return 0;
    args[0].v_c_str = stage;
    args[1].v_float64 = share;
    if (tvm_ffi()->TVMFFIFunctionCall(w->watch, args, 2, &result) != 0) {
        w->raised = true;
        return 1;
    }
    if (result.type_index >= kTVMFFIStaticObjectBegin)
        tvm_ffi()->TVMFFIObjectDecRef(result.v_obj);
    return 0;
}

static int begin(work *w, const ffi_row *row, const ffi_arg *watch)
{
    void *check = dlsym(RTLD_DEFAULT, "TVMFFIEnvCheckSignals");
    *w = (work){.row = row, .x = lathe_context_new(), .watch = watch && watch->given ? watch->object : NULL};
    w->value.type_index = kTVMFFINone;
    memcpy(&w->check_signals, &check, sizeof check);
    if (!w->x)
        return raise_memory();
    lathe_on_progress(w->x, progress, w);
    return 0;
}

static void drop(TVMFFIAny *v)
{
    if (v->type_index >= kTVMFFIStaticObjectBegin)
        tvm_ffi()->TVMFFIObjectDecRef(v->v_obj);
    *v = (TVMFFIAny){.type_index = kTVMFFINone};
}

/* A list of libtvm_ffi's own. */
static int make_list(TVMFFIAny *elements, int32_t n, TVMFFIAny *result)
{
    static const TVMFFIByteArray name = {"ffi.Array", sizeof "ffi.Array" - 1};
    TVMFFIObjectHandle f = NULL;
    *result = (TVMFFIAny){.type_index = kTVMFFINone};
    if (tvm_ffi()->TVMFFIFunctionGetGlobal(&name, &f) != 0 || !f)
        return -1;
    const int rc = tvm_ffi()->TVMFFIFunctionCall(f, elements, n, result);
    tvm_ffi()->TVMFFIObjectDecRef(f);
    return rc;
}

static void put_diagnostics(text *t, const lathe_context *x)
{
    static const char *const severities[] = {"note", "warning", "error"};
    const lathe_diagnostic *d;
    puts_text(t, "[");
    for (uint32_t i = 0; (d = lathe_diagnostic_at(x, i)) != NULL; i++) {
        put_field(t, i ? ", {" : "{", "severity", severities[d->severity]);
        put_field(t, ", ", "code", d->code);
        put_field(t, ", ", "where", d->where);
        put_field(t, ", ", "text", d->text);
        put_field(t, ", ", "hint", d->hint);
        puts_text(t, "}");
    }
    puts_text(t, "]");
}

/* [outcome, diagnostics, value] */
static int end(work *w, TVMFFIAny *result)
{
    text t = {NULL, 0, 0, false};
    TVMFFIAny list[3] = {{.type_index = kTVMFFIInt}, {.type_index = kTVMFFINone}, w->value};
    list[0].v_int64 = w->outcome;
    put_diagnostics(&t, w->x);
    lathe_context_free(w->x);
    int rc = return_text(w->row, &t, &list[1]);
    if (rc == 0 && w->raised) {
        if (w->by_signal)
            tvm_ffi()->TVMFFIErrorSetRaisedFromCStr("EnvErrorAlreadySet", "");
        rc = -1;
    }
    if (rc == 0)
        rc = make_list(list, 3, result);
    drop(&list[1]);
    drop(&list[2]);
    return rc;
}

static holder *want(const ffi_row *row, const ffi_arg *a, bool executable)
{
    holder *h = holder_of(a->object);
    if (h && (executable ? h->executable != NULL : h->model != NULL))
        return h;
    (void)ffi_raise(row, "TypeError", "argument 1 is not %s of this library", executable ? "an executable" : "a model");
    return NULL;
}

/* --- settings --- */

/* Names and values in turn; None is the value of a switch. False: raised. */
static bool text_of(const ffi_row *row, const TVMFFIAny *v, const char **out)
{
    ffi_arg a;
    *out = NULL;
    if (v->type_index == kTVMFFINone)
        return true;
    if (!ffi_text(v, &a)) {
        (void)ffi_raise(row, "TypeError", "settings are names and values, both str");
        return false;
    }
    *out = a.bytes;
    return true;
}

/* 0: they are in *out, or w->outcome says why not; else raised. */
static int make_settings(work *w, const char *verb, const ffi_arg *list, lathe_settings **out)
{
    const TVMFFISeqCell *seq = tvm_ffi_cell(list->object);
    const TVMFFIAny *at = seq->data;
    w->outcome = lathe_settings_new(w->x, verb, out);
    for (int64_t i = 0; i + 1 < seq->size && w->outcome == LATHE_DONE; i += 2) {
        const char *n, *v;
        if (!text_of(w->row, &at[i], &n) || !n || !text_of(w->row, &at[i + 1], &v))
            return -1;
        w->outcome = lathe_set(w->x, *out, n, v);
    }
    return 0;
}

/* --- rows --- */

static int run_version(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    (void)a;
    return ffi_return_str(row, result, lathe_version(), strlen(lathe_version()));
}

static int return_model(work *w, lathe_model *m, TVMFFIAny *result)
{
    if (w->outcome == LATHE_DONE && hold(m, NULL, &w->value) != 0) {
        lathe_context_free(w->x);
        return -1;
    }
    return end(w, result);
}

static int return_executable(work *w, lathe_executable *e, TVMFFIAny *result)
{
    if (w->outcome == LATHE_DONE && hold(NULL, e, &w->value) != 0) {
        lathe_context_free(w->x);
        return -1;
    }
    return end(w, result);
}

static int run_read(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    work w;
    lathe_model *m = NULL;
    if (begin(&w, row, &a[1]) != 0)
        return -1;
    w.outcome = lathe_read(w.x, a[0].bytes, &m);
    return return_model(&w, m, result);
}

static int run_read_bytes(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    work w;
    lathe_model *m = NULL;
    if (begin(&w, row, &a[2]) != 0)
        return -1;
    w.outcome = lathe_read_bytes(w.x, a[0].bytes, a[0].size, a[1].bytes, &m);
    return return_model(&w, m, result);
}

static int run_compile(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    work w;
    lathe_settings *s = NULL;
    lathe_executable *e = NULL;
    const holder *h = want(row, &a[0], false);
    if (!h || begin(&w, row, &a[2]) != 0)
        return -1;
    const int rc = make_settings(&w, "compile", &a[1], &s);
    if (rc == 0 && w.outcome == LATHE_DONE)
        w.outcome = lathe_compile(w.x, h->model, s, &e);
    lathe_settings_free(s);
    if (rc == 0)
        return return_executable(&w, e, result);
    lathe_context_free(w.x);
    return rc;
}

static int run_load(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    work w;
    lathe_settings *s = NULL;
    lathe_executable *e = NULL;
    if (begin(&w, row, &a[2]) != 0)
        return -1;
    const int rc = make_settings(&w, "run", &a[1], &s);
    if (rc == 0 && w.outcome == LATHE_DONE)
        w.outcome = lathe_load(w.x, a[0].bytes, s, &e);
    lathe_settings_free(s);
    if (rc == 0)
        return return_executable(&w, e, result);
    lathe_context_free(w.x);
    return rc;
}

static int run_build(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    work w;
    const holder *h = want(row, &a[0], true);
    if (!h || begin(&w, row, &a[1]) != 0)
        return -1;
    w.outcome = lathe_build(w.x, h->executable);
    return end(&w, result);
}

static int run_reset(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    work w;
    const holder *h = want(row, &a[0], true);
    if (!h || begin(&w, row, NULL) != 0)
        return -1;
    w.outcome = lathe_reset(w.x, h->executable);
    return end(&w, result);
}

static int run_save(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    work w;
    const holder *h = want(row, &a[0], true);
    if (!h || begin(&w, row, NULL) != 0)
        return -1;
    w.outcome = lathe_save(w.x, h->executable, a[1].bytes);
    return end(&w, result);
}

/* --- runs --- */

enum { MOST_TENSORS = 1024 };

static void delete_output(DLManagedTensorVersioned *m)
{
    lathe_managed_tensor *own = (lathe_managed_tensor *)(void *)m;
    own->deleter(own);
}

/* Tensors of libtvm_ffi's, which own what the library has made. */
static int tensors_out(lathe_managed_tensor **made, uint32_t n, TVMFFIAny *result)
{
    TVMFFIAny *list = calloc((size_t)n + 1, sizeof *list);
    int rc = list ? 0 : raise_memory();
    for (uint32_t i = 0; i < n; i++) {
        TVMFFIObjectHandle handle = NULL;
        if (rc == 0)
            rc = tvm_ffi()->TVMFFITensorFromDLPackVersioned((DLManagedTensorVersioned *)(void *)made[i], 0, 0, &handle);
        if (!handle) {
            delete_output((DLManagedTensorVersioned *)(void *)made[i]);
            continue;
        }
        list[i].type_index = kTVMFFITensor;
        list[i].v_obj = handle;
    }
    if (rc == 0)
        rc = make_list(list, (int32_t)n, result);
    for (uint32_t i = 0; list && i < n; i++)
        drop(&list[i]);
    free(list);
    return rc;
}

static uint32_t count_outputs(const lathe_executable *e)
{
    uint32_t n = 0;
    while (lathe_executable_output(e, n))
        n++;
    return n;
}

/* The tensors of a list, in *out, which is to be freed; NULL: raised. */
static const lathe_dltensor **tensors_in(const ffi_row *row, const TVMFFISeqCell *seq)
{
    const TVMFFIAny *at = seq->data;
    if (seq->size > MOST_TENSORS) {
        (void)ffi_raise(row, "ValueError", "%lld inputs are too many", (long long)seq->size);
        return NULL;
    }
    const lathe_dltensor **in = calloc((size_t)seq->size + 1, sizeof *in);
    if (!in)
        (void)raise_memory();
    for (int64_t i = 0; in && i < seq->size; i++) {
        if (at[i].type_index != kTVMFFITensor) {
            (void)ffi_raise(row, "TypeError", "input %lld is not a tensor", (long long)i);
            free(in);
            return NULL;
        }
        in[i] = tvm_ffi_cell(at[i].v_obj);
    }
    return in;
}

static int run_run(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    work w;
    const holder *h = want(row, &a[0], true);
    if (!h)
        return -1;
    const TVMFFISeqCell *seq = tvm_ffi_cell(a[1].object);
    const uint32_t n_out = count_outputs(h->executable);
    const lathe_dltensor **in = tensors_in(row, seq);
    if (!in)
        return -1;
    lathe_managed_tensor **out = calloc((size_t)n_out + 1, sizeof *out);
    int rc = out ? begin(&w, row, &a[2]) : raise_memory();
    if (rc == 0) {
        w.outcome = lathe_run(w.x, h->executable, in, (uint32_t)seq->size, out, n_out);
        rc = w.outcome == LATHE_DONE ? tensors_out(out, n_out, &w.value) : 0;
        if (rc != 0)
            lathe_context_free(w.x);
    }
    free(in);
    free(out);
    return rc == 0 ? end(&w, result) : rc;
}

/* --- the same bytes as another type --- */

/* A view of a tensor, and the tensor that it keeps alive. */
typedef struct retyped {
    DLManagedTensorVersioned view;
    TVMFFIObject *owner;
} retyped;

static void delete_retyped(DLManagedTensorVersioned *m)
{
    retyped *r = m->manager_ctx;
    tvm_ffi()->TVMFFIObjectDecRef(r->owner);
    free(r);
}

/* numpy passes neither bfloat16 nor 8-bit floats through DLPack: Python passes them as integers of the same size. Shape
 * and strides are the owner's, which never change. */
static int run_retype(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    const DLTensor *from = a[0].tensor;
    TVMFFIObjectHandle made = NULL;
    if (!from || !a[0].object)
        return ffi_raise(row, "TypeError", "argument 1 is not a tensor that can be kept");
    if (a[1].i < 0 || a[1].i > UINT8_MAX || a[2].i != from->dtype.bits)
        return ffi_raise(row, "ValueError", "elements of %d bits cannot become type %lld of %lld bits",
                         from->dtype.bits, (long long)a[1].i, (long long)a[2].i);
    retyped *r = calloc(1, sizeof *r);
    if (!r)
        return raise_memory();
    r->view = (DLManagedTensorVersioned){.version = {1, 1}, .manager_ctx = r, .deleter = delete_retyped};
    r->view.dl_tensor = *from;
    r->view.dl_tensor.dtype.code = (uint8_t)a[1].i;
    r->owner = a[0].object;
    tvm_ffi()->TVMFFIObjectIncRef(r->owner);
    if (tvm_ffi()->TVMFFITensorFromDLPackVersioned(&r->view, 0, 0, &made) != 0) {
        delete_retyped(&r->view);
        return -1;
    }
    *result = (TVMFFIAny){.type_index = kTVMFFITensor};
    result->v_obj = made;
    return 0;
}

/* --- what things are --- */

static void put_info(text *t, const lathe_tensor_info *info)
{
    put_field(t, "{", "name", info->name);
    puts_text(t, ", \"dtype\": [");
    put_int(t, info->dtype.code);
    puts_text(t, ", ");
    put_int(t, info->dtype.bits);
    puts_text(t, "], \"shape\": [");
    for (int32_t i = 0; i < info->ndim; i++) {
        puts_text(t, i ? ", " : "");
        if (info->symbols[i])
            put_string(t, info->symbols[i]);
        else
            put_int(t, info->shape[i]);
    }
    puts_text(t, "], \"most\": [");
    for (int32_t i = 0; i < info->ndim; i++) {
        puts_text(t, i ? ", " : "");
        put_int(t, info->most[i]);
    }
    puts_text(t, "], \"string_bytes\": ");
    put_int(t, info->string_bytes);
    puts_text(t, "}");
}

static int run_describe(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    text t = {NULL, 0, 0, false};
    const holder *h = holder_of(a[0].object);
    const lathe_tensor_info *info;
    if (!h)
        return ffi_raise(row, "TypeError", "argument 1 is neither a model nor an executable of this library");
    put_field(&t, "{", "kind", h->model ? "model" : lathe_executable_kind(h->executable));
    puts_text(&t, ", \"inputs\": [");
    for (uint32_t i = 0;
         (info = h->model ? lathe_model_input(h->model, i) : lathe_executable_input(h->executable, i)) != NULL; i++) {
        puts_text(&t, i ? ", " : "");
        put_info(&t, info);
    }
    puts_text(&t, "], \"outputs\": [");
    for (uint32_t i = 0;
         (info = h->model ? lathe_model_output(h->model, i) : lathe_executable_output(h->executable, i)) != NULL; i++) {
        puts_text(&t, i ? ", " : "");
        put_info(&t, info);
    }
    puts_text(&t, "]}");
    return return_text(row, &t, result);
}

static int run_report(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    const holder *h = want(row, &a[0], true);
    const char *s = h ? lathe_report(h->executable) : NULL;
    return s ? ffi_return_str(row, result, s, strlen(s)) : -1;
}

/* --- verbs with results in JSON --- */

typedef int32_t (*json_verb)(lathe_context *, const lathe_model *, const lathe_settings *, const char **);

static int end_json(work *w, const char *json, TVMFFIAny *result)
{
    if (json && ffi_return_str(w->row, &w->value, json, strlen(json)) != 0) {
        lathe_context_free(w->x);
        return -1;
    }
    return end(w, result);
}

static int run_json(const ffi_row *row, const ffi_arg *a, json_verb verb, TVMFFIAny *result)
{
    work w;
    lathe_settings *s = NULL;
    const char *json = NULL;
    const holder *h = want(row, &a[0], false);
    if (!h || begin(&w, row, &a[2]) != 0)
        return -1;
    const int rc = make_settings(&w, row->name, &a[1], &s);
    if (rc == 0 && w.outcome == LATHE_DONE)
        w.outcome = verb(w.x, h->model, s, &json);
    lathe_settings_free(s);
    if (rc == 0)
        return end_json(&w, json, result);
    lathe_context_free(w.x);
    return rc;
}

static int run_inspect(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    return run_json(row, a, lathe_inspect, result);
}

static int run_verify(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    return run_json(row, a, lathe_verify, result);
}

static int run_schedule(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    work w;
    lathe_settings *s = NULL;
    const char *text = NULL;
    const holder *h = want(row, &a[0], false);
    if (!h || begin(&w, row, &a[3]) != 0)
        return -1;
    const int rc = make_settings(&w, "compile", &a[1], &s);
    if (rc == 0 && w.outcome == LATHE_DONE)
        w.outcome = lathe_schedule(w.x, h->model, s, a[2].given ? a[2].bytes : NULL, &text);
    lathe_settings_free(s);
    if (rc == 0)
        return end_json(&w, text, result);
    lathe_context_free(w.x);
    return rc;
}

static int run_profile(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    work w;
    const char *json = NULL;
    const holder *h = want(row, &a[0], true);
    const TVMFFISeqCell *seq = a[1].given ? tvm_ffi_cell(a[1].object) : NULL;
    const lathe_dltensor **in = h && seq ? tensors_in(row, seq) : NULL;
    if (!h || (seq && !in))
        return -1;
    if (begin(&w, row, &a[3]) != 0) {
        free(in);
        return -1;
    }
    w.outcome = lathe_profile(w.x, h->executable, in, seq ? (uint32_t)seq->size : 0, (uint32_t)a[2].i, &json);
    free(in);
    return end_json(&w, json, result);
}

typedef int32_t (*json_writer)(lathe_context *, const lathe_model *, const char *, const lathe_settings *,
                               const char **);

/* The same of verbs that write a file. */
static int run_json_writer(const ffi_row *row, const ffi_arg *a, json_writer verb, TVMFFIAny *result)
{
    work w;
    lathe_settings *s = NULL;
    const char *json = NULL;
    const holder *h = want(row, &a[0], false);
    if (!h || begin(&w, row, &a[3]) != 0)
        return -1;
    const int rc = make_settings(&w, row->name, &a[2], &s);
    if (rc == 0 && w.outcome == LATHE_DONE)
        w.outcome = verb(w.x, h->model, a[1].bytes, s, &json);
    lathe_settings_free(s);
    if (rc == 0)
        return end_json(&w, json, result);
    lathe_context_free(w.x);
    return rc;
}

static int run_quantize(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    return run_json_writer(row, a, lathe_quantize, result);
}

static int run_tune(const ffi_row *row, const ffi_arg *a, TVMFFIAny *result)
{
    return run_json_writer(row, a, lathe_tune, result);
}

/* --- exports --- */

#define ROW(id, result_, args_, doc_) {#id, result_, args_, doc_, run_##id},
static const ffi_row rows[] = {COMPILER_FUNCTIONS(ROW)};
enum row_index {
#define X(id, result_, args_, doc_) ROW_##id,
    COMPILER_FUNCTIONS(X)
#undef X
};

#define X(id, result_, args_, doc_) FFI_DEFINE(id, &rows[ROW_##id])
COMPILER_FUNCTIONS(X)
#undef X

static int register_holder(void)
{
    static const char key[] = "lathe.compiler.Object";
    const TVMFFIByteArray name = {key, sizeof key - 1};
    const TVMFFITypeMetadata about = {.total_size = sizeof(holder) - offsetof(holder, head)};
    holder_type = tvm_ffi()->TVMFFITypeGetOrAllocIndex(&name, -1, 1, 0, 1, kTVMFFIObject);
    const TVMFFITypeInfo *info = tvm_ffi()->TVMFFIGetTypeInfo(holder_type);
    return info && !info->metadata ? tvm_ffi()->TVMFFITypeRegisterMetadata(holder_type, &about) : 0;
}

__attribute__((constructor)) static void register_on_load(void)
{
    int rc = tvm_ffi() ? register_holder() : -1;
    for (size_t i = 0; rc == 0 && i < sizeof rows / sizeof *rows; i++)
        rc = ffi_register("lathe.compiler.", &rows[i]);
}
