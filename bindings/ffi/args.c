/* SPDX-License-Identifier: Apache-2.0 */
/* Argument checks from a row's text: see the header. */
#include "args.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char last_error[512];

const char *ffi_last_error(void)
{
    return last_error;
}

int ffi_raise(const ffi_row *row, const char *kind, const char *fmt, ...)
{
    char text[448];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    size_t n = strlen(row->name);
    bool named = strncmp(text, row->name, n) == 0 && text[n] == ':'; /* the library has the same names */
    snprintf(last_error, sizeof last_error, "%s%s%s", named ? "" : row->name, named ? "" : ": ", text);
    if (tvm_ffi())
        tvm_ffi()->TVMFFIErrorSetRaisedFromCStr(kind, last_error);
    return -1;
}

int ffi_return_int(TVMFFIAny *result, int64_t v)
{
    *result = (TVMFFIAny){.type_index = kTVMFFIInt};
    result->v_int64 = v;
    return 0;
}

int ffi_return_str(const ffi_row *row, TVMFFIAny *result, const char *s, size_t n)
{
    TVMFFIByteArray bytes = {s, n};
    if (!tvm_ffi())
        return ffi_raise(row, "RuntimeError", "returning text needs libtvm_ffi in the process");
    return tvm_ffi()->TVMFFIStringFromByteArray(&bytes, result);
}

/* --- the text of a row --- */

typedef struct param {
    char name[24], type[12];
    bool optional;
} param;

/* Reads the next name:type; NULL at the end. */
static const char *next_param(const char *at, param *p)
{
    size_t n;
    at += strspn(at, " ");
    if (*at == '\0')
        return NULL;
    n = strcspn(at, "?:");
    snprintf(p->name, sizeof p->name, "%.*s", (int)n, at);
    at += n;
    p->optional = *at == '?';
    at += p->optional ? 2 : 1;
    n = strcspn(at, " ");
    snprintf(p->type, sizeof p->type, "%.*s", (int)n, at);
    return at + n;
}

/* --- what came --- */

static const char *kind_of(const TVMFFIAny *v)
{
    switch (v->type_index) {
    case kTVMFFINone: return "None";
    case kTVMFFIInt: return "int";
    case kTVMFFIBool: return "bool";
    case kTVMFFIFloat: return "float";
    case kTVMFFIOpaquePtr: return "a raw pointer";
    case kTVMFFIDLTensorPtr: return "a tensor view";
    case kTVMFFITensor: return "a Tensor";
    case kTVMFFIRawStr:
    case kTVMFFISmallStr:
    case kTVMFFIStr: return "str";
    case kTVMFFIByteArrayPtr:
    case kTVMFFISmallBytes:
    case kTVMFFIBytes: return "bytes";
    case kTVMFFIFunction: return "a function";
    case kTVMFFIArray: return "a list";
    default: return "an object of another type";
    }
}

static bool as_int(const TVMFFIAny *v, int64_t *out)
{
    *out = v->v_int64;
    return v->type_index == kTVMFFIInt || v->type_index == kTVMFFIBool;
}

static bool as_text(const TVMFFIAny *v, bool bytes, ffi_arg *out)
{
    int32_t raw = bytes ? kTVMFFIByteArrayPtr : kTVMFFIRawStr, small = bytes ? kTVMFFISmallBytes : kTVMFFISmallStr,
            heap = bytes ? kTVMFFIBytes : kTVMFFIStr;
    if (v->type_index == raw && !bytes) {
        out->bytes = v->v_c_str;
        out->size = strlen(v->v_c_str);
    } else if (v->type_index == small) {
        out->bytes = v->v_bytes;
        out->size = v->small_str_len;
    } else if (v->type_index == raw || v->type_index == heap) {
        const TVMFFIByteArray *b = v->type_index == raw ? v->v_ptr : tvm_ffi_cell(v->v_obj);
        out->bytes = b->data;
        out->size = b->size;
    } else {
        return false;
    }
    return true;
}

bool ffi_text(const TVMFFIAny *v, ffi_arg *out)
{
    return as_text(v, false, out);
}

static bool as_tensor(const TVMFFIAny *v, ffi_arg *out)
{
    if (v->type_index == kTVMFFITensor) {
        out->object = v->v_obj;
        out->tensor = tvm_ffi_cell(v->v_obj);
    } else if (v->type_index == kTVMFFIDLTensorPtr) {
        out->tensor = v->v_ptr;
    }
    return out->tensor != NULL;
}

