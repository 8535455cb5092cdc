/* SPDX-License-Identifier: Apache-2.0 */
/* Command queues by handle, and the tensors that queued transfers hold on to. A session is a context with its device;
 * handles are integers that are never used again, so that a stale one is found out. */
#ifndef LATHE_FFI_SESSION_H
#define LATHE_FFI_SESSION_H
#include "args.h"
#include "vta.h"

typedef struct session session;

/* The session of a handle, or of this thread's current device (made when there is none). NULL: raised. What is returned
 * stays until session_put, even when shutdown is called meanwhile; no lock is held. */
session *session_get(const ffi_row *row, int64_t handle);
session *session_current(const ffi_row *row);
void session_put(session *s);
/* session_get and session_put, and between them nobody else is: transfers with the tensors that they hold on to, runs,
 * and reading the device. Recorders run outside. */
session *session_enter(const ffi_row *row, int64_t handle);
session *session_enter_current(const ffi_row *row);
void session_leave(session *s);

int64_t session_handle(const session *s);
vta_context *session_context(const session *s);
vta_device *session_device(const session *s);

/* A simulated device of its own, with its queue: its handle in *out. */
int session_create(const ffi_row *row, const ffi_arg *config, const ffi_arg *options, int64_t *out);
int session_make_current(const ffi_row *row, int64_t handle);
int session_shutdown(const ffi_row *row, const ffi_arg *handle); /* not given: all */
/* The session that owns a buffer handle, as session_get. NULL: raised. */
session *session_of_buffer(const ffi_row *row, int64_t buffer);

/* Raises what the library reported; -1. `s` may be NULL. Clears the context's sticky error. */
int session_raise(const ffi_row *row, session *s, const vta_error *e);

/* The buffer that stands for an argument in a queued transfer of `bytes` from the tensor's start: a handle's own, or
 * one that shows (or stages) the tensor's memory until the next run. `store`: the device writes it. 0: raised. For a
 * tensor: entered. */
vta_buffer session_bind(const ffi_row *row, session *s, const ffi_arg *a, bool store);
/* Runs what is queued; staged results are copied back, and tensors let go. Not entered. */
int session_synchronize(const ffi_row *row, session *s, uint32_t wait_cycles);
#endif
