/* SPDX-License-Identifier: Apache-2.0 */
/* Ports: the systems that packages run on, as rows of one table (port.def). */
#ifndef LATHE_CODEGEN_PORT_H
#define LATHE_CODEGEN_PORT_H
#include <stdbool.h>
#include <stdint.h>

typedef enum port_system {
    PORT_HOSTED, /* programs have files, arguments, and a process */
    PORT_RTOS,   /* tasks of a firmware */
    PORT_BARE    /* a firmware that is alone on its cores */
} port_system;

/* Which main.c its packages have; all but the first run the model once and print. */
typedef enum port_main {
    PORT_MAIN_FILES,  /* reads and writes files of numbers */
    PORT_MAIN_PRINTS, /* main is all there is */
    PORT_MAIN_FREERTOS,
    PORT_MAIN_CMSIS_RTOS2,
    PORT_MAIN_DUALCORE /* the same as PRINTS, and how the board starts its other core */
} port_main;

typedef struct package_port {
    const char *name, *brief;
    const char *file;      /* of runtime/tvmrt */
    const char *macro;     /* that it and tvmrt.h ask for; "": none */
    const char *libraries; /* " -pthread" */
    port_system system;
    port_main main;
    uint32_t workers; /* of a run, unless somebody says so; 0: the target's */
    uint32_t most_workers;
} package_port;

const package_port *port_find(const char *name); /* NULL: there is none of that name */
const package_port *port_at(uint32_t i);         /* the table's rows in order; NULL behind the last */
const package_port *port_default(void);          /* of packages that run on this machine */
/* Threads of a run that nobody has set: the port's, or `target`, the target's. 0: one, and no thread code. */
uint32_t port_usual_workers(const package_port *p, uint32_t target);
extern const char port_names[]; /* "|posix|freertos|...": the values of --port */
#define PORT_NAMES (port_names + 1)
#endif
