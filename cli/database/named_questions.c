#include "named_questions.h"

#include <string.h>

#include "cli.h"
#include "options.h"

size_t mt_named_question_count(void)
{
    size_t count = 0;

    while (mt_database_questions[2 * count])
        count++;
    return count;
}

struct mt_named_question mt_named_question_at(size_t i)
{
    return (struct mt_named_question){mt_database_questions[2 * i],
                                      mt_database_questions[2 * i + 1]};
}

struct mt_named_question mt_named_question_find(const char *name)
{
    size_t count = mt_named_question_count();
    const char *near = NULL;

    for (size_t i = 0; i < count; i++)
        if (strcmp(mt_named_question_at(i).name, name) == 0)
            return mt_named_question_at(i);
    for (size_t i = 0; i < count && !near; i++) {
        const char *known = mt_named_question_at(i).name;

        near = mt_did_you_mean(name, &known, 1);
    }
    if (near)
        mt_message("there is no question '%s'; did you mean '%s'?", name, near);
    else
        mt_message("there is no question '%s'; 'memtrace sql --ask list' prints all", name);
    return (struct mt_named_question){NULL, NULL};
}

/* A comment line at the beginning of a question, without "-- ". */
struct line {
    const char *text;
    size_t length;
};

static bool next_comment(const char **at, struct line *line)
{
    if (strncmp(*at, "-- ", 3) != 0)
        return false;
    line->text = *at + 3;
    line->length = strcspn(line->text, "\n");
    *at = line->text + line->length + (line->text[line->length] == '\n');
    return true;
}

/* ":NAME DEFAULT more words" */
struct declared {
    struct line name, value;
};

static bool next_parameter(const char **at, struct declared *found)
{
    struct line line;

    while (next_comment(at, &line)) {
        if (*line.text != ':')
            continue;
        found->name = (struct line){line.text + 1, strcspn(line.text + 1, " \n")};
        const char *rest = found->name.text + found->name.length;
        rest += strspn(rest, " ");
        found->value = (struct line){rest, strcspn(rest, " \n")};
        return true;
    }
    return false;
}

void mt_named_question_add_description(struct mt_buf *out, const struct mt_named_question *question)
{
    const char *at = question->sql;
    struct line line;

    if (next_comment(&at, &line))
        mt_buf_add(out, line.text, line.length);
}

void mt_named_question_add_parameters(struct mt_buf *out, const struct mt_named_question *question)
{
    const char *at = question->sql;
    struct declared found;

    for (bool more = false; next_parameter(&at, &found); more = true)
        mt_buf_printf(out, "%s%.*s=%.*s", more ? " " : "", (int)found.name.length, found.name.text,
                      (int)found.value.length, found.value.text);
}

void mt_named_question_set_defaults(const struct mt_named_question *question,
                                    struct mt_parameters *parameters)
{
    const char *at = question->sql;
    struct declared found;

    while (next_parameter(&at, &found))
        (void)mt_parameters_set(parameters, found.name.text, found.name.length, found.value.text,
                                found.value.length);
}

/* "1.5", of at most 15 digits: a division of two exact numbers rounds as strtod does. */
static bool read_decimal(const char *text, double *real)
{
    static const size_t most_digits = 15;
    size_t sign = *text == '-', whole = strspn(text + sign, "0123456789");
    char digits[16];
    uint64_t number;
    double scale = 1;

    if (text[sign + whole] != '.')
        return false;
    size_t fraction = strlen(text + sign + whole + 1);
    if (whole + fraction > most_digits)
        return false;
    memcpy(digits, text + sign, whole);
    memcpy(digits + whole, text + sign + whole + 1, fraction);
    if (!mt_decimal_read(digits, whole + fraction, &number))
        return false;
    for (; fraction; fraction--)
        scale *= 10;
    *real = (sign ? -(double)number : (double)number) / scale;
    return true;
}

static struct mt_value value_of(const char *text, size_t length)
{
    size_t sign = *text == '-';
    uint64_t number;
    double real;

    if (!strcmp(text, "null"))
        return (struct mt_value){.kind = MT_VALUE_NULL};
    if (mt_decimal_read(text + sign, length - sign, &number) && number <= INT64_MAX)
        return (struct mt_value){.kind = MT_VALUE_INTEGER,
                                 .integer = sign ? -(int64_t)number : (int64_t)number};
    if (read_decimal(text, &real))
        return (struct mt_value){.kind = MT_VALUE_REAL, .real = real};
    return (struct mt_value){.kind = MT_VALUE_TEXT, .text = text, .length = length};
}

bool mt_parameters_set(struct mt_parameters *parameters, const char *name, size_t name_length,
                       const char *text, size_t length)
{
    for (size_t i = 0; i < parameters->count; i++)
        if (!strncmp(parameters->names[i], name, name_length) && !parameters->names[i][name_length])
            return true;
    if (parameters->count == MT_MAX_PARAMETERS)
        return false;
    const char *kept = mt_arena_text(&parameters->arena, text, length);
    parameters->names[parameters->count] = mt_arena_text(&parameters->arena, name, name_length);
    parameters->values[parameters->count++] = value_of(kept, length);
    return true;
}

void mt_parameters_release(struct mt_parameters *parameters)
{
    mt_arena_release(&parameters->arena);
    parameters->count = 0;
}
