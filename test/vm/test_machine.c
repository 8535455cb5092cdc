/* SPDX-License-Identifier: Apache-2.0 */
/* Machines side by side: runtimes, modules, machines and threads; devices; who keeps what alive; a child process. */
#include "machine_test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void load(uint32_t workers, const char *name, lathe_runtime **rt, lathe_value *library)
{
    lathe_error e = {0};
    char path[400], cache[400];
    lathe_options options = test_options(workers, cache);
    must(lathe_runtime_create(&options, rt, &e));
    must(lathe_LoadFromFile(*rt, module_path(name, path), library, &e));
}

/* straight.case: main(x, y) is (x + y, x + y + 100.., x). */
static int32_t run_straight(const lathe_value *vm, float first)
{
    four x, y;
    lathe_value sum, args[2], result;
    four_set(&x, first);
    four_set(&y, 2 * first);
    args[0] = x.value, args[1] = y.value;
    int32_t status = lathe_call_named(vm, "main", args, 2, &result, NULL);
    if (status == LATHE_OK) {
        status = lathe_array_get(&result, 0, &sum, NULL);
        for (size_t i = 0; i < 4 && status == LATHE_OK; i++)
            status = element(&sum, i) == 3 * first + 2 * (float)i ? LATHE_OK : LATHE_E_KERNEL;
    }
    lathe_release(&result);
    return status;
}

static void test_side_by_side(void **state)
{
    lathe_error e = {0};
    enum { RUNTIMES = 2, MACHINES = 3 };
    lathe_runtime *rt[RUNTIMES];
    lathe_value library[RUNTIMES], vm[RUNTIMES][MACHINES];
    (void)state;
    for (int i = 0; i < RUNTIMES; i++) {
        load((uint32_t)i + 1, "straight", &rt[i], &library[i]);
        for (int k = 0; k < MACHINES; k++)
            must(make_machine(&library[i], k % 2 ? LATHE_MY_DEVICE : LATHE_CPU, k % 2 + 1, &vm[i][k], &e));
    }
    for (int round = 1; round < 20; round++)
        for (int i = 0; i < RUNTIMES * MACHINES; i++)
            assert_int_equal(run_straight(&vm[i % RUNTIMES][i / RUNTIMES], (float)round), LATHE_OK);
    for (int i = 0; i < RUNTIMES; i++) {
        for (int k = 0; k < MACHINES; k++)
            lathe_release(&vm[i][k]);
        lathe_release(&library[i]);
        lathe_runtime_destroy(rt[i]);
    }
}

/* --- threads --- */

struct work {
    lathe_runtime *rt;
    const lathe_value *library, *vm; /* vm NULL: a machine of its own */
    int rounds, failed;
};

static void *run_thread(void *p)
{
    struct work *w = p;
    lathe_value own = {0};
    if (!w->vm && make_machine(w->library, LATHE_CPU, 2, &own, NULL) != LATHE_OK)
        w->failed++;
    for (int i = 1; i <= w->rounds; i++) {
        w->failed += run_straight(w->vm ? w->vm : &own, 1000 + (float)i) != LATHE_OK;
        if (!w->vm && i % 50 == 0)
            w->failed += lathe_set_workers(w->rt, (uint32_t)(i / 50 % 3 + 1), NULL) != LATHE_OK;
    }
    lathe_release(&own);
    return NULL;
}

