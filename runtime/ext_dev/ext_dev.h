/* ext_dev.h: the VTA of this process as a row of the virtual machine's device table: libvta's default device, whose
 * buffers are the memory of device ext_dev. It knows the public headers of both sides, and they do not know it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LATHE_EXT_DEV_H
#define LATHE_EXT_DEV_H
#include "lathe_vm.h"
#include "vta_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a row has beside its functions; stays where it is as long as a runtime has the row. */
typedef struct lathe_ext_dev {
    void (*failed)(void *user, const vta_error *e); /* gets what the device says; NULL: stderr does */
    void *user;
    uint32_t buffers; /* that are held through this row */
} lathe_ext_dev;

/* d may be NULL. Makes no device: the first allocation does. */
lathe_device_api lathe_ext_dev_row(lathe_ext_dev *d);
/* The row that a machine takes where its program has registered none (lathe_vm.h). */
const lathe_device_api *lathe_device_api_ext_dev(void);
/* The status that stands for it. */
int32_t lathe_ext_dev_status(vta_status s);

#ifdef __cplusplus
}
#endif
#endif
