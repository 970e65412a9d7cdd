/* A database of SQLite as a file, without SQLite. */
#ifndef MT_BASE_DATABASE_FILE_H
#define MT_BASE_DATABASE_FILE_H

#include <stdbool.h>
#include <stdint.h>

struct mt_database_file {
    bool is_sqlite;            /* the other fields are set only then */
    bool is_own;               /* memtrace wrote it (database.h, MT_DATABASE_ID) */
    bool is_being_changed;     /* another program has not finished a change, the rest of which is in
                                  a file beside it */
    uint32_t version;          /* PRAGMA user_version: of the tables if it is memtrace's own */
    uint64_t bytes, all_bytes; /* its size, and the size that its header requires */
};

/* Never opens a pipe, because its writer would lose its reader. A file that cannot be read is not
 * one of SQLite. */
struct mt_database_file mt_database_file_of(const char *path);

#endif
