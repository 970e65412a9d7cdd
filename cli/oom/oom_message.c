/* The text is squeezed first: lower case, without white space, escape sequences and the prefixes of
 * lines, so that a wrapped message looks like any other. One pass then finds all wordings: their
 * first two bytes select the few rows to compare at a position. */
#include "oom_text.h"

#include <stdlib.h>
#include <string.h>

#include "process_memory.h"
#include "util.h"

enum {
    FORWARD_BYTES = 6000,         /* of a squeezed message */
    BACK_BYTES = 8 * 1024 * 1024, /* of the log above it, for forms that have numbers there */
    NEAR_BYTES = 400,             /* of the second text of a wording */
    UNIT_BYTES = 5,
    DIGITS = 24,
    PREFIX_BYTES = 40,
    MAX_PREFIXES = 4,
    NO_ROW = UINT8_MAX
};

struct squeezed {
    char *bytes;
    size_t length;
    size_t *lines; /* the position at which each line begins */
    size_t line_count;
};

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Returns the position after an escape sequence of a terminal that begins at `at`. */
static size_t skip_escape(const char *text, size_t length, size_t at)
{
    size_t end = at + 1;

    if (end < length && text[end] == '[') {
        for (end++; end < length && text[end] >= ' ' && text[end] < '@';)
            end++;
        return mt_min_u64(end + 1, length);
    }
    if (end < length && text[end] == ']') {
        for (end++; end < length && text[end] != '\a' && text[end] != '\033' && text[end] != '\n';)
            end++;
        return end;
    }
    return end;
}

/* Returns the length of one thing that logs and quotations put before a line: "> ", "E   ", "| ",
 * "[rank3]: ", "[1,3]<stderr>: ", "3: ", a color. */
static size_t one_prefix(const char *text, size_t length)
{
    const size_t most = mt_min_u64(length, PREFIX_BYTES);
    const char *colon;
    size_t at = 0;

    if (most && *text == '\033')
        return skip_escape(text, length, 0);
    while (at < most && (text[at] == '>' || text[at] == '|' || text[at] == ' ' || text[at] == '\t'))
        at++;
    if (at)
        return at;
    if (most > 1 && text[0] == 'E' && text[1] == ' ')
        return 2;
    if (most > 5 && (memcmp(text, "[rank", 5) == 0 || memcmp(text, "[1,", 3) == 0)) {
        colon = memchr(text, ':', most - 1);
        return colon && colon[1] == ' ' ? (size_t)(colon + 2 - text) : 0;
    }
    while (at < most && is_digit(text[at]))
        at++;
    return at && at + 1 < most && text[at] == ':' && text[at + 1] == ' ' ? at + 2 : 0;
}

static size_t prefix_length(const char *text, size_t length)
{
    size_t at = 0, more;

    for (int i = 0; i < MAX_PREFIXES && (more = one_prefix(text + at, length - at)); i++)
        at += more;
    return at;
}

static struct squeezed squeeze(const char *text, size_t length)
{
    struct squeezed out = {.bytes = mt_memory_new(length + 1)};
    size_t capacity = 1;

    for (size_t i = 0; i < length; i++)
        capacity += text[i] == '\n';
    out.lines = mt_memory_new(capacity * sizeof *out.lines);
    out.lines[out.line_count++] = 0;
    for (size_t i = prefix_length(text, length); i < length;) {
        const char c = text[i];

        if (c == '\033') {
            i = skip_escape(text, length, i);
        } else if (c == '\n') {
            out.lines[out.line_count++] = out.length;
            i += 1 + prefix_length(text + i + 1, length - i - 1);
        } else {
            if (!is_space(c) && c != '*' && c != '`') /* of Markdown */
                out.bytes[out.length++] = lower(c);
            i++;
        }
    }
    return out;
}

static uint64_t line_of(const struct squeezed *text, size_t position)
{
    size_t low = 0, high = text->line_count;

    while (low + 1 < high) {
        const size_t middle = low + (high - low) / 2;
        if (text->lines[middle] <= position)
            low = middle;
        else
            high = middle;
    }
    return low + 1;
}

static bool is_at(const struct squeezed *text, size_t at, const char *words)
{
    const size_t length = strlen(words);

    return at <= text->length && text->length - at >= length &&
           memcmp(text->bytes + at, words, length) == 0;
}

/* Returns the position of the words within [begin, end), or `end`. */
static size_t find(const struct squeezed *text, size_t begin, size_t end, const char *words)
{
    const size_t length = strlen(words);

    for (const char *at = text->bytes + begin, *stop = text->bytes + end;
         (size_t)(stop - at) >= length; at++) {
        at = memchr(at, words[0], (size_t)(stop - at) - length + 1);
        if (!at)
            break;
        if (memcmp(at, words, length) == 0)
            return (size_t)(at - text->bytes);
    }
    return end;
}

