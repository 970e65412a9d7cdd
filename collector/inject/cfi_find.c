/* Finds the module of an address (in the loader's list), then its entry (by binary search in
 * .eh_frame_hdr), then the instructions of the entry. */
#define _GNU_SOURCE 1
#include "cfi.h"

#include <elf.h>
#include <link.h>
#include <string.h>

/* Encodings of pointers: the low bits are the format, the other bits the base of the address. */
enum { FORMAT = 0x0F, TO_FIELD = 0x10, TO_TABLE_4_BYTES = 0x3B };

struct query {
    uintptr_t pc;
    struct mt_cfi_rule rule;
};

static const struct mt_cfi_rule nowhere = {0, 0, 0, MT_CFI_NOWHERE, MT_CFI_LOST};
static const struct mt_cfi_rule last = {0, 0, 0, MT_CFI_LAST, MT_CFI_LOST};
static const struct mt_cfi_rule guess = {16, -2, -1, MT_CFI_GUESS, MT_CFI_AT_CFA};

/* Sets a cursor to the bytes from `address` to the end of the readable segment that contains it. */
static bool bytes_at(const struct dl_phdr_info *info, uintptr_t address, struct mt_cursor *bytes)
{
    for (ElfW(Half) i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_R) || address < begin ||
            address - begin >= part->p_filesz)
            continue;
        *bytes = (struct mt_cursor){(const uint8_t *)address,
                                    (const uint8_t *)begin + part->p_filesz, false};
        return true;
    }
    return false;
}

static bool has_code(const struct dl_phdr_info *info, uintptr_t pc)
{
    for (ElfW(Half) i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_flags & PF_X &&
            pc - (info->dlpi_addr + part->p_vaddr) < part->p_memsz)
            return true;
    }
    return false;
}

static uint64_t read_value(struct mt_cursor *in, uint8_t encoding)
{
    static const uint8_t sizes[FORMAT + 1] = {8, 0, 2, 4, 8, 0, 0, 0, 8, 0, 2, 4, 8, 0, 0, 0};
    unsigned format = encoding & FORMAT, unused_bits = 64 - 8u * sizes[format];
    const uint8_t *at;
    uint64_t value = 0;

    if (format == 1)
        return mt_cursor_varint(in);
    at = sizes[format] ? mt_cursor_take(in, sizes[format]) : NULL;
    if (!at) {
        in->bad = true;
        return 0;
    }
    memcpy(&value, at, sizes[format]);
    return format & 8 ? (uint64_t)((int64_t)(value << unused_bits) >> unused_bits) : value;
}

static uint64_t read_address(struct mt_cursor *in, uint8_t encoding)
{
    uint64_t field = (uintptr_t)in->at, value = read_value(in, encoding);
    unsigned relation = encoding & ~(unsigned)FORMAT;

    if (relation == TO_FIELD)
        return value + field;
    in->bad |= relation != 0;
    return value;
}

struct common_part {
    uint8_t encoding; /* of addresses in entries */
    bool has_data;    /* entries have augmentation data */
    bool is_signal;   /* the caller was interrupted */
};

static bool read_augmentation(const char *letters, struct mt_cursor *in, struct common_part *common)
{
    uint64_t length;
    const uint8_t *bytes;
    struct mt_cursor data;

    if (!*letters)
        return true;
    if (*letters != 'z')
        return false;
    common->has_data = true;
    length = mt_cursor_varint(in);
    bytes = mt_cursor_take(in, length);
    if (!bytes)
        return false;
    data = (struct mt_cursor){bytes, bytes + length, false};
    for (letters++; *letters; letters++) {
        const uint8_t *encoding;
        if (*letters == 'S')
            common->is_signal = true;
        if (!strchr("RPL", *letters))
            continue;
        encoding = mt_cursor_take(&data, 1);
        if (encoding && *letters == 'R')
            common->encoding = *encoding;
        if (encoding && *letters == 'P')
            read_value(&data, *encoding);
    }
    return !data.bad;
}

/* `in` begins at the common part (CIE). */
static bool read_common(struct mt_cursor in, struct mt_cfi_program *program,
                        struct common_part *common)
{
    const uint8_t *head = mt_cursor_take(&in, 9); /* length, 0, version */
    const char *letters = (const char *)in.at;
    const uint8_t *end;

