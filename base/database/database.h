/* Database files of SQLite. The program may lack that library: database_loaded.c has the same
 * function and loads the module that has it. */
#ifndef MT_BASE_DATABASE_H
#define MT_BASE_DATABASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

/* In the header of a file (PRAGMA application_id), and the version of the tables (user_version).
 * Add 1 if a column or the meaning of a value changes, so that databases beside recordings are made
 * again. */
#define MT_DATABASE_ID      0x6d747264 /* "mtrd" */
#define MT_DATABASE_VERSION 2

enum mt_value_kind { MT_VALUE_NULL, MT_VALUE_INTEGER, MT_VALUE_REAL, MT_VALUE_TEXT };

/* One field of a row. Text is borrowed, has no NUL at its end, and may contain any bytes. In an
 * answer, a real number also has SQLite's text for it, with a NUL. */
struct mt_value {
    enum mt_value_kind kind;
    union {
        int64_t integer;
        double real;
    };
    const char *text;
    size_t length;
};

/* A file that is being written. */
struct mt_database;

/* A question to a file that exists. */
struct mt_database_question {
    const char *path, *sql; /* sql: one statement that changes nothing */
    const char *const *names;
    const struct mt_value *values; /* of parameters: ":name" in the statement */
    size_t parameter_count;
    uint64_t time_limit_ns; /* it ends with an error after this time; 0 = no limit */
    bool *is_late;          /* set if it ended so; NULL: not wanted */
    const char *table;      /* NULL: none */
    bool *reads_table;      /* set to whether the statement reads this table */
    void *context;
    /* Called once, before the rows; NULL: the names are not wanted. */
    void (*on_columns)(void *context, const char *const *names, unsigned count);
    /* Values live until it returns. false: no more rows are wanted. */
    bool (*on_row)(void *context, const struct mt_value *values, unsigned count);
};

struct mt_database_library {
    const char *(*version)(void); /* of SQLite: "3.40.1" */

    /* Opens an empty file for writing. It has no journal: a file that was not closed is useless. */
    enum mt_status (*create)(const char *path, struct mt_database **database,
                             struct mt_error *error);
    /* Runs statements without results. */
    enum mt_status (*execute)(struct mt_database *database, const char *sql,
                              struct mt_error *error);
    /* Prepares an insertion into a table, of as many values as it has columns. Its number is one
     * more than that of the last one; the first is 0. */
    enum mt_status (*prepare)(struct mt_database *database, const char *table,
                              struct mt_error *error);
    enum mt_status (*insert)(struct mt_database *database, unsigned prepared,
                             const struct mt_value *values, unsigned count, struct mt_error *error);
    /* Always releases the database, also if it fails. Accepts NULL. */
    enum mt_status (*close)(struct mt_database *database, struct mt_error *error);

    /* Answers a question. The file is never changed, and no file is made beside it. MT_ERR_USAGE:
     * the statement is wrong, would change something, took too long, or needs too much memory.
     * MT_ERR_FORMAT: the file is no database, or is damaged. */
    enum mt_status (*ask)(const struct mt_database_question *question, struct mt_error *error);
};

/* Returns NULL, with MT_ERR_UNSUPPORTED and what to install, if SQLite cannot be used. */
const struct mt_database_library *mt_database_library(struct mt_error *error);

#endif
