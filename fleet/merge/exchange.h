/* How processes that share the work hand each other bytes: MPI, in a library of its own
 * (fleet/mpi), so that the program also runs where there is none. Tests bring another one. */
#ifndef MT_FLEET_EXCHANGE_H
#define MT_FLEET_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

struct mt_exchange {
    uint32_t rank, size; /* of the processes that share the work; size is at least 1 */
    void *context;
    /* Waits until the other process has it, or has room for it. */
    enum mt_status (*send)(void *context, uint32_t to, const void *bytes, size_t length);
    /* Waits for the next message of that process, and says how long it is. */
    enum mt_status (*expect)(void *context, uint32_t from, uint64_t *length);
    /* Takes the message that was expected; `length` is its own. Not for an empty one. */
    enum mt_status (*receive)(void *context, uint32_t from, void *bytes, size_t length);
    /* Ends the part of this process; the processes wait for each other. */
    void (*finish)(void *context);
    /* Ends all processes, this one included: for errors before the work is shared. */
    void (*give_up)(void *context, int exit_code);
};

/* What the library of fleet/mpi exports, as "mt_exchange_begin". */
typedef enum mt_status (*mt_exchange_begin_function)(struct mt_exchange *exchange);

/* Loads the library and begins. It stays loaded: MPI cannot be started twice in a process.
 * MT_ERR_UNSUPPORTED and the reason if it cannot be loaded or MPI does not start. */
enum mt_status mt_exchange_open(const char *path, struct mt_exchange *exchange,
                                struct mt_error *error) MT_MUST_USE;

#endif
