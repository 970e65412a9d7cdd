/* One pass over the squeezed text finds all wordings: their first two bytes select the few rows to
 * compare at a position. */
#include "ascii.h"
#include "oom_text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"
#include "feed.h"
#include "process_memory.h"
#include "util.h"

enum {
    FORWARD_BYTES = 6000,         /* of a squeezed message */
    BACK_BYTES = 8 * 1024 * 1024, /* of the log above it, for forms that have numbers there */
    NEAR_BYTES = 400,             /* of the second text of a wording */
    TRACEBACK_BYTES = 64 * 1024,  /* above the last message */
    PEEK_BYTES = 1024 * 1024,     /* of another command's input */
    UNIT_BYTES = 5,
    DIGITS = 24,
    NO_ROW = UINT8_MAX
};

static bool is_at(const struct mt_oom_squeezed *text, size_t at, const char *words)
{
    const size_t length = strlen(words);

    return at <= text->length && text->length - at >= length &&
           memcmp(text->bytes + at, words, length) == 0;
}

/* Returns the position of the words within [begin, end), or `end`. `begin` may be behind it. */
static size_t find(const struct mt_oom_squeezed *text, size_t begin, size_t end, const char *words)
{
    const size_t length = strlen(words);

    for (const char *at = text->bytes + mt_min_u64(begin, end), *stop = text->bytes + end;
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
static size_t unit_at(const struct mt_oom_squeezed *text, size_t at, bool has_point, double *factor)
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
static size_t read_value(const struct mt_oom_squeezed *text, size_t at, enum mt_oom_number number,
                         struct mt_oom_value *value)
{
    double amount = 0, step = 1, factor = 1;
    bool has_point = false;
    size_t end = at;

    *value = (struct mt_oom_value){.is_negative = end < text->length && text->bytes[end] == '-'};
    for (end += value->is_negative; end < text->length && end - at < DIGITS; end++) {
        const char c = text->bytes[end];

        if (c == '.' && !has_point && end + 1 < text->length && mt_is_digit(text->bytes[end + 1])) {
            has_point = true;
        } else if (mt_is_digit(c)) {
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
static size_t value_before(const struct mt_oom_squeezed *text, size_t begin, size_t end)
{
    size_t at = end;

    while (at > begin && end - at < UNIT_BYTES && text->bytes[at - 1] >= 'a' &&
           text->bytes[at - 1] <= 'z')
        at--;
    while (at > begin && end - at < DIGITS &&
           (mt_is_digit(text->bytes[at - 1]) || text->bytes[at - 1] == '.' ||
            text->bytes[at - 1] == ','))
        at--;
    while (at < end && !mt_is_digit(text->bytes[at]))
        at++;
    return at;
}

/* Reads the first or the last occurrence of a field within [begin, end). */
static void read_field(const struct mt_oom_squeezed *text, size_t begin, size_t end,
                       const struct mt_oom_field *field, bool is_last, struct mt_oom_value *value)
{
    const size_t length = strlen(field->before);
    const char *words = length ? field->before : field->after;
    struct mt_oom_value found;
    bool is_found = false;

    for (size_t at = begin; (is_last || !is_found) && (at = find(text, at, end, words)) < end;
         at += strlen(words)) {
        const size_t start = length ? at + length : value_before(text, begin, at);
        const size_t stop = read_value(text, start, field->number, &found);

        if (stop == start || (length ? !is_at(text, stop, field->after) : stop != at))
            continue;
        *value = found;
        is_found = true;
    }
}

static bool has_log_above(enum mt_oom_form form)
{
    return form == MT_OOM_BFC || (form >= MT_OOM_NO_BLOCKS && form != MT_OOM_START);
}

/* Where the message that begins at `at` ends at most: later lines may have such numbers as well. */
static size_t end_of_message(const struct mt_oom_squeezed *text, size_t at, enum mt_oom_form form)
{
    static const char *const ends[] = {"reservedbypytorchbutunallocated",
                                       "reservedintotalbypytorch", "cached)",
                                       "isallocatedbypytorch."};
    const size_t most = mt_min_u64(text->length, at + FORWARD_BYTES);
    const size_t near = mt_min_u64(text->length, at + NEAR_BYTES);
    size_t first = most;

    if (form == MT_OOM_FIXED || form == MT_OOM_START || form == MT_OOM_MPS)
        return near;
    if (form != MT_OOM_PYTORCH)
        return most;
    for (size_t i = 0; i < MT_ARRAY_LEN(ends); i++) {
        const size_t found = find(text, at, first, ends[i]);

        first = found < first ? found + strlen(ends[i]) : first;
    }
    return first < most ? first : near; /* no end: the message is cut */
}

static void read_processes(const struct mt_oom_squeezed *text, size_t begin, size_t end,
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

static int64_t number_after(const struct mt_oom_squeezed *text, size_t begin, size_t end,
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
static void read_fields(const struct mt_oom_squeezed *text, size_t begin, size_t end, bool is_last,
                        struct mt_oom_message *message)
{
    for (const struct mt_oom_field *field = mt_oom_fields; field->before; field++) {
        struct mt_oom_value *value = &message->numbers[field->number];

        if (field->form == message->wording->form && !value->is_known)
            read_field(text, begin, end, field, is_last, value);
    }
}

/* Numbers that the message lacks may be in the log above, where the last one counts. */
static void read_numbers(const struct mt_oom_squeezed *text, size_t at,
                         struct mt_oom_message *message)
{
    static const char *const devices[] = {"gpu", "deviceordinal", "ondevice", "device:gpu:", NULL};
    const enum mt_oom_form form = message->wording->form;
    const size_t end = end_of_message(text, at, form);

    read_fields(text, at, end, false, message);
    if (has_log_above(form))
        read_fields(text, at - mt_min_u64(at, BACK_BYTES), at, true, message);
    if (form == MT_OOM_PYTORCH)
        read_processes(text, at, end, message);
    message->device = number_after(text, at, mt_min_u64(text->length, at + NEAR_BYTES), devices);
}

static bool ends_with(const struct mt_oom_squeezed *text, size_t end, const char *words)
{
    return end >= strlen(words) && is_at(text, end - strlen(words), words);
}

/* The kind of device is the word before "out of memory". */
static enum mt_oom_device device_kind(const struct mt_oom_squeezed *text, size_t at)
{
    return ends_with(text, at, "hip")   ? MT_OOM_DEVICE_HIP
           : ends_with(text, at, "xpu") ? MT_OOM_DEVICE_XPU
           : ends_with(text, at, "npu") ? MT_OOM_DEVICE_NPU
                                        : MT_OOM_DEVICE_CUDA;
}

/* Returns whether the pool of a message of the BFC allocator is host memory: "Allocator
 * (gpu_host_bfc) ran out of memory", "OOM when allocating tensor ... by allocator cpu". */
static bool is_host_pool(const struct mt_oom_squeezed *text, size_t at)
{
    static const char by[] = "byallocator";
    static const char *const names[] = {"cpu", "mklcpu", "gpu_host_bfc", "cuda_host_bfc"};
    const size_t end = mt_min_u64(text->length, at + NEAR_BYTES);
    size_t name = find(text, at, end, by);

    if (!is_at(text, at, "oomwhen"))
        return ends_with(text, at, "host_bfc)") || ends_with(text, at, "cpu)");
    if (name == end)
        return is_at(text, find(text, at, end, "device:"), "device:cpu:");
    name += sizeof by - 1;
    for (size_t i = 0; i < MT_ARRAY_LEN(names); i++)
        if (is_at(text, name, names[i]))
            return true;
    return false;
}

/* Returns whether the words are in the last traceback above. */
static bool is_in_traceback(const struct mt_oom_squeezed *text, size_t at, const char *words)
{
    static const char first[] = "traceback(mostrecentcalllast)";
    size_t begin = at - mt_min_u64(at, TRACEBACK_BYTES), next;
    bool is_found = false;

    for (; (next = find(text, begin, at, first)) < at; begin = next + sizeof first - 1)
        is_found = true;
    return is_found && find(text, begin, at, words) < at;
}

/* A row with the same anchor may need words in the traceback, which is read once, and not for each
 * message. */
static void choose_by_traceback(const struct mt_oom_squeezed *text, size_t at,
                                const struct mt_oom_wording **wording)
{
    for (const struct mt_oom_wording *row = mt_oom_wordings; row->anchor; row++)
        if (row->also && *row->also == '<' && strcmp(row->anchor, (*wording)->anchor) == 0 &&
            is_in_traceback(text, at, row->also + 1))
            *wording = row;
}

/* What the words around the message show. */
static void read_surroundings(const struct mt_oom_squeezed *text, size_t at,
                              struct mt_oom_message *message)
{
    static const char *const captures[] = {"capture_", "torch/cuda/graphs.py", "cudagraph_trees"};
    const size_t begin = at - mt_min_u64(at, NEAR_BYTES),
                 end = mt_min_u64(text->length, at + NEAR_BYTES);

    message->device_kind = device_kind(text, at);
    message->software = message->wording->software;
    if (message->wording->form == MT_OOM_BFC) {
        message->is_host_pool = is_host_pool(text, at);
        if (find(text, begin, end, "tensorflow") < end || find(text, begin, end, "local_xla") < end)
            message->software = "TensorFlow";
    }
    for (size_t i = 0; i < MT_ARRAY_LEN(captures); i++)
        message->is_in_capture |= is_in_traceback(text, at, captures[i]);
}

/* What the log wrote before the message on its line. The prefix was cut, so reads the raw text. */
static int64_t read_rank(const char *line, size_t length)
{
    static const char *const words[] = {"rank=", "rank:", "rank", "tp", NULL};
    enum { HEAD_BYTES = 160 };
    char head[HEAD_BYTES];
    struct mt_oom_squeezed squeezed = {.bytes = head};

    length = mt_min_u64(length, sizeof head);
    for (size_t i = 0; i < length; i++)
        if (line[i] > ' ')
            head[squeezed.length++] =
                line[i] >= 'A' && line[i] <= 'Z' ? (char)(line[i] - 'A' + 'a') : line[i];
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
    while (mt_oom_wordings[count].anchor)
        count++;
    MT_ASSERT(count < NO_ROW);
    while (count--) { /* the first row of the table comes first */
        const unsigned char *anchor = (const unsigned char *)mt_oom_wordings[count].anchor;

        index->next[count] = index->first[anchor[0]][anchor[1]];
        index->first[anchor[0]][anchor[1]] = (uint8_t)count;
    }
}

static bool begins_line(const struct mt_oom_squeezed *text, size_t at)
{
    return at >= text->length || text->line_begins[at / 8] >> at % 8 & 1;
}

/* Returns whether the bytes of [at, end) are on the line of the byte before `at`. */
static bool is_on_line(const struct mt_oom_squeezed *text, size_t at, size_t end)
{
    while (at < end && !begins_line(text, at))
        at++;
    return at == end;
}

/* Returns whether the second text of a wording is where it must be. Moves *end behind it. */
static bool is_near(const struct mt_oom_squeezed *text, size_t at,
                    const struct mt_oom_wording *wording, size_t *end)
{
    const char *also = wording->also;
    const size_t begin = at - mt_min_u64(at, NEAR_BYTES);
    const size_t after = at + strlen(wording->anchor);
    size_t stop = mt_max_u64(after, mt_min_u64(text->length, at + NEAR_BYTES)), found;

    if (!also)
        return true;
    switch (*also) {
    case '^':
        return begins_line(text, at) &&
               (begins_line(text, after) || (also[1] && is_at(text, after, also + 1)));
    case '<': return false; /* see choose_by_traceback */
    case '|':
        found = find(text, after, stop, also + 1);
        return found < stop && is_on_line(text, after, found);
    case '>':
        stop = find(text, after, stop, wording->anchor);
        return find(text, after, stop, also + 1) < stop;
    default: break;
    }
    found = find(text, after, stop, also);
    if (found < stop && !wording->is_echo)
        *end = found + strlen(also);
    return found < stop || find(text, begin, at, also) < at;
}

/* Sets *end to where the search goes on. An echo may contain the anchor of a message. */
static const struct mt_oom_wording *wording_at(const struct mt_oom_squeezed *text, size_t at,
                                               const struct index *index, size_t *end)
{
    const unsigned char *bytes = (const unsigned char *)text->bytes + at;

    for (uint8_t row = index->first[bytes[0]][bytes[1]]; row != NO_ROW; row = index->next[row]) {
        const struct mt_oom_wording *wording = &mt_oom_wordings[row];

        if (!is_at(text, at, wording->anchor))
            continue;
        *end = at + (wording->is_echo ? 1 : strlen(wording->anchor));
        if (is_near(text, at, wording, end))
            return wording->form == MT_OOM_NO_MESSAGE ? NULL : wording;
        *end = at + 1;
    }
    return NULL;
}

/* Finds the last message, or the last echo if there is no message. */
static size_t find_last(const struct mt_oom_squeezed *text, struct mt_oom_message *message,
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
            at = next;
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

bool mt_oom_find(const char *text, size_t length, struct mt_oom_message *message)
{
    struct mt_oom_squeezed squeezed = mt_oom_squeeze(text, length);
    size_t after_last = 0;

    *message = (struct mt_oom_message){.rank = MT_OOM_NO_NUMBER, .device = MT_OOM_NO_NUMBER};
    size_t at = find_last(&squeezed, message, &after_last);
    if (message->wording) {
        choose_by_traceback(&squeezed, at, &message->wording);
        struct mt_oom_place place = mt_oom_find_place(text, length, at);
        message->line = place.line;
        read_numbers(&squeezed, at, message);
        read_surroundings(&squeezed, at, message);
        message->rank = read_rank(text + place.begin, place.end - place.begin);
        mt_oom_read_script(text, text + place.begin, &message->script);
        size_t below = mt_oom_find_place(text, length, after_last).end;
        mt_oom_read_later_error(text + below + (below < length), text + length,
                                message->later_error);
    }
    free(squeezed.line_begins);
    free(squeezed.bytes);
    return message->wording != NULL;
}

void mt_oom_message_release(struct mt_oom_message *message)
{
    mt_buf_release(&message->script);
}

/* Only a regular file may be read again. */
static bool is_short_file(const char *path)
{
    struct stat facts;

    return stat(path, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size <= MT_OOM_KEPT_BYTES;
}

bool mt_oom_is_in_file(const char *path)
{
    struct mt_oom_message message = {0};
    struct mt_error unused = {.offset = MT_NO_OFFSET};
    struct mt_buf text = {0};
    uint64_t lines_cut;
    bool is_found = strcmp(path, "-") != 0 && is_short_file(path) &&
                    mt_oom_read(path, PEEK_BYTES, &text, &lines_cut, &unused) == MT_OK &&
                    text.length &&
                    !memchr(text.data, '\0', mt_min_u64(text.length, MT_FEED_START_BYTES)) &&
                    mt_oom_find(text.data, text.length, &message) && !message.wording->is_echo;

    mt_oom_message_release(&message);
    mt_buf_release(&text);
    return is_found;
}
