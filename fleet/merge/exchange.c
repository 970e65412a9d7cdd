#include "exchange.h"

#include <dlfcn.h>
#include <string.h>

enum mt_status mt_exchange_open(const char *path, struct mt_exchange *exchange,
                                struct mt_error *error)
{
    mt_exchange_begin_function begin;
    /* MPI loads plug-ins, which need to find its functions in the global scope. */
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL), *symbol;

    if (!library)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET, "MPI cannot be loaded: %s",
                       dlerror());
    symbol = dlsym(library, "mt_exchange_begin");
    if (!symbol)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       "%s is not memtrace's library for MPI", path);
    memcpy(&begin, &symbol, sizeof begin);
    if (begin(exchange) != MT_OK)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET, "cannot start MPI");
    return MT_OK;
}
