/* SPDX-License-Identifier: Apache-2.0 */
/* Counts over a finished compile. Only what is exact is called bytes: the size of the code is the C compiler's. */
#include "driver/summary.h"

#include "base/json_out.h"
#include "codegen/c/package.h"
#include "codegen/c/placement.h"
#include "driver/offload_report.h"
#include "driver/transforms.h"
#include "graph/pass/qnn.h"
#include "plan/stream.h"
#include "prog/source.h"
#include "te/te.h"

#include <string.h>

typedef struct facts {
    uint32_t calls, kernels;
    uint64_t macs, table_bytes, stack_bytes, caller_bytes;
    const char *idle[IDLE_SCRATCH + 1]; /* kinds of the operators that leave workers without work, by the cause; "" */
    uint32_t n_idle[IDLE_SCRATCH + 1], n_alone; /* how many; those of one worker */
    uint32_t n_left; /* loops that are slower than their schedule says */
    const char *calling; /* operators that call a function for each element */
    const char *plain;   /* operators with loops without vectors */
    transforms_found transforms;
} facts;

tir_left summary_left(const compile_result *r)
{
    tir_left left = {0};
    for (uint32_t i = 0; i < r->plan.problem->ops.len; i++) {
#define X(member, key, help) left.member += r->plan.problem->ops.data[i].func->left.member;
        TIR_LEFT(X)
#undef X
    }
    return left;
}

static bool is_listed(const char *list, const char *kind)
{
    size_t n = strlen(kind);
    for (const char *at = strstr(list, kind); at; at = strstr(at + 1, kind))
        if ((at == list || at[-1] == ' ') && (at[n] == ',' || at[n] == '\0'))
            return true;
    return false;
}

/* The list with one more kind of operator, each once. */
static const char *listed(arena *a, const char *list, const char *kind)
{
    return is_listed(list, kind) ? list : arena_printf(a, "%s%s%s", list, *list ? ", " : "", kind);
}

static facts gather(compiler *c, arena *a, const compile_result *r)
{
    const plan_problem *p = r->plan.problem;
    const tir_left left = summary_left(r);
    facts x = {.n_left = left.serial + left.whole, .table_bytes = package_instance_bytes(&r->unit),
               .calls = p->ops.len, .kernels = r->prog->kernels.len, .idle = {"", "", ""},
               .calling = "", .plain = ""};
    for (uint32_t i = 0; i < p->ops.len; i++) {
        uint64_t stack = package_stack_bytes(package_code(&p->ops.data[i]));
        const char *kind = p->ops.data[i].step->kernel->kind;
        x.macs += (uint64_t)p->ops.data[i].func->macs;
        if (p->ops.data[i].func->left.calls > 0)
            x.calling = listed(a, x.calling, kind);
        if (p->ops.data[i].func->left.plain > 0)
            x.plain = listed(a, x.plain, kind);
        x.stack_bytes = stack > x.stack_bytes ? stack : x.stack_bytes;
        plan_idle_cause why;
        if (plan_idle_workers(&r->plan, i, &why) == 0)
            continue;
        x.n_alone += r->plan.tasks[i].parts == 1;
        x.n_idle[why]++;
        x.idle[why] = listed(a, x.idle[why], kind);
    }
    x.caller_bytes = package_caller_bytes(p);
    x.transforms = transforms_dear(c, r);
    return x;
}

/* The package itself has no heap; what it calls for parts of the model may have one. */
static void print_heap(writer *w, const compile_result *r)
{
    const char *who = "";
    for (uint32_t i = 0; i < r->prog->sources.len; i++) {
        const prog_source *s = &r->prog->sources.data[i];
        if (s->text)
            who = arena_printf(w->a, "%s%s%s", who, *who ? ", " : "", s->target->name);
    }
    if (*who)
        w_line(w, "heap       none in the package itself; the library or simulator for %s may use some",
               who);
}

/* What lies in which memory of the board. */
static void print_memories(writer *w, const placement *p)
{
    if (!p)
        return;
    w_str(w, "memories   ");
    for (uint32_t i = 0; i < p->n_memories; i++) {
        const board_memory *m = &p->memories[i];
        w_fmt(w, "%s%s %llu of %llu%s", i ? ", " : "", m->name, (unsigned long long)m->used,
              (unsigned long long)m->bytes, m == p->workspace ? " (workspace)" : "");
    }
    w_str(w, "\n");
}

void summary_print_bounds(writer *w, const stream_bounds *b)
{
    if (!b || !b->asked)
        return;
    w_line(w, "streaming  workspace: side by side %llu, kernel by kernel %llu, least cut %llu, reached %llu",
           (unsigned long long)b->one_by_one, (unsigned long long)b->overlapped, (unsigned long long)b->streamed,
           (unsigned long long)b->reached);
    if (b->chains > 0)
        w_line(w, "chains     %u of %u kernels; MACs computed again 0, bytes copied again %llu", b->chains, b->links,
               (unsigned long long)b->copied_again);
}

