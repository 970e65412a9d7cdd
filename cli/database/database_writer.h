/* Rows of a database that is being written. The first failure is kept; after it, rows are dropped.
 *
 *     mt_row_u64(writer, device->device);
 *     mt_row_text(writer, device->name);
 *     mt_row_end(writer, MT_TABLE_DEVICES); */
#ifndef MT_CLI_DATABASE_WRITER_H
#define MT_CLI_DATABASE_WRITER_H

#include "arena.h"
#include "counters.h"
#include "database.h"
#include "phase.h"
#include "symbols.h"

/* The tables of schema.sql: a recording. */
#define MT_DATABASE_TABLES(ROW)                                                                    \
    ROW(SETTINGS, "settings")                                                                      \
    ROW(DEVICES, "devices")                                                                        \
    ROW(PEAKS, "peaks")                                                                            \
    ROW(INSTANTS, "instants")                                                                      \
    ROW(LEVELS, "levels")                                                                          \
    ROW(PHASES, "phases")                                                                          \
    ROW(PHASE_MEMORY, "phase_memory")                                                              \
    ROW(STEPS, "steps")                                                                            \
    ROW(FRAMES, "frames")                                                                          \
    ROW(STACKS, "stacks")                                                                          \
    ROW(STREAMS, "streams")                                                                        \
    ROW(POOLS, "pools")                                                                            \
    ROW(ORIGINS, "origins")                                                                        \
    ROW(BLOCKS, "block_rows")                                                                      \
    ROW(SEGMENTS, "segments")                                                                      \
    ROW(EVENTS, "events")                                                                          \
    ROW(MODULES, "modules")                                                                        \
    ROW(FINDINGS, "findings")                                                                      \
    ROW(OOMS, "ooms")                                                                              \
    ROW(DRIVER, "driver")

#define MT_TABLE_AT(NAME, name) MT_TABLE_##NAME,
enum mt_database_table { MT_DATABASE_TABLES(MT_TABLE_AT) MT_TABLE_COUNT };
#undef MT_TABLE_AT

/* The tables of a kind of database. */
struct mt_database_schema {
    const char *statements, *indexes; /* indexes: made after the rows, may be "" */
    const char *const *tables;
    unsigned table_count;
};

extern const struct mt_database_schema mt_database_of_run;

enum { MT_ROW_VALUES = 32 };

struct mt_database_writer {
    const struct mt_database_library *library;
    struct mt_database *database;
    const struct mt_database_schema *schema;
    enum mt_status status; /* of the first failure */
    struct mt_error error;
    uint64_t rows;
    /* PRIVATE */
    struct mt_value values[MT_ROW_VALUES];
    unsigned count;
    struct mt_arena texts; /* that had to be changed */
};

/* Creates the tables in an empty file. On failure there is nothing to release. */
enum mt_status mt_database_writer_open(struct mt_database_writer *writer, const char *path,
                                       const struct mt_database_schema *schema,
                                       struct mt_error *error) MT_MUST_USE;
/* Adds indexes and closes the file. Returns the first failure of all. */
enum mt_status mt_database_writer_close(struct mt_database_writer *writer,
                                        struct mt_error *error) MT_MUST_USE;

/* Fields of the current row, in the order of the columns. */
void mt_row_null(struct mt_database_writer *writer);
void mt_row_i64(struct mt_database_writer *writer, int64_t value);
/* SQLite has no larger integers: addresses above 2^63 become negative, as `%x` prints them. */
void mt_row_u64(struct mt_database_writer *writer, uint64_t value);
void mt_row_u64_or_null(struct mt_database_writer *writer, bool has, uint64_t value);
/* Bytes that are not UTF-8 are escaped: "\xff". NULL: no value. Borrows the text until the end of
 * the row. */
void mt_row_text(struct mt_database_writer *writer, const char *text);
/* MT_NO_ID, MT_NO_PHASE and MT_NO_STEP: no value. */
void mt_row_id(struct mt_database_writer *writer, uint32_t id);
void mt_row_phase(struct mt_database_writer *writer, int32_t phase);
void mt_row_step(struct mt_database_writer *writer, int64_t step);
/* requested, allocated, active, reserved */
void mt_row_bytes(struct mt_database_writer *writer, const struct mt_bytes *bytes);
/* Inserts the row into a table, by its index in the schema. */
void mt_row_end(struct mt_database_writer *writer, unsigned table);

/* Runs statements without results. */
void mt_database_writer_execute(struct mt_database_writer *writer, const char *sql);

/* One row of `settings`, which is the first table of every schema. */
void mt_row_setting(struct mt_database_writer *writer, const char *name, const char *text);
void mt_row_setting_number(struct mt_database_writer *writer, const char *name, int64_t number);

#endif