/* Some threads share a machine, some have one of their own, and change the number of workers meanwhile. */
static void test_threads(void **state)
{
    lathe_error e = {0};
    enum { THREADS = 6 };
    pthread_t threads[THREADS];
    struct work work[THREADS];
    lathe_runtime *rt;
    lathe_value library, vm;
    (void)state;
    load(3, "straight", &rt, &library);
    must(make_machine(&library, LATHE_CPU, 2, &vm, &e));
    for (int i = 0; i < THREADS; i++) {
        work[i] = (struct work){.rt = rt, .library = &library, .vm = i % 2 ? &vm : NULL, .rounds = 200};
        assert_int_equal(pthread_create(&threads[i], NULL, run_thread, &work[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(work[i].failed, 0);
    }
    lathe_release(&vm);
    lathe_release(&library);
    lathe_runtime_destroy(rt);
}

/* A forked process has no threads but its own: it computes alone, and the parent goes on as before. */
static void test_fork(void **state)
{
    lathe_error e = {0};
    lathe_runtime *rt;
    lathe_value library, vm;
    int status = 1;
    (void)state;
    load(4, "straight", &rt, &library);
    must(make_machine(&library, LATHE_CPU, 2, &vm, &e));
    assert_int_equal(run_straight(&vm, 1), LATHE_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int failed = 0;
        for (int i = 1; i < 20; i++)
            failed += run_straight(&vm, (float)i) != LATHE_OK;
        lathe_release(&vm);
        lathe_release(&library);
        lathe_runtime_destroy(rt);
        _exit(failed ? 1 : 0);
    }
    assert_int_equal(run_straight(&vm, 2), LATHE_OK);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    lathe_release(&vm);
    lathe_release(&library);
    lathe_runtime_destroy(rt);
}

/* --- who keeps what --- */

static void test_lifetimes(void **state)
{
    lathe_error e = {0};
    lathe_runtime *rt;
    lathe_value library, vm, function, result, kept, args[2];
    four x, y;
    (void)state;
    load(2, "straight", &rt, &library);
    must(make_machine(&library, LATHE_MY_DEVICE, 2, &vm, &e));
    must(lathe_GetFunction(&vm, "main", &function, &e));
    lathe_release(&library); /* the function keeps the machine, and the machine the library */
    lathe_release(&vm);
    four_set(&x, 1);
    four_set(&y, 10);
    args[0] = x.value, args[1] = y.value;
    must(lathe_call(&function, args, 2, &result, &e));
    lathe_release(&function);
    lathe_runtime_destroy(rt); /* what is left keeps the runtime */
    must(lathe_array_get(&result, 2, &kept, &e));
    kept = lathe_retain(&kept);
    x.at[0] = 99; /* the result is a copy of the argument */
    assert_true(element(&kept, 0) == 1);
    assert_int_equal(lathe_array_size(&result), 3);
    lathe_release(&result);
    assert_true(element(&kept, 3) == 4);
    assert_int_equal(lathe_array_size(&kept), 0);
    lathe_release(&kept);
    assert_int_equal(kept.type, LATHE_NONE);
    lathe_release(&kept);
}

/* An argument that does not lie where kernels want it, and one with gaps. */
static void test_arguments(void **state)
{
    lathe_runtime *rt;
    lathe_value library, vm, result, args[2];
    float memory[16] = {0};
    int64_t gaps[1] = {2}, negative[1] = {-4};
    lathe_error e = {0};
    four x;
    (void)state;
    load(1, "straight", &rt, &library);
    must(make_machine(&library, LATHE_CPU, 2, &vm, &e));
    four_set(&x, 1);
    lathe_dltensor odd = x.tensor;
    odd.data = (char *)memory + 4;
    memcpy(odd.data, x.at, sizeof x.at);
    args[0] = x.value;
    args[1] = (lathe_value){.type = LATHE_DLTENSOR, .u.v_tensor = &odd};
    must(lathe_call_named(&vm, "main", args, 2, &result, &e));
    lathe_release(&result);
    odd.strides = gaps;
    assert_int_equal(lathe_call_named(&vm, "main", args, 2, &result, &e), LATHE_E_SHAPE);
    assert_string_equal(e.message, "argument 1 of main: a tensor whose elements do not lie without gaps");
    odd.strides = NULL;
    odd.shape = negative;
    assert_int_equal(lathe_call_named(&vm, "main", args, 2, &result, &e), LATHE_E_SHAPE);
    odd.shape = NULL;
    assert_int_equal(lathe_call_named(&vm, "main", args, 2, &result, &e), LATHE_E_ARGUMENT);
    odd.shape = x.dims;
    odd.data = NULL;
    assert_int_equal(lathe_call_named(&vm, "main", args, 2, &result, &e), LATHE_E_ARGUMENT);
    odd.data = memory;
    odd.device.type = 2;
    assert_int_equal(lathe_call_named(&vm, "main", args, 2, &result, &e), LATHE_E_UNSUPPORTED);
    assert_string_equal(e.message, "argument 1 of main: no device of type 2 is registered");
    args[1] = (lathe_value){.type = 9};
    assert_int_equal(lathe_call_named(&vm, "main", args, 2, &result, &e), LATHE_E_ARGUMENT);
    args[1].type = -1;
    assert_int_equal(lathe_call_named(&vm, "main", args, 2, &result, &e), LATHE_E_ARGUMENT);
    assert_int_equal(lathe_call(&library, NULL, 0, &result, &e), LATHE_E_ARGUMENT);
    assert_string_equal(e.message, "a module is called, which is not a function");
    assert_int_equal(lathe_call(&vm, NULL, 1, &result, &e), LATHE_E_ARGUMENT);
    assert_int_equal(lathe_GetFunction(&args[0], "main", &result, NULL), LATHE_E_ARGUMENT);
    assert_int_equal(lathe_function_arity(&library, "main", &(int32_t){0}, &e), LATHE_E_ARGUMENT);
    lathe_release(&vm);
    lathe_release(&library);
    lathe_runtime_destroy(rt);
}

/* --- devices --- */

struct counts {
    int allocs, frees, copies, syncs, limit;
    int32_t status;
};

static int32_t count_alloc(void *user, int32_t id, size_t bytes, size_t align, void **out)
{
    struct counts *c = user;
    (void)id;
    if (c->status != LATHE_OK || (c->limit && c->allocs - c->frees >= c->limit))
        return c->status != LATHE_OK ? c->status : LATHE_E_MEMORY;
    c->allocs++;
    *out = aligned_alloc(align, bytes);
    return LATHE_OK;
}

static void count_free(void *user, int32_t id, void *p)
{
    (void)id;
    ((struct counts *)user)->frees++;
    free(p);
}

static int32_t count_copy(void *user, const void *from, size_t from_offset, lathe_device from_device, void *to,
                          size_t to_offset, lathe_device to_device, size_t bytes)
{
    struct counts *c = user;
    (void)from_device, (void)to_device;
    c->copies++;
    memcpy((char *)to + to_offset, (const char *)from + from_offset, bytes);
    return c->status;
}

static int32_t count_sync(void *user, int32_t id)
{
    (void)id;
    ((struct counts *)user)->syncs++;
    return LATHE_OK;
}

static lathe_device_api counting(struct counts *c)
{
    return (lathe_device_api){.name = "counting", .type = LATHE_EXT_DEV, .user = c, .alloc = count_alloc,
                              .free = count_free, .copy = count_copy, .sync = count_sync};
}

/* A pooled allocator asks the device once for many runs, a naive one for each. */
static void test_allocators(void **state)
{
    lathe_error e = {0};
    enum { RUNS = 10000 };
    (void)state;
    for (int64_t kind = 1; kind <= 2; kind++) {
        lathe_runtime *rt;
        lathe_value library, vm, result, zero = integer(0);
        struct counts c = {0};
        lathe_device_api api = counting(&c);
        load(1, "memory", &rt, &library);
        must(lathe_device_register(rt, &api, &e));
        must(make_machine(&library, LATHE_EXT_DEV, kind, &vm, &e));
        for (int i = 0; i < RUNS; i++) {
            must(lathe_call_named(&vm, "device", &zero, 1, &result, &e));
            lathe_release(&result);
        }
        assert_int_equal(c.allocs, kind == 1 ? RUNS : 1);
        lathe_release(&vm);
        assert_int_equal(c.frees, c.allocs);
        lathe_release(&library);
        lathe_runtime_destroy(rt);
    }
}

static void keep_foreign(void *self, int32_t flags)
{
    (void)self, (void)flags; /* it lies on the stack */
}

/* A tensor of another make than ours ends behind its description: what lies there is no sign of anything. */
static void test_foreign_tensors(void **state)
{
    struct {
        struct {
            uint64_t counts;
            int32_t type;
            uint32_t padding;
            void (*deleter)(void *self, int32_t flags);
        } head;
        lathe_dltensor t;
        uint64_t behind[4];
    } foreign = {{UINT64_C(1) << 32 | 1, LATHE_TENSOR, 0, keep_foreign}, {0}, {0}};
    float numbers[2] = {1, 2};
    int64_t dims[1] = {2}, strides[1] = {1};
    lathe_error e = {0};
    lathe_runtime *rt;
    lathe_value library, vm, result, arg = {.type = LATHE_TENSOR};
    (void)state;
    memset(foreign.behind, 0xff, sizeof foreign.behind);
    foreign.t = (lathe_dltensor){numbers, {LATHE_CPU, 0}, 1, {2, 32, 1}, dims, strides, 0};
    arg.u.v_object = (struct lathe_object *)(void *)&foreign;
    load(1, "memory", &rt, &library);
    must(make_machine(&library, LATHE_MY_DEVICE, 2, &vm, &e));
    must(lathe_call_named(&vm, "same", &arg, 1, &result, &e));
    assert_ptr_equal(result.u.v_object, arg.u.v_object);
    assert_true((uint32_t)foreign.head.counts == 2);
    lathe_release(&result);
    assert_true((uint32_t)foreign.head.counts == 1);
    lathe_release(&vm);
    lathe_release(&library);
    lathe_runtime_destroy(rt);
}

static void test_devices(void **state)
{
    lathe_runtime *rt;
    lathe_value library, vm, result, zero = integer(0), args[3];
    struct counts c = {0};
    lathe_device_api api = counting(&c), bad = {.name = "bad"};
    lathe_error e = {0};
    int32_t type;
    four x;
    (void)state;
    load(1, "memory", &rt, &library);
    assert_int_equal(lathe_device_register(rt, &bad, &e), LATHE_E_ARGUMENT);
    assert_int_equal(lathe_device_find(rt, "counting", &type), LATHE_E_NAME);
    must(lathe_device_register(rt, &api, &e));
    must(lathe_device_register(rt, &api, &e)); /* replaced */
    assert_int_equal(lathe_device_find(rt, "counting", &type), LATHE_OK);
    assert_int_equal(type, LATHE_EXT_DEV);
    assert_int_equal(lathe_device_find(rt, "my_device", &type), LATHE_OK);
    assert_int_equal(type, LATHE_MY_DEVICE);
    api.type = LATHE_CPU;
    assert_int_equal(lathe_device_register(rt, &api, &e), LATHE_E_ARGUMENT);
    must(make_machine(&library, LATHE_EXT_DEV, 2, &vm, &e));
    /* There and back. */
    four_set(&x, 5);
    args[0] = x.value, args[1] = integer(LATHE_EXT_DEV), args[2] = zero;
    must(lathe_call_named(&vm, "move", args, 3, &result, &e));
    assert_int_equal(lathe_tensor_of(&result)->device.type, LATHE_EXT_DEV);
    assert_int_equal(c.copies, 1);
    assert_int_equal(c.syncs, 1);
    lathe_value there = result;
    args[0] = there, args[1] = integer(LATHE_CPU);
    must(lathe_call_named(&vm, "move", args, 3, &result, &e));
    assert_true(element(&result, 3) == 8);
    lathe_release(&result);
    lathe_release(&there);
    /* No memory, and copies that fail. */
    c.limit = 1;
    must(lathe_call_named(&vm, "device", &zero, 1, &result, &e));
    lathe_release(&result);
    c.limit = 0;
    c.status = LATHE_E_MEMORY;
    args[0] = x.value, args[1] = integer(LATHE_EXT_DEV);
    assert_int_equal(lathe_call_named(&vm, "move", args, 3, &result, &e), LATHE_E_MEMORY);
    assert_int_equal(result.type, LATHE_NONE);
    /* Kernels from source take memory of this process only. */
    c.status = LATHE_OK;
    assert_int_equal(lathe_call_named(&vm, "fits", &(lathe_value){.type = LATHE_INT, .u.v_int = 4}, 1, &result, &e),
                     LATHE_E_SHAPE);
    assert_non_null(strstr(e.message, "argument 0 lies on ext_dev:0"));
    lathe_release(&vm);
    assert_int_equal(c.frees, c.allocs);
    lathe_release(&library);
    lathe_runtime_destroy(rt);
}

/* --- options --- */

static void test_bad_options(void **state)
{
    lathe_runtime *rt;
    lathe_options none = {0}, many = {.size = sizeof many, .workers = 100000};
    lathe_value library;
    lathe_error e = {0};
    (void)state;
    assert_int_equal(lathe_runtime_create(&none, &rt, &e), LATHE_E_ARGUMENT);
    assert_null(rt);
    assert_int_equal(lathe_runtime_create(&many, &rt, &e), LATHE_E_ARGUMENT);
    must(lathe_runtime_create(NULL, &rt, &e));
    assert_int_equal(lathe_set_workers(rt, 5000, &e), LATHE_E_ARGUMENT);
    assert_int_equal(lathe_set_workers(rt, 1024, &e), LATHE_OK);
    assert_int_equal(lathe_LoadFromFile(rt, "/nowhere/module.so", &library, &e), LATHE_E_FILE);
    assert_string_equal(e.message, "/nowhere/module.so: No such file or directory");
    assert_int_equal(lathe_LoadFromFile(rt, "/", &library, &e), LATHE_E_FORMAT);
    assert_int_equal(lathe_LoadFromBytes(rt, "nothing", "", 0, &library, &e), LATHE_E_FORMAT);
    assert_string_equal(e.message, "nothing: not an ELF file");
    assert_int_equal(lathe_LoadFromBytes(rt, "nothing", "", 0, &library, NULL), LATHE_E_FORMAT);
    assert_string_equal(lathe_status_text(LATHE_E_KERNEL), "a kernel ended with an error");
    assert_string_equal(lathe_status_text(77), "not a status of lathe_vm.h");
    lathe_runtime_destroy(rt);
    lathe_runtime_destroy(NULL);
}

/* --- metadata --- */

static void test_metadata(void **state)
{
    static const struct {
        int32_t status;
        const char *text, *said;
    } rows[] = {
        {LATHE_OK, "{\"inputs\": [{\"name\": \"x\", \"shape\": [4], \"dtype\": \"float32\", \"device\": \"cpu\"}, "
                   "{\"name\": \"y\", \"shape\": [9, 9], \"dtype\": \"int8\", \"device\": \"my_device:0\"}]}", ""},
        {LATHE_E_FORMAT, "[", "line 1, column 1: "},
        {LATHE_E_FORMAT, "{}", "\"inputs\" is a list"},
        {LATHE_E_SHAPE, "{\"inputs\": []}", "it has 0 inputs, the module 2"},
        {LATHE_E_FORMAT, "{\"inputs\": [1, 2]}", "input 0: it is not an object"},
        {LATHE_E_FORMAT, "{\"inputs\": [{\"name\": \"x\", \"shape\": [4]}, 2]}", "\"name\" and \"dtype\""},
        {LATHE_E_FORMAT, "{\"inputs\": [{\"name\": \"x\", \"dtype\": \"a\"}, 2]}", "input 0: \"shape\" is a list"},
        {LATHE_E_FORMAT, "{\"inputs\": [{\"name\": \"x\", \"dtype\": \"a\", \"shape\": [-4]}, 2]}", "a dimension is a"},
        {LATHE_E_NAME, "{\"inputs\": [{\"name\": \"z\", \"dtype\": \"float32\", \"shape\": [4]}, 2]}",
         "is called z, in"},
        {LATHE_E_SHAPE, "{\"inputs\": [{\"name\": \"x\", \"dtype\": \"int8\", \"shape\": [4]}, 2]}",
         "is of int8, in the"},
        {LATHE_E_SHAPE, "{\"inputs\": [{\"name\": \"x\", \"dtype\": \"float32\", \"shape\": [5]}, 2]}",
         "shape [5], in the"},
        {LATHE_E_SHAPE, "{\"inputs\": [{\"name\": \"x\", \"dtype\": \"float32\", \"shape\": [4, 1]}, 2]}",
         "shape [4, 1]"},
        {LATHE_E_NAME, "{\"inputs\": [{\"name\": \"x\", \"dtype\": \"int8\", \"shape\": [4], \"device\": \"tpu\"}, 2]}",
         "input 0: there is no device tpu"},
        {LATHE_E_FORMAT, "{\"inputs\": [{\"name\": \"x\", \"dtype\": \"float32\", \"shape\": [4], \"device\": 5}, 2]}",
         "input 0: \"device\" is not a text"},
    };
    char path[] = "/tmp/lathe-metadata-XXXXXX";
    lathe_runtime *rt;
    lathe_value library, vm;
    lathe_error e = {0};
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0 && close(fd) == 0);
    load(1, "straight", &rt, &library);
    must(make_machine(&library, LATHE_CPU, 2, &vm, &e));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        assert_true(fputs(rows[i].text, f) >= 0 && fclose(f) == 0);
        e = (lathe_error){0};
        assert_int_equal(lathe_check_metadata(rt, &vm, path, &e), rows[i].status);
        if (!strstr(e.message, rows[i].said))
            fail_msg("no '%s' in '%s'", rows[i].said, e.message);
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(lathe_check_metadata(rt, &vm, path, &e), LATHE_E_FILE);
    assert_int_equal(lathe_check_metadata(rt, &vm, "/", &e), LATHE_E_FILE);
    lathe_release(&vm);
    lathe_release(&library);
    lathe_runtime_destroy(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_side_by_side), cmocka_unit_test(test_threads),   cmocka_unit_test(test_fork),
        cmocka_unit_test(test_lifetimes),    cmocka_unit_test(test_arguments), cmocka_unit_test(test_allocators),
        cmocka_unit_test(test_foreign_tensors),
        cmocka_unit_test(test_devices),      cmocka_unit_test(test_metadata),  cmocka_unit_test(test_bad_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
