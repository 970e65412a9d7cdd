/* Replaces database.c in the program: the same function, from libmemtrace-sqlite.so. */
#include <string.h>

#include "database.h"
#include "module.h"

static const struct mt_module module = {"libmemtrace-sqlite.so",
                                        "this memtrace was built without SQLite",
                                        "SQLite (Debian: libsqlite3-0)"};

const struct mt_database_library *mt_database_library(struct mt_error *error)
{
    void *symbol = mt_module_function(&module, "mt_database_library", error);
    __typeof__(&mt_database_library) library;

    if (!symbol)
        return NULL;
    memcpy(&library, &symbol, sizeof library);
    mt_module_share_memory_rules(&module);
    return library(error);
}