/* Device memory seen as a tensor carries the handle as its data pointer. False: it starts inside of the buffer, which
 * a handle cannot say. */
static bool handle_of_tensor(ffi_arg *out)
{
    if (!out->tensor || out->tensor->device.device_type != kDLExtDev)
        return true;
    if (out->tensor->byte_offset != 0)
        return false;
    out->i = (int64_t)(intptr_t)out->tensor->data;
    out->tensor = NULL;
    out->object = NULL;
    return true;
}

static int convert(const ffi_row *row, const param *p, uint32_t at, const TVMFFIAny *v, ffi_arg *out)
{
    const char *t = p->type, *want;
    bool ok;
    int64_t least = INT64_MIN, most = INT64_MAX;
    out->given = true;
    if (strcmp(t, "dram") == 0 || strcmp(t, "buffer") == 0) {
        ok = as_int(v, &out->i) || as_tensor(v, out);
        if (ok && !handle_of_tensor(out))
            return ffi_raise(row, "ValueError",
                             "%s starts %llu bytes into its buffer: give the whole buffer and an offset in elements",
                             p->name, (unsigned long long)out->tensor->byte_offset);
        want = *t == 'd' ? "a Tensor or a buffer handle (int)" : "a buffer handle (int)";
        ok &= *t == 'd' || !out->tensor;
    } else if (strcmp(t, "recorder") == 0) {
        ok = v->type_index == kTVMFFIFunction;
        out->object = ok ? v->v_obj : NULL;
        want = "a function";
    } else if (strcmp(t, "key") == 0) {
        ok = as_int(v, &out->i) || as_text(v, true, out);
        want = "int or bytes";
    } else if (strcmp(t, "str") == 0 || strcmp(t, "bytes") == 0) {
        ok = as_text(v, *t == 'b', out);
        want = t;
    } else if (strcmp(t, "list") == 0) {
        ok = v->type_index == kTVMFFIArray;
        out->object = ok ? v->v_obj : NULL;
        want = "a tuple";
    } else if (strcmp(t, "module") == 0) { /* of which type, the function asks */
        ok = v->type_index >= kTVMFFIStaticObjectBegin;
        out->object = ok ? v->v_obj : NULL;
        want = "a module";
    } else {
        ok = as_int(v, &out->i);
        want = strcmp(t, "handle") == 0 ? "a command queue's handle (int)" : "int";
        if (strcmp(t, "u32") == 0)
            least = 0, most = UINT32_MAX;
        else if (strcmp(t, "i32") == 0)
            least = INT32_MIN, most = INT32_MAX;
    }
    if (!ok)
        return ffi_raise(row, "TypeError", "argument %u (%s) must be %s, not %s", at + 1, p->name, want, kind_of(v));
    if (out->i < least || out->i > most)
        return ffi_raise(row, "ValueError", "argument %u (%s) is %lld: it must lie between %lld and %lld", at + 1,
                         p->name, (long long)out->i, (long long)least, (long long)most);
    return 0;
}

int ffi_call_row(const ffi_row *row, const TVMFFIAny *args, int32_t n, TVMFFIAny *result)
{
    ffi_arg a[FFI_MAX_ARGS] = {0};
    param p[FFI_MAX_ARGS];
    uint32_t count = 0, needed = 0;
    for (const char *at = next_param(row->args, &p[0]); at;) {
        needed += !p[count].optional;
        count++;
        at = count < FFI_MAX_ARGS ? next_param(at, &p[count]) : NULL;
    }
    last_error[0] = '\0';
    if (n < (int32_t)needed || n > (int32_t)count) {
        char most[24] = "";
        if (count > needed)
            snprintf(most, sizeof most, " to %u", count);
        return ffi_raise(row, "TypeError", "takes %u%s argument%s (%s), not %d", needed, most, count == 1 ? "" : "s",
                         row->args, n);
    }
    for (uint32_t i = 0; i < (uint32_t)n; i++)
        if (!(p[i].optional && args[i].type_index == kTVMFFINone) && convert(row, &p[i], i, &args[i], &a[i]) != 0)
            return -1;
    return row->run(row, a, result);
}

/* --- metadata --- */