/* How many remarks begin so, and their reasons, each once. */
static uint32_t notes_that_begin(arena *a, const compile_result *r, const char *begin, const char **reasons)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n_remarks; i++) {
        const char *text = r->remarks[i].text;
        if (strncmp(text, begin, strlen(begin)) != 0)
            continue;
        const char *why = strstr(text, ": "), *more = why ? why + 2 : text;
        if (!strstr(*reasons, more))
            *reasons = arena_printf(a, "%s%s%s", *reasons, **reasons ? "; " : "", more);
        n++;
    }
    return n;
}

static void print_slow(writer *w, const compile_result *r, const facts *x)
{
    const char *gap = "";
    w_str(w, "slow       ");
    if (r->n_quantised > 0) {
        const char *kinds = "";
        for (uint32_t i = 0; i < r->n_remarks; i++)
            if (strcmp(r->remarks[i].pass, "use-integers") == 0)
                kinds = listed(w->a, kinds, r->remarks[i].op);
        w_fmt(w, "quantized operators that compute in float: %u", r->n_quantised);
        if (*kinds)
            w_fmt(w, " (%.200s)", kinds);
        gap = "; ";
    }
    const char *why_plain = "";
    const uint32_t n_plain = notes_that_begin(w->a, r, QNN_NOTE_PLAIN, &why_plain);
    if (n_plain > 0) {
        w_fmt(w, "%ssums of quantized numbers in plain loops: %u (%s)", gap, n_plain, why_plain);
        gap = "; ";
    }
    for (int i = IDLE_NONE + 1; i <= IDLE_SCRATCH; i++) {
        if (x->n_idle[i] == 0)
            continue;
        w_fmt(w, "%soperators that leave some of %u workers idle: %u (%.200s; %s)", gap, r->unit.target->workers,
              x->n_idle[i], x->idle[i], plan_idle_help((plan_idle_cause)i));
        gap = "; ";
    }
    if (x->n_left > 0) {
        w_fmt(w, "%sloops left without vectors or with guards: %u (inspect says where)", gap, x->n_left);
        gap = "; ";
    }
    if (*x->calling) {
        w_fmt(w, "%soperators that call a function for each element: %.200s", gap, x->calling);
        gap = "; ";
    }
    if (*x->plain) {
        w_fmt(w, "%soperators with loops that run without vectors: %.200s", gap, x->plain);
        gap = "; ";
    }
    if (x->transforms.n > 0) {
        w_fmt(w, "%slayout transforms above a tenth of their layer: %u, about %.0f %% of the work (%.200s)", gap,
              x->transforms.n, 100 * x->transforms.share, x->transforms.names);
        gap = "; ";
    }
    w_line(w, "%s", *gap ? "" : "nothing");
}

/* A schedule that no kernel asks for is no error: the file may be for several models. */
static void print_records(writer *w, const compile_result *r)
{
    uint32_t used = te_records_used(r->records);
    const char *chains = r->bounds && r->bounds->chains > 0
                             ? "kernels in chains have schedules of their own, and " : "";
    if (r->records->list.len > 0)
        w_line(w, "schedules  %u of %u given ones are used; %sthe rules chose those of the other kernels", used,
               r->records->list.len, chains);
    uint32_t forms = graph_choices_used(&r->records->forms);
    if (r->records->forms.list.len > 0)
        w_line(w, "forms      %u of %u given ones are used", forms, r->records->forms.list.len);
}

/* The next command, with a compiler for a machine that is not this one. */
static void print_next(writer *w, const compile_result *r, const char *path)
{
    const char *place = text_in_shell(w->a, path);
    const char *cc = target_cross_cc(r->unit.target);
    const char *with = cc ? arena_printf(w->a, " CC=%s", cc) : "";
    if (r->unit.board) {
        w_line(w, "make -C %s/example run", place);
        return;
    }
    if (r->unit.as) {
        w_line(w, "give %s to %s (docs/how-to/firmware.md)", place, r->unit.as->name);
        return;
    }
    if (r->unit.port->system == PORT_BARE)
        w_line(w, "make -C %s lib%s (AR, CPU: see %s/Makefile)", place, with, place);
    else if (r->unit.port->system == PORT_RTOS)
        w_line(w, "compile %s/src/*.c into the firmware", place);
    else if (cc && r->unit.target->small)
        w_line(w, "compile again for a board, with --port baremetal or freertos: %s has no POSIX threads", cc);
    else if (cc)
        w_line(w, "make -C %s%s, and %s/runner there", place, with, place);
    else
        w_line(w, "make -C %s && %s/runner%s", place, place,
               r->unit.group ? r->unit.module_name + strlen(r->unit.group) : "");
}

