/* The header of a trace: facts about the run, how it is replaced in place, and two facts with a
 * format of their own (how the process ended, a simulated device).
 *
 * The header frame: facts about the run as pairs of texts, so that a new fact needs no new version.
 * Booleans are "1" or absent, numbers are decimal, and unknown facts are absent. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "codec.h"
#include "container.h"
#include "foreign_text.h"
#include "header.h"
#include "io.h"
#include "source.h"
#include "util.h"

static enum mt_status refuse(struct mt_error *error, const char *why)
{
    return mt_fail(error, MT_ERR_FORMAT, 0, "%s", why);
}

/* Returns -1 and fills *error on failure. */
static int open_file(const char *path, int flags, struct mt_error *error)
{
    int fd = mt_io_open(path, flags | O_NOFOLLOW | O_NONBLOCK, 0);
    struct stat facts;

    if (fd < 0) {
        (void)mt_io_fail(error, MT_ERR_IO, path);
        return -1;
    }
    if (!fstat(fd, &facts) && S_ISREG(facts.st_mode))
        return fd;
    (void)refuse(error, "is not a regular file");
    (void)mt_io_close(fd);
    return -1;
}

/* Length of the whole frame, 0 if there is none. */
static size_t frame_bytes(int fd)
{
    uint8_t start[MT_SKIPPABLE_HEADER_BYTES];

    if (mt_io_pread_full(fd, start, sizeof start, 0) != (ssize_t)sizeof start ||
        mt_get_u32(start) != MT_OWN_FRAME_MAGIC)
        return 0;
    uint32_t payload = mt_get_u32(start + 4);
    return payload <= MT_HEADER_MAX_BYTES ? sizeof start + payload : 0;
}

static enum mt_status read_frame(int fd, struct mt_arena *arena, struct mt_trace_header *header,
                                 struct mt_error *error)
{
    size_t bytes = frame_bytes(fd);
    const char *reason;
    struct mt_buf frame = {0};
    char *room = bytes ? mt_buf_reserve(&frame, bytes) : NULL;
    enum mt_status status = MT_OK;

    if (!bytes)
        return refuse(error, "has no header");
    if (!room)
        status = mt_fail_memory(error);
    else if (mt_io_pread_full(fd, room, bytes, 0) != (ssize_t)bytes)
        status = refuse(error, "its header is cut");
    if (status == MT_OK) {
        status = mt_header_read((const uint8_t *)room + MT_SKIPPABLE_HEADER_BYTES,
                                bytes - MT_SKIPPABLE_HEADER_BYTES, arena, header, &reason);
        if (status != MT_OK)
            mt_fail(error, status, 0, "header: %s", reason);
    }
    mt_buf_release(&frame);
    return status;
}

enum mt_status mt_trace_read_header(const char *path, struct mt_arena *arena,
                                    struct mt_trace_header *header, struct mt_error *error)
{
    int fd = open_file(path, O_RDONLY, error);

    *header = (struct mt_trace_header){.rank = -1, .world_size = -1};
    if (fd < 0)
        return MT_ERR_IO;
    enum mt_status status = read_frame(fd, arena, header, error);
    (void)mt_io_close(fd);
    return status;
}

static enum mt_status write_frame(int fd, const struct mt_trace_header *header,
                                  struct mt_error *error)
{
    size_t bytes = frame_bytes(fd);
    struct mt_buf frame = {0};
    enum mt_status status = MT_OK;

    if (!bytes)
        return refuse(error, "has no header");
    mt_header_write(header, bytes, &frame);
    if (frame.failed)
        status = mt_fail_memory(error);
    else if (frame.length != bytes)
        status = mt_fail(error, MT_ERR_USAGE, 0, "its header has no room");
    else if (lseek(fd, 0, SEEK_SET) || !mt_io_write(fd, frame.data, frame.length))
        status = mt_io_fail_output(error);
    mt_buf_release(&frame);
    return status;
}

enum mt_status mt_trace_replace_header(const char *path, const struct mt_trace_header *header,
                                       struct mt_error *error)
{
    int fd = open_file(path, O_RDWR, error);

    if (fd < 0)
        return MT_ERR_IO;
    enum mt_status status = write_frame(fd, header, error);
    if (!mt_io_close(fd) && status == MT_OK)
        status = mt_io_fail_output(error);
    return status;
}

static const char own_magic[8] = {'m', 'e', 'm', 't', 'r', 'a', 'c', 'e'};