    if (!head || mt_get_u32(head) > mt_cursor_left(&in) + 5 || mt_get_u32(head + 4) != 0)
        return false;
    in.end = head + 4 + mt_get_u32(head);
    end = in.end > in.at ? memchr(in.at, 0, mt_cursor_left(&in)) : NULL;
    if (!end || (head[8] != 1 && head[8] != 3))
        return false;
    in.at = end + 1;
    program->code_align = mt_cursor_varint(&in);
    program->data_align = mt_cfi_signed(&in);
    mt_cursor_varint(&in); /* column of the return address: one byte in both encodings */
    if (!read_augmentation(letters, &in, common))
        return false;
    program->initial = in;
    return !in.bad;
}

/* `in` begins at an entry (FDE). */
static struct mt_cfi_rule read_entry(const struct dl_phdr_info *info, struct mt_cursor in,
                                     uintptr_t pc)
{
    struct mt_cfi_program program = {.registers = MT_CFI_OWN, .code_align = 1};
    struct common_part common = {0, false, false};
    const uint8_t *head = mt_cursor_take(&in, 8);
    struct mt_cursor common_bytes;
    uint64_t size;

    if (!head || mt_get_u32(head) < 4 || mt_get_u32(head) > mt_cursor_left(&in) + 4 ||
        !bytes_at(info, (uintptr_t)head + 4 - mt_get_u32(head + 4), &common_bytes) ||
        !read_common(common_bytes, &program, &common))
        return nowhere;
    in.end = head + 4 + mt_get_u32(head);
    program.begin = read_address(&in, common.encoding);
    size = read_value(&in, common.encoding);
    if (common.has_data)
        mt_cursor_take(&in, mt_cursor_varint(&in));
    if (in.bad)
        return nowhere;
    if (pc - program.begin >= size)
        return guess;
    if (common.is_signal)
        return last;
    program.own = in;
    return mt_cfi_execute(&program, pc);
}

/* Sorted pairs of addresses relative to the table: function, entry. */
static struct mt_cfi_rule search(const struct dl_phdr_info *info, struct mt_cursor in, uintptr_t pc)
{
    const uint8_t *table = in.at, *head = mt_cursor_take(&in, 4), *pairs;
    uint64_t low = 0, high;
    struct mt_cursor entry;

    if (!head || head[0] != 1 || head[3] != TO_TABLE_4_BYTES)
        return guess;
    read_value(&in, head[1]); /* address of .eh_frame */
    high = read_value(&in, head[2]);
    if (in.bad || high == 0 || high > mt_cursor_left(&in) / 8)
        return guess;
    pairs = in.at;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        int32_t function = (int32_t)mt_get_u32(pairs + 8 * middle);
        if ((intptr_t)(pc - (uintptr_t)table) < function)
            high = middle;
        else
            low = middle;
    }
    if (!bytes_at(info, (uintptr_t)table + (uintptr_t)(int32_t)mt_get_u32(pairs + 8 * low + 4),
                  &entry))
        return guess;
    return read_entry(info, entry, pc);
}

/* Linux on aarch64 returns from a signal handler through these two instructions, for which the
 * kernel has no call frame information: mov x8, #139 (rt_sigreturn); svc #0. `pc` is a return
 * address minus 1. */
static bool is_signal_return(const struct dl_phdr_info *info, uintptr_t pc)
{
#if defined(__aarch64__)
    struct mt_cursor code;
    const uint8_t *at = bytes_at(info, pc + 1, &code) ? mt_cursor_take(&code, 8) : NULL;

    return at && mt_get_u32(at) == 0xD2801168 && mt_get_u32(at + 4) == 0xD4000001;
#else
    (void)info, (void)pc;
    return false;
#endif
}

static int visit(struct dl_phdr_info *info, size_t size, void *context)
{
    struct query *query = context;
    struct mt_cursor table;

    (void)size;
    if (!has_code(info, query->pc))
        return 0;
    query->rule = guess;
    for (ElfW(Half) i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_GNU_EH_FRAME &&
            bytes_at(info, info->dlpi_addr + part->p_vaddr, &table))
            query->rule = search(info, table, query->pc);
    }
    if (query->rule.base == MT_CFI_GUESS && is_signal_return(info, query->pc))
        query->rule = last;
    return 1;
}

struct mt_cfi_rule mt_cfi_find(uintptr_t pc)
{
    struct query query = {pc, nowhere};

    dl_iterate_phdr(visit, &query);
    return query.rule;
}
