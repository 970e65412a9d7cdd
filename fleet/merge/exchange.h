/* Messages between processes that share the work. MPI is in a separate library (fleet/mpi), so the
 * program also runs where there is no MPI. Tests use their own exchange. */
#ifndef MT_FLEET_EXCHANGE_H
#define MT_FLEET_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

struct mt_exchange {
    uint32_t rank, size; /* of the processes that share the work; size is at least 1 */
    void *context;
    /* Waits until the other process has received the bytes, or until they are buffered. */
    enum mt_status (*send)(void *context, uint32_t to, const void *bytes, size_t length);
    /* Waits for the next message of that process and returns its length. */
    enum mt_status (*expect)(void *context, uint32_t from, uint64_t *length);
    /* Receives the message whose length `expect` returned. Must not be called for an empty
     * message. */
    enum mt_status (*receive)(void *context, uint32_t from, void *bytes, size_t length);
    /* Ends this process's part, after waiting for the other processes. */
    void (*finish)(void *context);
    /* Ends all processes, including this one. For errors before the work is distributed. */
    void (*give_up)(void *context, int exit_code);
};

/* The function that the library of fleet/mpi exports, as "mt_exchange_begin". */
typedef enum mt_status (*mt_exchange_begin_function)(struct mt_exchange *exchange);

/* Loads the library and starts MPI. The library stays loaded, because MPI cannot be started twice
 * in a process. MT_ERR_UNSUPPORTED and the reason if MPI cannot be loaded or started. */
enum mt_status mt_exchange_open(const char *path, struct mt_exchange *exchange,
                                struct mt_error *error) MT_MUST_USE;

#endif