/* Of all functions of a package. */
static uint64_t most_workspace(const compile_result *r)
{
    uint64_t most = r->plan.workspace_bytes;
    for (uint32_t i = 0; i < r->n_units; i++)
        most = r->units[i].plan->workspace_bytes > most ? r->units[i].plan->workspace_bytes : most;
    return most;
}

static uint64_t all_tables(const compile_result *r)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < r->n_units; i++)
        sum += package_instance_bytes(&r->units[i]);
    return sum;
}

static void print_functions(writer *w, const compile_result *r, const char *place)
{
    const uint64_t workspace = most_workspace(r), tables = all_tables(r);
    for (uint32_t i = 0; i < r->n_units; i++) {
        const codegen_unit *u = &r->units[i];
        w_line(w, "function   %s: calls %u, layers %u, workspace %llu bytes", u->signature, u->plan->problem->ops.len,
               u->plan->n_layers, (unsigned long long)u->plan->workspace_bytes);
    }
    w_line(w, "RAM        %llu bytes: workspace %llu, tables %llu; plus kernel stack, your tensors, tvmrt",
           (unsigned long long)(workspace + tables), (unsigned long long)workspace, (unsigned long long)tables);
    w_line(w, "flash      %llu bytes of constants, shared; the C build shows the size of the code",
           (unsigned long long)r->plan.constant_bytes);
    w_fmt(w, "package    %s: %u files, target %s, port %s; next: ", place, r->artifact.files.len, r->unit.target->name,
          r->unit.port->name);
    print_next(w, r, place);
}

/* A computation has no operators, and nobody counts its multiply-adds. `layers`: their number, as text. */
static void print_operators(writer *w, const compile_result *r, const facts *x, const char *layers)
{
    const char *open = "";
    for (uint32_t i = 0; i < r->unit.func->n_inputs; i++)
        if (prog_is_unbounded(&r->unit.func->values.data[i]))
            open = arena_printf(w->a, " where each extent without a bound is %lld", (long long)TE_USUAL_EXTENT);
    if (r->graph)
        w_line(w, "operators  %u of the model; calls %u, kernels %u%s, MACs %llu%s", r->n_nodes, x->calls, x->kernels,
               layers, (unsigned long long)x->macs, open);
    else
        w_line(w, "operators  none: this is a computation; calls %u, kernels %u%s", x->calls, x->kernels, layers);
}

/* Weights of 4 bits that take twice their bytes, and why. */
static void print_bytes(writer *w, const compile_result *r)
{
    const char *reasons = "";
    const uint32_t n = notes_that_begin(w->a, r, QNN_NOTE_BYTES, &reasons);
    if (n > 0)
        w_line(w, "4 bits     weights become bytes in %u operators (%s)", n, reasons);
}

void summary_print(compiler *c, writer *w, const compile_result *r, const char *place)
{
    if (r->unit.group) {
        print_functions(w, r, place);
        return;
    }
    const facts x = gather(c, w->a, r);
    print_operators(w, r, &x, arena_printf(w->a, ", layers %u", r->plan.n_layers));
    w_line(w,
           "RAM        %llu bytes: workspace %llu, tables %llu; plus kernel stack %llu, your tensors %llu, "
           "tvmrt",
           (unsigned long long)(r->plan.workspace_bytes + x.table_bytes), (unsigned long long)r->plan.workspace_bytes,
           (unsigned long long)x.table_bytes, (unsigned long long)x.stack_bytes, (unsigned long long)x.caller_bytes);
    print_heap(w, r);
    w_line(w, "flash      %llu bytes of constants; the C build shows the size of the code",
           (unsigned long long)r->plan.constant_bytes);
    print_memories(w, r->unit.places);
    summary_print_bounds(w, r->bounds);
    print_bytes(w, r);
    print_slow(w, r, &x);
    print_records(w, r);
    if (r->unit.offload)
        offload_show_short(w, r->unit.offload);
    w_fmt(w, "package    %s: %u files, target %s, port %s; next: ", place, r->artifact.files.len, r->unit.target->name,
          r->unit.port->name);
    print_next(w, r, place);
}

void summary_print_module(compiler *c, writer *w, const compile_result *r, const char *place)
{
    const facts x = gather(c, w->a, r);
    print_operators(w, r, &x, "");
    for (uint32_t i = 0; i < r->n_units; i++) {
        const codegen_unit *u = &r->units[i];
        w_line(w, "vectors    %u bytes, as for %s: workspace %llu bytes, constants %llu", u->target->vector_bytes,
               u->target->name, (unsigned long long)u->plan->workspace_bytes,
               (unsigned long long)u->plan->constant_bytes);
    }
    print_bytes(w, r);
    print_slow(w, r, &x);
    print_records(w, r);
    if (r->unit.offload)
        offload_show_short(w, r->unit.offload);
    w_line(w, "module     %s: %zu bytes, of which C source %llu; next: lathe run %s", place,
           r->artifact.files.data[0].len, (unsigned long long)r->artifact.source_bytes, text_in_shell(w->a, place));
}