static const struct {
    char name[UNIT_BYTES + 1];
    uint8_t power; /* of 1024: every program here means that, also by "GB" */
} units[] = {
    {"bytes", 0}, {"kib", 1}, {"mib", 2}, {"gib", 3}, {"tib", 4}, {"pib", 5}, {"kb", 1}, {"mb", 2},
    {"gb", 3},    {"tb", 4},  {"pb", 5},  {"k", 1},   {"m", 2},   {"g", 3},   {"t", 4},  {"b", 0},
};

/* A whole number is not followed by "m" of the next word: "limit: 4928097480 MaxInUse". */
static size_t unit_at(const struct squeezed *text, size_t at, bool has_point, double *factor)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(units); i++) {
        const size_t length = strlen(units[i].name), end = at + length;

        if (is_at(text, at, units[i].name) && (length > 1 || has_point || end == text->length ||
                                               text->bytes[end] < 'a' || text->bytes[end] > 'z')) {
            *factor = (double)(UINT64_C(1) << (10 * units[i].power));
            return length;
        }
    }
    *factor = 1;
    return 0;
}

static bool is_bytes(enum mt_oom_number number)
{
    return number < MT_OOM_UTILIZATION;
}

/* Reads a number with its unit. Returns the position after it, or `at` if there is none. */
static size_t read_value(const struct squeezed *text, size_t at, enum mt_oom_number number,
                         struct mt_oom_value *value)
{
    double amount = 0, step = 1, factor = 1;
    bool has_point = false;
    size_t end = at;

    *value = (struct mt_oom_value){.is_negative = end < text->length && text->bytes[end] == '-'};
    for (end += value->is_negative; end < text->length && end - at < DIGITS; end++) {
        const char c = text->bytes[end];

        if (c == '.' && !has_point && end + 1 < text->length && is_digit(text->bytes[end + 1])) {
            has_point = true;
        } else if (is_digit(c)) {
            amount = amount * 10 + (c - '0');
            step *= has_point ? 10 : 1;
            value->is_known = true;
        } else if (c != ',' || has_point) {
            break;
        }
    }
    if (!value->is_known)
        return at;
    if (is_bytes(number))
        end += unit_at(text, end, has_point, &factor);
    else if (number < MT_OOM_TOKENS)
        factor = 1e6;
    amount = amount / step * factor;
    if (amount > (double)(UINT64_MAX / 8))
        amount = (double)(UINT64_MAX / 8);
    value->value = (uint64_t)(amount + .5);
    value->error = factor > 1 && is_bytes(number) ? (uint64_t)(factor / step / 2) + 1 : 0;
    return end;
}

/* The beginning of a number with a unit that ends at `end`. */
static size_t value_before(const struct squeezed *text, size_t begin, size_t end)
{
    size_t at = end;

    while (at > begin && end - at < UNIT_BYTES && text->bytes[at - 1] >= 'a' &&
           text->bytes[at - 1] <= 'z')
        at--;
    while (
        at > begin && end - at < DIGITS &&
        (is_digit(text->bytes[at - 1]) || text->bytes[at - 1] == '.' || text->bytes[at - 1] == ','))
        at--;
    while (at < end && !is_digit(text->bytes[at]))
        at++;
    return at;
}

/* Reads the last occurrence of a field within [begin, end). */
static bool read_field(const struct squeezed *text, size_t begin, size_t end,
                       const struct mt_oom_field *field, struct mt_oom_value *value)
{
    const size_t length = strlen(field->before);
    const char *words = length ? field->before : field->after;
    struct mt_oom_value found;
    bool is_found = false;

    for (size_t at = begin; (at = find(text, at, end, words)) < end; at += strlen(words)) {
        const size_t start = length ? at + length : value_before(text, begin, at);
        const size_t stop = read_value(text, start, field->number, &found);

        if (stop == start || (length ? !is_at(text, stop, field->after) : stop != at))
            continue;
        *value = found;
        is_found = true;
    }
    return is_found;
}

static bool has_log_above(enum mt_oom_form form)
{
    return form == MT_OOM_BFC || form >= MT_OOM_NO_BLOCKS;
}

static void read_processes(const struct squeezed *text, size_t begin, size_t end,
                           struct mt_oom_message *message)
{
    static const char word[] = "process";
    struct mt_oom_value id, bytes;

    for (size_t at = begin; (at = find(text, at, end, word)) < end;) {
        size_t stop = read_value(text, at += sizeof word - 1, MT_OOM_TOKENS, &id);

        if (stop == at || !is_at(text, stop, "has"))
            continue;
        at = read_value(text, stop + 3, MT_OOM_FREE, &bytes);
        if (!is_at(text, at, "memoryinuse") || message->process_count == MT_OOM_MAX_PROCESSES)
            continue;
        message->processes[message->process_count++] = bytes.value;
        message->processes_error += bytes.error;
    }
}

