/* How processes that share the work hand each other bytes: MPI, in a library of its own
 * (fleet/mpi), so that the program also runs where there is none. Tests bring another one. */
#ifndef MT_FLEET_EXCHANGE_H
#define MT_FLEET_EXCHANGE_H

#include <stdint.h>

#include "buf.h"
#include "status.h"

struct mt_exchange {
    uint32_t rank, size; /* of the processes that share the work; size is at least 1 */
    void *context;
    /* Waits until the other process has it, or has room for it. */
    enum mt_status (*send)(void *context, uint32_t to, const void *bytes, size_t length);
    /* Appends the next message of that process. */
    enum mt_status (*receive)(void *context, uint32_t from, struct mt_buf *out);
    /* Ends the part of this process; the processes wait for each other. */
    void (*finish)(void *context);
};

/* What the library of fleet/mpi exports, as "mt_exchange_begin". */
typedef enum mt_status (*mt_exchange_begin_function)(struct mt_exchange *exchange);

/* Loads the library and begins. It stays loaded: MPI cannot be started twice in a process.
 * MT_ERR_UNSUPPORTED and the reason if it cannot be loaded or MPI does not start. */
enum mt_status mt_exchange_open(const char *path, struct mt_exchange *exchange,
                                struct mt_error *error) MT_MUST_USE;

#endif
