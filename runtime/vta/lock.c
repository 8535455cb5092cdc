/* lock.c: how every public function of a context begins and ends. It also reports the context's pending error once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "context.h"

vta_status vta_context_enter(vta_context *c)
{
    if (!c)
        return VTA_BAD_HANDLE;
    pthread_mutex_lock(&c->lock);
    vta_status pending = c->error.status;
    if (pending != VTA_OK)
        pthread_mutex_unlock(&c->lock);
    return pending;
}

vta_status vta_context_leave(vta_context *c, vta_status s)
{
    pthread_mutex_unlock(&c->lock);
    return s;
}

bool vta_context_tell(vta_context *c, vta_error *out)
{
    pthread_mutex_lock(&c->lock);
    bool tell = c->error.status != VTA_OK && !c->told;
    if (tell)
        *out = c->error;
    c->told |= tell;
    pthread_mutex_unlock(&c->lock);
    return tell;
}