static int64_t number_after(const struct squeezed *text, size_t begin, size_t end,
                            const char *const *words)
{
    struct mt_oom_value value;

    for (; *words; words++) {
        const size_t at = find(text, begin, end, *words), start = at + strlen(*words);

        if (at < end && read_value(text, start, MT_OOM_TOKENS, &value) > start &&
            value.value < 1000000 && !value.is_negative)
            return (int64_t)value.value;
    }
    return MT_OOM_NO_NUMBER;
}

/* Fields are read in the order of the table, and the first one that is found counts. */
static void read_numbers(const struct squeezed *text, size_t at, size_t end,
                         struct mt_oom_message *message)
{
    static const char *const devices[] = {"gpu", "deviceordinal", "ondevice", "device:gpu:", NULL};
    const enum mt_oom_form form = message->wording->form;
    const size_t begin = has_log_above(form) && at > BACK_BYTES ? at - BACK_BYTES
                         : has_log_above(form)                  ? 0
                                                                : at;

    for (const struct mt_oom_field *field = mt_oom_fields; field->before; field++)
        if (field->form == form && !message->numbers[field->number].is_known)
            read_field(text, begin, end, field, &message->numbers[field->number]);
    if (form == MT_OOM_PYTORCH)
        read_processes(text, at, end, message);
    message->device = number_after(text, at, mt_min_u64(end, at + NEAR_BYTES), devices);
}

/* What the log wrote before the message on its line. The prefix was cut, so reads the raw text. */
static int64_t read_rank(const char *text, size_t length, uint64_t line)
{
    static const char *const words[] = {"rank=", "rank:", "rank", "tp", NULL};
    struct squeezed squeezed = {0};
    const char *end = text + length, *stop;
    char head[160];

    for (; --line && (text = memchr(text, '\n', (size_t)(end - text)));)
        text++;
    if (!text)
        return MT_OOM_NO_NUMBER;
    stop = memchr(text, '\n', (size_t)(end - text));
    length = mt_min_u64((size_t)((stop ? stop : end) - text), sizeof head);
    for (size_t i = 0; i < length; i++)
        if (!is_space(text[i]))
            head[squeezed.length++] = lower(text[i]);
    squeezed.bytes = head;
    return number_after(&squeezed, 0, squeezed.length, words);
}

/* A row of the table for each first two bytes, and for each row the next one. */
struct index {
    uint8_t first[256][256], next[NO_ROW];
};

static void index_wordings(struct index *index)
{
    size_t count = 0;

    memset(index->first, NO_ROW, sizeof index->first);
    while (mt_oom_wordings[count].anchor && count < NO_ROW)
        count++;
    while (count--) { /* the first row of the table comes first */
        const unsigned char *anchor = (const unsigned char *)mt_oom_wordings[count].anchor;

        index->next[count] = index->first[anchor[0]][anchor[1]];
        index->first[anchor[0]][anchor[1]] = (uint8_t)count;
    }
}

/* Returns whether the second text of a wording is near its anchor. Moves *end behind it. */
static bool is_near(const struct squeezed *text, size_t at, const struct mt_oom_wording *wording,
                    size_t *end)
{
    const size_t begin = at > NEAR_BYTES ? at - NEAR_BYTES : 0;
    const size_t stop = mt_min_u64(text->length, at + NEAR_BYTES);
    const size_t after = at + strlen(wording->anchor);
    size_t found;

    if (!wording->also)
        return true;
    if (wording->also[0] == '^') {
        const uint64_t line = line_of(text, at);

        return text->lines[line - 1] == at &&
               (!wording->also[1] ||
                after == (line < text->line_count ? text->lines[line] : text->length));
    }
    found = find(text, mt_min_u64(after, stop), stop, wording->also);
    if (found < stop && !wording->is_echo)
        *end = found + strlen(wording->also);
    return found < stop || find(text, begin, at, wording->also) < at;
}

/* Sets *end to where the search goes on. An echo may contain the anchor of a message. */
static const struct mt_oom_wording *wording_at(const struct squeezed *text, size_t at,
                                               const struct index *index, size_t *end)
{
    const unsigned char *bytes = (const unsigned char *)text->bytes + at;

    for (uint8_t row = index->first[bytes[0]][bytes[1]]; row != NO_ROW; row = index->next[row]) {
        const struct mt_oom_wording *wording = &mt_oom_wordings[row];

        if (!is_at(text, at, wording->anchor))
            continue;
        *end = at + (wording->is_echo ? 1 : strlen(wording->anchor));
        if (is_near(text, at, wording, end))
            return wording;
    }
    return NULL;
}