typedef struct text {
    char *out;
    size_t size, len;
} text;

static void put(text *t, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++, t->len++)
        if (t->len < t->size)
            t->out[t->len] = s[i];
}

static void puts_text(text *t, const char *s)
{
    put(t, s, strlen(s));
}

static void put_escaped(text *t, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '"' || s[i] == '\\')
            put(t, "\\", 1);
        put(t, &s[i], 1);
    }
}

static const char *schema_of(const char *type)
{
    static const char *const rows[][2] = {
        {"None", "{\"type\":\"None\"}"},
        {"str", "{\"type\":\"ffi.String\"}"},
        {"Tensor", "{\"type\":\"ffi.Tensor\"}"},
        {"dram", "{\"type\":\"Union\",\"args\":[{\"type\":\"ffi.Tensor\"},{\"type\":\"int\"}]}"},
        {"recorder", "{\"type\":\"ffi.Function\"}"},
        {"Function", "{\"type\":\"ffi.Function\"}"},
        {"bytes", "{\"type\":\"ffi.Bytes\"}"},
        {"list", "{\"type\":\"ffi.Array\",\"args\":[{\"type\":\"Any\"}]}"},
        {"Module", "{\"type\":\"ffi.Module\"}"},
        {"module", "{\"type\":\"lathe.Module\"}"},
        {"key", "{\"type\":\"Union\",\"args\":[{\"type\":\"int\"},{\"type\":\"ffi.Bytes\"}]}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i][0], type) == 0)
            return rows[i][1];
    return "{\"type\":\"int\"}";
}

static void put_schema(text *t, const char *type, bool optional)
{
    puts_text(t, optional ? "{\"type\":\"Optional\",\"args\":[" : "");
    puts_text(t, schema_of(type));
    puts_text(t, optional ? "]}" : "");
}

size_t ffi_metadata(const ffi_row *row, char *out, size_t size)
{
    char schema[2048];
    text inner = {schema, sizeof schema, 0}, whole = {out, size, 0};
    param p;
    puts_text(&inner, "{\"type\":\"ffi.Function\",\"args\":[");
    put_schema(&inner, row->result, false);
    for (const char *at = next_param(row->args, &p); at; at = next_param(at, &p)) {
        puts_text(&inner, ",");
        put_schema(&inner, p.type, p.optional);
    }
    puts_text(&inner, "]}");
    puts_text(&whole, "{\"type_schema\":\"");
    put_escaped(&whole, schema, inner.len < sizeof schema ? inner.len : sizeof schema);
    puts_text(&whole, "\",\"arguments\":\"");
    put_escaped(&whole, row->args, strlen(row->args));
    puts_text(&whole, "\",\"doc\":\"");
    put_escaped(&whole, row->doc, strlen(row->doc));
    puts_text(&whole, "\"}");
    return whole.len;
}

int ffi_return_metadata(const ffi_row *row, TVMFFIAny *result)
{
    char json[4096];
    size_t n = ffi_metadata(row, json, sizeof json);
    return ffi_return_str(row, result, json, n < sizeof json ? n : sizeof json);
}

/* --- global functions --- */

/* A global function's closure is its row. */
static int call_row(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result)
{
    return ffi_call_row(self, args, n, result);
}

static TVMFFIByteArray byte_array(const char *s)
{
    return (TVMFFIByteArray){s, strlen(s)};
}

int ffi_register(const char *prefix, const ffi_row *row)
{
    char name[96], json[4096];
    TVMFFIObjectHandle f = NULL;
    TVMFFIMethodInfo info = {0};
    snprintf(name, sizeof name, "%s%s", prefix, row->name);
    if (tvm_ffi()->TVMFFIFunctionCreate((void *)(uintptr_t)row, call_row, NULL, &f) != 0)
        return -1;
    info.name = byte_array(name);
    info.doc = byte_array(row->doc);
    info.metadata = (TVMFFIByteArray){json, ffi_metadata(row, json, sizeof json)};
    info.flags = kTVMFFIFieldFlagBitMaskIsStaticMethod;
    info.method.type_index = kTVMFFIFunction;
    info.method.v_obj = f;
    int rc = tvm_ffi()->TVMFFIFunctionSetGlobalFromMethodInfo(&info, 1);
    tvm_ffi()->TVMFFIObjectDecRef(f);
    return rc;
}