enum { FIXED_BYTES = 16, CHECKSUM_BYTES = 4, MAX_PAIRS = 1024 };

enum fact_kind { TEXT, U64, I32, BOOL };

struct fact {
    const char *key;
    enum fact_kind kind;
    size_t offset; /* in struct mt_trace_header */
};

#define FACT(kind, name)                                                                           \
    {                                                                                              \
#name, kind, offsetof(struct mt_trace_header, name)                                        \
    }

#define DEVICE_FACTS(n)                                                                            \
    {"device." #n ".uuid", TEXT, offsetof(struct mt_trace_header, device_uuid[n])},                \
        {"device." #n ".pci", TEXT, offsetof(struct mt_trace_header, device_pci[n])},              \
    {                                                                                              \
        "device." #n ".mig", TEXT, offsetof(struct mt_trace_header, device_mig[n])                 \
    }

static const struct fact header_facts[] = {
    FACT(TEXT, framework),
    FACT(TEXT, allocator_options),
    FACT(TEXT, host),
    FACT(TEXT, command),
    FACT(U64, process_id),
    FACT(U64, recording_id),
    FACT(BOOL, tape_added),
    FACT(I32, rank),
    FACT(I32, world_size),
    FACT(TEXT, local_rank),
    FACT(TEXT, restart),
    FACT(TEXT, boot_id),
    FACT(TEXT, job),
    FACT(TEXT, mesh),
    FACT(TEXT, process_groups),
    FACT(TEXT, ended),
    FACT(U64, ended_t_ns),
    FACT(U64, cgroup_limit_bytes),
    FACT(U64, start_t_ns),
    FACT(U64, memory_limit_bytes),
    FACT(TEXT, sources),
    FACT(U64, ring_ns),
    FACT(U64, ring_began_t_ns),
    FACT(U64, ring_left_out),
    FACT(U64, ring_part),
    FACT(BOOL, starts_in_middle),
    FACT(BOOL, sizes_rounded),
    FACT(BOOL, has_stacks),
    FACT(BOOL, has_segments),
    FACT(BOOL, has_free_requested),
    FACT(BOOL, has_free_completed),
    FACT(BOOL, never_refused),
    FACT(TEXT, settings),
    FACT(TEXT, driver_calls),
    FACT(TEXT, not_recorded),
    FACT(TEXT, not_used),
    FACT(TEXT, dry_run),
    DEVICE_FACTS(0),
    DEVICE_FACTS(1),
    DEVICE_FACTS(2),
    DEVICE_FACTS(3),
    DEVICE_FACTS(4),
    DEVICE_FACTS(5),
    DEVICE_FACTS(6),
    DEVICE_FACTS(7),
    DEVICE_FACTS(8),
    DEVICE_FACTS(9),
    DEVICE_FACTS(10),
    DEVICE_FACTS(11),
    DEVICE_FACTS(12),
    DEVICE_FACTS(13),
    DEVICE_FACTS(14),
    DEVICE_FACTS(15),
};
_Static_assert(MT_IDENTITY_DEVICES == 16, "a line for each device");

/* Bounded so that the reader accepts everything that the writer writes. */
enum { MAX_TEXT_BYTES = 65536 };

static void set_u32(struct mt_buf *out, size_t offset, uint32_t value)
{
    if (!out->failed)
        mt_put_u32((uint8_t *)out->data + offset, value);
}

static void add_pair(struct mt_buf *out, const char *key, const char *value, uint32_t *pairs)
{
    size_t length = strlen(value);

    if (length > MAX_TEXT_BYTES)
        length = MAX_TEXT_BYTES;
    mt_buf_add_u32(out, (uint32_t)strlen(key));
    mt_buf_add_u32(out, (uint32_t)length);
    mt_buf_add_text(out, key);
    mt_buf_add(out, value, length);
    ++*pairs;
}

static void add_number(struct mt_buf *out, const char *key, bool negative, uint64_t value,
                       uint32_t *pairs)
{
    struct mt_buf text = {0};

    if (negative)
        mt_buf_add_char(&text, '-');
    mt_buf_add_u64(&text, value);
    if (text.data)
        add_pair(out, key, text.data, pairs);
    out->failed |= text.failed;
    mt_buf_release(&text);
}

static void add_fact(struct mt_buf *out, const struct fact *fact,
                     const struct mt_trace_header *header, uint32_t *pairs)
{
    const char *field = (const char *)header + fact->offset;
    const char *text;
    uint64_t number;
    int32_t small;
    bool flag;

    switch (fact->kind) {
    case TEXT:
        memcpy(&text, field, sizeof text);
        if (text)
            add_pair(out, fact->key, text, pairs);
        break;
    case U64:
        memcpy(&number, field, sizeof number);
        if (number)
            add_number(out, fact->key, false, number, pairs);
        break;
    case I32:
        memcpy(&small, field, sizeof small);
        if (small >= 0)
            add_number(out, fact->key, false, (uint64_t)small, pairs);
        break;
    case BOOL:
        memcpy(&flag, field, sizeof flag);
        if (flag)
            add_pair(out, fact->key, "1", pairs);
        break;
    }
}

/* Fills the frame up to `frame_bytes` if another pair fits. */
static void add_room(struct mt_buf *out, size_t start, size_t frame_bytes, uint32_t *pairs)
{
    static const char key[] = "room";
    size_t pair_bytes = 8 + sizeof key - 1, used = out->length - start + CHECKSUM_BYTES;

    if (out->failed || used + pair_bytes > frame_bytes)
        return;
    mt_buf_add_u32(out, sizeof key - 1);
    mt_buf_add_u32(out, (uint32_t)(frame_bytes - used - pair_bytes));
    mt_buf_add_text(out, key);
    char *room = mt_buf_reserve(out, frame_bytes - used - pair_bytes);
    if (!room)
        return;
    memset(room, ' ', frame_bytes - used - pair_bytes);
    out->length += frame_bytes - used - pair_bytes;
    ++*pairs;
}

void mt_header_write(const struct mt_trace_header *header, size_t frame_bytes, struct mt_buf *out)
{
    size_t start = out->length;
    uint32_t pairs = 0;

    mt_buf_add_u32(out, MT_OWN_FRAME_MAGIC);
    mt_buf_add_u32(out, 0);
    size_t payload = out->length;
    mt_buf_add(out, own_magic, sizeof own_magic);
    mt_buf_add_u32(out, MT_FORMAT_VERSION);
    mt_buf_add_u32(out, 0);
    for (size_t i = 0; i < MT_ARRAY_LEN(header_facts); i++)
        add_fact(out, &header_facts[i], header, &pairs);
    add_room(out, start, frame_bytes, &pairs);
    set_u32(out, payload + 12, pairs);
    if (!out->failed)
        mt_buf_add_u32(out, mt_crc32(out->data + payload, out->length - payload));
    set_u32(out, start + 4, (uint32_t)(out->length - payload));
}

bool mt_payload_is_header(const uint8_t *payload, size_t length)
{
    return length >= sizeof own_magic && !memcmp(payload, own_magic, sizeof own_magic);
}

bool mt_trace_probe(const void *bytes, size_t length)
{
    const uint8_t *at = bytes;

    if (length >= 4 && mt_get_u32(at) == MT_OWN_FRAME_MAGIC)
        return true;
    /* the first bytes are damaged, but the rest identifies the frame */
    return length >= MT_SKIPPABLE_HEADER_BYTES + sizeof own_magic &&
           mt_payload_is_header(at + MT_SKIPPABLE_HEADER_BYTES, length - MT_SKIPPABLE_HEADER_BYTES);
}

static enum mt_status set_fact(const struct fact *fact, const char *value, size_t length,
                               struct mt_arena *arena, struct mt_trace_header *header)
{
    char *field = (char *)header + fact->offset;
    uint64_t number;

    if (fact->kind == TEXT) {
        const char *text = mt_arena_text(arena, value, length);
        if (!text)
            return MT_ERR_MEMORY;
        memcpy(field, &text, sizeof text);
        return MT_OK;
    }
    if (!mt_decimal_read(value, length, &number) || (fact->kind == I32 && number > INT32_MAX))
        return MT_ERR_FORMAT;
    int32_t small = (int32_t)number;
    bool flag = number != 0;
    if (fact->kind == U64)
        memcpy(field, &number, sizeof number);
    else if (fact->kind == I32)
        memcpy(field, &small, sizeof small);
    else
        memcpy(field, &flag, sizeof flag);
    return MT_OK;
}

static enum mt_status read_pair(struct mt_cursor *in, struct mt_arena *arena,
                                struct mt_trace_header *header)
{
    const uint8_t *lengths = mt_cursor_take(in, 8);
    uint32_t key_length = lengths ? mt_get_u32(lengths) : 0;
    uint32_t value_length = lengths ? mt_get_u32(lengths + 4) : 0;
    const char *key = (const char *)mt_cursor_take(in, key_length);
    const char *value = (const char *)mt_cursor_take(in, value_length);

    if (in->bad)
        return MT_ERR_FORMAT;
    for (size_t i = 0; i < MT_ARRAY_LEN(header_facts); i++)
        if (strlen(header_facts[i].key) == key_length &&
            !memcmp(header_facts[i].key, key, key_length))
            return set_fact(&header_facts[i], value, value_length, arena, header);
    return MT_OK; /* a fact of a later writer */
}

enum mt_status mt_header_read(const uint8_t *payload, size_t length, struct mt_arena *arena,
                              struct mt_trace_header *header, const char **reason)
{
    struct mt_cursor in = {payload, payload + length, false};
    uint32_t i;

    *reason = "malformed";
    if (length < FIXED_BYTES + CHECKSUM_BYTES || !mt_payload_is_header(payload, length))
        return MT_ERR_FORMAT;
    in.end -= CHECKSUM_BYTES;
    if (mt_crc32(payload, length - CHECKSUM_BYTES) != mt_get_u32(in.end)) {
        *reason = "checksum mismatch";
        return MT_ERR_FORMAT;
    }
    header->format_version = mt_get_u32(payload + 8);
    if (header->format_version != MT_FORMAT_VERSION) {
        *reason = "written by a later version of the format";
        return MT_ERR_UNSUPPORTED;
    }
    uint32_t pairs = mt_get_u32(payload + 12);
    mt_cursor_take(&in, FIXED_BYTES);
    for (i = 0; i < pairs && i < MAX_PAIRS; i++) {
        enum mt_status status = read_pair(&in, arena, header);
        if (status != MT_OK)
            return status;
    }
    return i < pairs || mt_cursor_left(&in) ? MT_ERR_FORMAT : MT_OK;
}

static bool is_from(const struct mt_trace_header *header, const char *importer)
{
    return header->sources && strcmp(header->sources, importer) == 0;
}

bool mt_header_is_snapshot(const struct mt_trace_header *header)
{
    return is_from(header, MT_SOURCES_SNAPSHOT);
}

/* An importer is the only source of its traces; a recording lists its collectors:
 * "cupti,pytorch-tracker". */
bool mt_header_is_imported(const struct mt_trace_header *header)
{
    static const char *const importers[] = {
        MT_SOURCES_SNAPSHOT, MT_SOURCES_PROFILE, MT_SOURCES_XPLANE, MT_SOURCES_KINETO,
        MT_SOURCES_JAX,      MT_SOURCES_NSYS,    MT_SOURCES_ROWS,   MT_SOURCES_RMM,
        MT_SOURCES_ASCEND,   MT_SOURCES_TIMELINE};

    for (size_t i = 0; i < MT_ARRAY_LEN(importers); i++)
        if (is_from(header, importers[i]))
            return true;
    return false;
}

const char *mt_header_why_only_recorded(const struct mt_trace_header *header)
{
    if (is_from(header, MT_SOURCES_KINETO))
        return "a trace of torch.profiler has no segments, streams or requested sizes";
    if (is_from(header, MT_SOURCES_TIMELINE))
        return "a memory timeline has no addresses, segments, streams or requested sizes";
    if (is_from(header, MT_SOURCES_JAX))
        return "a memory profile of JAX is the state of one instant and has no requests";
    return NULL;
}

const char *mt_header_why_no_rules(const struct mt_trace_header *header)
{
    const bool is_rows = is_from(header, MT_SOURCES_ROWS) || is_from(header, MT_SOURCES_RMM) ||
                         is_from(header, MT_SOURCES_ASCEND);

    return is_rows ? "the file does not name the rules of its allocator" : NULL;
}

bool mt_trace_is_imported(const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    struct mt_trace_header header = {.sources = NULL};
    struct mt_arena arena = {0};
    const char *reason;

    if (length < MT_SKIPPABLE_HEADER_BYTES || mt_get_u32(at) != MT_OWN_FRAME_MAGIC)
        return false;
    uint32_t payload = mt_get_u32(at + 4);
    if (payload > length - MT_SKIPPABLE_HEADER_BYTES)
        return false;
    bool imported = mt_header_read(at + MT_SKIPPABLE_HEADER_BYTES, payload, &arena, &header,
                                   &reason) == MT_OK &&
                    mt_header_is_imported(&header);
    mt_arena_release(&arena);
    return imported;
}

void mt_dry_run_write(const struct mt_dry_run *dry_run, struct mt_buf *out)
{
    mt_buf_printf(out, "version=1;card=%s;devices=", dry_run->card);
    mt_buf_add_u64(out, dry_run->devices);
    mt_buf_add_text(out, ";memory_bytes=");
    mt_buf_add_u64(out, dry_run->memory_bytes);
}

/* Reads digits only; returns 0 for anything else. */
static uint64_t number_of(const char *text, size_t length)
{
    uint64_t number;

    return mt_decimal_read(text, length, &number) ? number : 0;
}

/* "key=value" */
static void read_dry_run_pair(const char *pair, size_t length, struct mt_dry_run *dry_run)
{
    const char *equals = memchr(pair, '=', length);
    size_t key = equals ? (size_t)(equals - pair) : 0, rest = equals ? length - key - 1 : 0;

    if (key == strlen("card") && !memcmp(pair, "card", key) && rest < sizeof dry_run->card) {
        memcpy(dry_run->card, equals + 1, rest);
        dry_run->card[rest] = '\0';
    } else if (key == strlen("devices") && !memcmp(pair, "devices", key)) {
        dry_run->devices = number_of(equals + 1, rest);
    } else if (key == strlen("memory_bytes") && !memcmp(pair, "memory_bytes", key)) {
        dry_run->memory_bytes = number_of(equals + 1, rest);
    }
}

bool mt_dry_run_read(const char *fact, struct mt_dry_run *dry_run)
{
    *dry_run = (struct mt_dry_run){.card = ""};
    if (!fact)
        return false;
    for (const char *at = fact; *at; at += *at == ';') {
        size_t length = strcspn(at, ";");

        read_dry_run_pair(at, length, dry_run);
        at += length;
    }
    return true;
}

void mt_header_add_simulated_card(struct mt_buf *out, const struct mt_dry_run *dry_run)
{
    mt_buf_add_text(out, "simulated ");
    if (*dry_run->card)
        mt_buf_add_printable_text(out, dry_run->card);
    else
        mt_buf_add_text(out, "device");
}

static const char exit_start[] = "exit:", signal_start[] = "signal:";

enum { MAX_EXIT_STATUS = 255, MAX_SIGNAL = 127 };

const char *mt_ending_text(enum mt_ending ending, int32_t number, char text[MT_ENDING_TEXT])
{
    if (ending == MT_ENDED_EXIT && number >= 0 && number <= MAX_EXIT_STATUS)
        snprintf(text, MT_ENDING_TEXT, "%s%d", exit_start, number);
    else if (ending == MT_ENDED_SIGNAL && number > 0 && number <= MAX_SIGNAL)
        snprintf(text, MT_ENDING_TEXT, "%s%d", signal_start, number);
    else
        snprintf(text, MT_ENDING_TEXT, "%s",
                 ending == MT_ENDED_TIMEOUT      ? "timeout"
                 : ending == MT_ENDED_OOM_KILLED ? "oom-killed"
                                                 : "unknown");
    return text;
}

static bool read_number(const char *text, const char *start, uint64_t least, uint64_t most,
                        int32_t *number)
{
    size_t length = strlen(start);
    uint64_t value;

    if (strncmp(text, start, length) ||
        !mt_decimal_read(text + length, strlen(text + length), &value) || value < least ||
        value > most)
        return false;
    *number = (int32_t)value;
    return true;
}

bool mt_ending_read(const char *text, enum mt_ending *ending, int32_t *number)
{
    *ending = MT_ENDED_UNKNOWN;
    *number = 0;
    if (!text)
        return false;
    if (read_number(text, exit_start, 0, MAX_EXIT_STATUS, number))
        *ending = MT_ENDED_EXIT;
    else if (read_number(text, signal_start, 1, MAX_SIGNAL, number))
        *ending = MT_ENDED_SIGNAL;
    else if (!strcmp(text, "timeout"))
        *ending = MT_ENDED_TIMEOUT;
    else if (!strcmp(text, "oom-killed"))
        *ending = MT_ENDED_OOM_KILLED;
    return *ending != MT_ENDED_UNKNOWN || !strcmp(text, "unknown");
}

const char *mt_ending_doubt(enum mt_ending kind, int32_t number)
{
    switch (kind) {
    case MT_ENDED_TIMEOUT: return "a timeout ended the run";
    case MT_ENDED_SIGNAL:
    case MT_ENDED_OOM_KILLED: return "a signal ended the command";
    case MT_ENDED_EXIT: return number ? "the command failed" : NULL;
    case MT_ENDED_UNKNOWN: break;
    }
    return NULL;
}