static bool begins_with(const char *line, const char *end, const char *words)
{
    return (size_t)(end - line) >= strlen(words) && memcmp(line, words, strlen(words)) == 0;
}

/* The name of the last Python error below a traceback, unless it came from the error before it. */
static void read_later_error(const char *text, size_t length, char name[MT_OOM_ERROR_BYTES])
{
    const char *end = text + length, *line = text;
    bool is_in_traceback = false;

    while (line < end) {
        const char *stop = memchr(line, '\n', (size_t)(end - line)), *at = line;

        stop = stop ? stop : end;
        if (begins_with(line, stop, "During handling of the above") ||
            begins_with(line, stop, "The above exception was"))
            return;
        is_in_traceback |= begins_with(line, stop, "Traceback");
        while (at < stop && (lower(*at) != *at || (*at >= 'a' && *at <= 'z') || is_digit(*at) ||
                             *at == '.' || *at == '_'))
            at++;
        if (is_in_traceback && at > line + 5 && (at == stop || *at == ':') &&
            memcmp(at - 5, "Error", 5) == 0 && at - line < MT_OOM_ERROR_BYTES) {
            memcpy(name, line, (size_t)(at - line));
            name[at - line] = '\0';
            is_in_traceback = false;
        }
        line = stop + 1;
    }
}

/* The script of the last traceback: File "train.py", line 3, in <module>. */
static void read_script(const char *text, size_t length, struct mt_buf *script)
{
    static const char before[] = "File \"", after[] = ", in <module>";
    const char *end = text + length, *line = text;

    while (line < end) {
        const char *stop = memchr(line, '\n', (size_t)(end - line)), *at = line, *quote;

        stop = stop ? stop : end;
        while (at < stop && is_space(*at))
            at++;
        if ((size_t)(stop - at) > sizeof before + sizeof after &&
            memcmp(at, before, sizeof before - 1) == 0 &&
            memcmp(stop - (sizeof after - 1), after, sizeof after - 1) == 0 &&
            (quote = memchr(at + sizeof before - 1, '"', (size_t)(stop - at) - sizeof before))) {
            at += sizeof before - 1;
            mt_buf_reset(script);
            if (*at != '<')
                mt_buf_add(script, at, (size_t)(quote - at));
        }
        line = stop + 1;
    }
}

/* Finds the last message, or the last echo if there is no message. */
static size_t find_last(const struct squeezed *text, struct mt_oom_message *message,
                        size_t *after_last)
{
    static const char killed[] = "SIGKILL";
    struct index *index = mt_memory_new(sizeof *index);
    size_t found = 0;

    index_wordings(index);
    for (size_t at = 0; at + 1 < text->length;) {
        size_t next = at + 1;
        const struct mt_oom_wording *wording = wording_at(text, at, index, &next);

        if (!wording) {
            at++;
            continue;
        }
        if (!message->wording || message->wording->is_echo || !wording->is_echo) {
            message->wording = wording;
            message->later_error[0] = '\0';
            found = at;
        } else if (wording->cause == MT_OOM_CAUSE_KILLED) {
            memcpy(message->later_error, killed, sizeof killed);
        }
        message->count += !wording->is_echo;
        *after_last = at;
        at = next;
    }
    free(index);
    return found;
}

/* The raw position at which a line begins. */
static size_t raw_line(const char *text, size_t length, uint64_t line)
{
    const char *at = text, *end = text + length;

    while (--line && (at = memchr(at, '\n', (size_t)(end - at))))
        at++;
    return at ? (size_t)(at - text) : length;
}

bool mt_oom_find(const char *text, size_t length, struct mt_oom_message *message)
{
    struct squeezed squeezed = squeeze(text, length);
    size_t after_last = 0, at, end, below;

    *message = (struct mt_oom_message){.rank = MT_OOM_NO_NUMBER, .device = MT_OOM_NO_NUMBER};
    at = find_last(&squeezed, message, &after_last);
    if (message->wording) {
        end = mt_min_u64(squeezed.length, at + FORWARD_BYTES);
        message->line = line_of(&squeezed, at);
        read_numbers(&squeezed, at, end, message);
        message->rank = read_rank(text, length, message->line);
        below = raw_line(text, length, line_of(&squeezed, after_last) + 1);
        read_later_error(text + below, length - below, message->later_error);
        read_script(text, raw_line(text, length, message->line), &message->script);
    }
    free(squeezed.lines);
    free(squeezed.bytes);
    return message->wording != NULL;
}

void mt_oom_message_release(struct mt_oom_message *message)
{
    mt_buf_release(&message->script);
}
