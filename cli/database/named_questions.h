/* Questions to a database that have names: the files questions/NAME.sql. The comment lines at the
 * beginning of a file describe it: the first line is its description, and "-- :rows 20" gives the
 * parameter `:rows` a default. */
#ifndef MT_CLI_NAMED_QUESTIONS_H
#define MT_CLI_NAMED_QUESTIONS_H

#include <stddef.h>

#include "arena.h"
#include "buf.h"
#include "database.h"

/* Values of parameters, by name. Names and texts are in `arena`. */
enum { MT_MAX_PARAMETERS = 64 };
struct mt_parameters {
    const char *names[MT_MAX_PARAMETERS];
    struct mt_value values[MT_MAX_PARAMETERS];
    size_t count;
    struct mt_arena arena;
};

struct mt_named_question {
    const char *name, *sql; /* constants of the program */
};

/* Returns the number of questions, and question i < count in alphabetical order. */
size_t mt_named_question_count(void);
struct mt_named_question mt_named_question_at(size_t i);

/* Returns a question with sql NULL after a message if there is none of this name. */
struct mt_named_question mt_named_question_find(const char *name);

/* Appends the description, and the parameters with their defaults: "rows=20 device=null". */
void mt_named_question_add_description(struct mt_buf *out,
                                       const struct mt_named_question *question);
void mt_named_question_add_parameters(struct mt_buf *out, const struct mt_named_question *question);

/* Sets the parameters that have no value yet to their defaults. */
void mt_named_question_set_defaults(const struct mt_named_question *question,
                                    struct mt_parameters *parameters);

/* Sets a parameter from a text: a whole number, a decimal number ("1.5"), `null`, or any other
 * text. Only the first value of a name counts. Returns false if there are too many. */
bool mt_parameters_set(struct mt_parameters *parameters, const char *name, size_t name_length,
                       const char *text, size_t length);
void mt_parameters_release(struct mt_parameters *parameters);

#endif