static void put_functions(json_out *j, const compile_result *r)
{
    json_out_array(j, "functions");
    for (uint32_t i = 0; i < r->n_units; i++) {
        const codegen_unit *u = &r->units[i];
        json_out_object(j, NULL);
        json_out_text(j, "signature", u->signature);
        json_out_uint(j, "calls", u->plan->problem->ops.len);
        json_out_uint(j, "layers", u->plan->n_layers);
        json_out_uint(j, "workspace_bytes", u->plan->workspace_bytes);
        json_out_uint(j, "table_bytes", package_instance_bytes(u));
        json_out_end(j);
    }
    json_out_end(j);
}

/* A package: its place, and the bytes that it takes. */
static void put_package(json_out *j, const compile_result *r, const facts *x, const char *place)
{
    json_out_text(j, "package", place);
    json_out_text(j, "target", r->unit.target->name);
    json_out_text(j, "port", r->unit.port->name);
    json_out_uint(j, "files", r->artifact.files.len);
    json_out_uint(j, "layers", r->plan.n_layers);
    json_out_uint(j, "workspace_bytes", r->unit.group ? most_workspace(r) : r->plan.workspace_bytes);
    json_out_uint(j, "table_bytes", x->table_bytes);
    json_out_uint(j, "kernel_stack_bytes", x->stack_bytes);
    json_out_uint(j, "caller_bytes", x->caller_bytes);
    if (r->bounds && r->bounds->asked) {
        json_out_uint(j, "streamed_chains", r->bounds->chains);
        json_out_uint(j, "streamed_kernels", r->bounds->links);
        json_out_uint(j, "copied_again_bytes", (uint64_t)r->bounds->copied_again);
    }
    json_out_uint(j, "constant_bytes", r->plan.constant_bytes);
    placement_json(j, r->unit.places);
    if (r->unit.group)
        put_functions(j, r);
}

/* A module, with what differs by the width of vectors. */
static void put_module(json_out *j, const compile_result *r, const char *place)
{
    json_out_text(j, "module", place);
    json_out_uint(j, "bytes", r->artifact.files.data[0].len);
    json_out_uint(j, "source_bytes", r->artifact.source_bytes);
    json_out_array(j, "variants");
    for (uint32_t i = 0; i < r->n_units; i++) {
        const codegen_unit *u = &r->units[i];
        json_out_object(j, NULL);
        json_out_text(j, "target", u->target->name);
        json_out_uint(j, "vector_bytes", u->target->vector_bytes);
        json_out_uint(j, "workspace_bytes", u->plan->workspace_bytes);
        json_out_uint(j, "constant_bytes", u->plan->constant_bytes);
        json_out_end(j);
    }
    json_out_end(j);
}

void summary_print_json(compiler *c, writer *w, const compile_result *r, const char *place)
{
    const facts x = gather(c, w->a, r);
    json_out j = json_out_begin(w, JSON_OUT_LINE);
    json_out_object(&j, NULL);
    if (r->artifact.is_file)
        put_module(&j, r, place);
    else
        put_package(&j, r, &x, place);
    json_out_uint(&j, "operators", r->n_nodes);
    json_out_uint(&j, "calls", x.calls);
    json_out_uint(&j, "kernels", x.kernels);
    json_out_uint(&j, "macs", x.macs);
    json_out_uint(&j, "quantized_in_float", r->n_quantised);
    json_out_uint(&j, "on_one_worker", x.n_alone);
    json_out_uint(&j, "on_fewer_workers", x.n_idle[IDLE_EXTENT] + x.n_idle[IDLE_SCRATCH]);
    json_out_uint(&j, "loops_left", x.n_left);
    if (r->records->list.len > 0) {
        json_out_uint(&j, "schedules", r->records->list.len);
        json_out_uint(&j, "schedules_used", te_records_used(r->records));
    }
    if (r->records->forms.list.len > 0) {
        json_out_uint(&j, "forms", r->records->forms.list.len);
        json_out_uint(&j, "forms_used", graph_choices_used(&r->records->forms));
    }
    if (r->unit.offload) {
        json_out_uint(&j, "regions", r->unit.offload->regions.len);
        json_out_uint(&j, "nodes_that_stayed", r->unit.offload->stayed.len);
    }
    json_out_end(&j);
    w_str(w, "\n");
}
