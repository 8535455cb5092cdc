/* SPDX-License-Identifier: Apache-2.0 */
/* compile MODEL: compiles a model for this machine and runs it on zeros (docs/how-to/c-api.md). */
#include <lathe/lathe.h>
#include <stdio.h>
#include <stdlib.h>

static void say(void *user, const lathe_diagnostic *d)
{
    (void)user;
    fprintf(stderr, "%s%s%s\n", d->where ? d->where : "", d->where ? ": " : "", d->text);
}

static int run(lathe_context *context, lathe_executable *net)
{
    const lathe_tensor_info *in = lathe_executable_input(net, 0);
    size_t count = 1;
    for (int i = 0; i < in->ndim; i++)
        count *= (size_t)in->shape[i];
    lathe_dltensor x = {.data = calloc(count, in->dtype.bits / 8), .device = {1, 0}, .ndim = in->ndim,
                        .dtype = in->dtype, .shape = (int64_t *)in->shape};
    const lathe_dltensor *inputs[] = {&x};
    lathe_managed_tensor *y;
    int status = lathe_run(context, net, inputs, 1, &y, 1);
    for (int i = 0; status == LATHE_DONE && i < y->dl_tensor.shape[1]; i++)
        printf("%.3f\n", (double)((const float *)y->dl_tensor.data)[i]);
    if (status == LATHE_DONE)
        y->deleter(y);
    free(x.data);
    return status;
}

int main(int argc, char **argv)
{
    lathe_context *context = lathe_context_new();
    lathe_model *model;
    lathe_executable *net = NULL;
    lathe_on_diagnostic(context, say, NULL);
    int status = lathe_read(context, argc > 1 ? argv[1] : "model.onnx", &model);
    status = status == LATHE_DONE ? lathe_compile(context, model, NULL, &net) : status;
    status = status == LATHE_DONE ? run(context, net) : status;
    lathe_executable_free(net);
    lathe_model_free(model);
    lathe_context_free(context);
    return status;
}
