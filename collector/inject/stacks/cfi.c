/* Call frame information: finds the entry of an address, and executes its instructions. */
#define _GNU_SOURCE 1

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bytes.h"
#include "cfi.h"

/* The instructions of an entry build a table with a row for each range of code. They are executed
 * up to the row that contains the address. Only the stack pointer, the frame pointer and the return
 * address are followed. */

enum { MAX_REMEMBERED = 8, WORD = 8, MAX_CFA_OFFSET = 1 << 29 };

const struct mt_cfi_registers mt_cfi_x86_64 = {6, 7, 16, true, false};
const struct mt_cfi_registers mt_cfi_aarch64 = {29, 31, 30, false, true};

enum { OP_BREG0 = 0x70, OP_DEREF = 0x06 };

enum saved_kind { SAME, AT_CFA, AT_FP, ELSEWHERE };

struct row {
    enum mt_cfi_base base; /* NOWHERE: another register or an expression */
    int64_t cfa_offset, fp_offset, return_offset;
    /* return_address is SAME if there is no caller, or if it is still in its register */
    enum saved_kind fp, return_address;
};

struct machine {
    struct mt_cursor in;
    const struct mt_cfi_program *program;
    uint64_t location, pc;
    struct row row, initial, remembered[MAX_REMEMBERED];
    unsigned remembered_count;
    bool passed; /* the row of pc is complete */
};

/* Reads a signed LEB128 number. If it is truncated or too long, returns 0 and marks the cursor as
 * bad. */
static int64_t cfi_signed(struct mt_cursor *in)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;

    do {
        if (in->at == in->end || shift > 63) {
            in->bad = true;
            return 0;
        }
        byte = *in->at++;
        value |= (uint64_t)(byte & 0x7F) << shift;
        shift += 7;
    } while (byte & 0x80);
    if (shift < 64 && byte & 0x40)
        value |= ~UINT64_C(0) << shift;
    return (int64_t)value;
}

/* Factored offsets. Only invalid data can overflow; the ranges of the rule then reject the
 * result. */
static int64_t factored(const struct machine *m, uint64_t value)
{
    return (int64_t)(value * (uint64_t)m->program->data_align);
}

static void advance(struct machine *m, uint64_t delta)
{
    uint64_t next = m->location + delta * m->program->code_align;

    if (next > m->pc || next < m->location)
        m->passed = true;
    else
        m->location = next;
}

static void advance_by_bytes(struct machine *m, unsigned bytes)
{
    const uint8_t *at = mt_cursor_take(&m->in, bytes);

    if (at)
        advance(m, bytes == 1 ? at[0] : bytes == 2 ? mt_get_u16(at) : mt_get_u32(at));
}

static void set_register(struct machine *m, uint64_t number, enum saved_kind kind, int64_t offset)
{
    if (number == m->program->registers->frame_pointer) {
        m->row.fp = kind;
        m->row.fp_offset = offset;
    } else if (number == m->program->registers->return_address) {
        m->row.return_address = kind;
        m->row.return_offset = offset;
    }
}

static void restore_register(struct machine *m, uint64_t number)
{
    if (number == m->program->registers->frame_pointer)
        set_register(m, number, m->initial.fp, m->initial.fp_offset);
    else if (number == m->program->registers->return_address)
        set_register(m, number, m->initial.return_address, m->initial.return_offset);
}

static void set_base(struct machine *m, uint64_t number)
{
    const struct mt_cfi_registers *registers = m->program->registers;

    m->row.base = number == registers->stack_pointer   ? MT_CFI_SP
                  : number == registers->frame_pointer ? MT_CFI_FP
                                                       : MT_CFI_NOWHERE;
}

/* "breg N" of the frame pointer, optionally with "deref": the only expression that compilers use,
 * in functions that align their frame. */
static bool is_fp_expression(const struct machine *m, struct mt_cursor block, bool deref,
                             int64_t *offset)
{
    const uint8_t *operation = mt_cursor_take(&block, 1);

    if (!operation || *operation != OP_BREG0 + m->program->registers->frame_pointer)
        return false;
    *offset = cfi_signed(&block);
    if (deref) {
        operation = mt_cursor_take(&block, 1);
        if (!operation || *operation != OP_DEREF)
            return false;
    }
    return !block.bad && !mt_cursor_left(&block);
}

static struct mt_cursor take_block(struct machine *m)
{
    uint64_t length = mt_cursor_varint(&m->in);
    const uint8_t *bytes = mt_cursor_take(&m->in, length);

    return (struct mt_cursor){bytes, bytes ? bytes + length : NULL, bytes == NULL};
}

static void set_cfa_expression(struct machine *m)
{
    struct mt_cursor block = take_block(m);

    m->row.base =
        is_fp_expression(m, block, true, &m->row.cfa_offset) ? MT_CFI_FP_CELL : MT_CFI_NOWHERE;
}

static void set_register_expression(struct machine *m, bool is_place)
{
    uint64_t number = mt_cursor_varint(&m->in);
    struct mt_cursor block = take_block(m);
    int64_t offset;

    if (is_place && is_fp_expression(m, block, false, &offset) && offset == 0)
        set_register(m, number, AT_FP, 0);
    else
        set_register(m, number, ELSEWHERE, 0);
}

static void remember(struct machine *m)
{
    if (m->remembered_count == MAX_REMEMBERED)
        m->in.bad = true;
    else
        m->remembered[m->remembered_count++] = m->row;
}

static void recall(struct machine *m)
{
    if (m->remembered_count == 0)
        m->in.bad = true;
    else
        m->row = m->remembered[--m->remembered_count];
}

/* Instructions of one byte and operands; DWARF 6.4.2 and GNU extensions. */
static void execute_extended(struct machine *m, uint8_t op)
{
    struct mt_cursor *in = &m->in;
    uint64_t number;

    switch (op) {
    case 0x00: break;                         /* nop */
    case 0x02: advance_by_bytes(m, 1); break; /* advance_loc1 */
    case 0x03: advance_by_bytes(m, 2); break; /* advance_loc2 */
    case 0x04: advance_by_bytes(m, 4); break; /* advance_loc4 */
    case 0x05:                                /* offset_extended */
        number = mt_cursor_varint(in);
        set_register(m, number, AT_CFA, factored(m, mt_cursor_varint(in)));
        break;
    case 0x06: restore_register(m, mt_cursor_varint(in)); break; /* restore_extended */
    case 0x07:                                                   /* undefined */
        number = mt_cursor_varint(in);
        set_register(m, number, number == m->program->registers->return_address ? SAME : ELSEWHERE,
                     0);
        break;
    case 0x08: set_register(m, mt_cursor_varint(in), SAME, 0); break; /* same_value */
    case 0x09:                                                        /* register */
        set_register(m, mt_cursor_varint(in), ELSEWHERE, 0);
        mt_cursor_varint(in);
        break;
    case 0x0A: remember(m); break;
    case 0x0B: recall(m); break;
    case 0x0C: /* def_cfa */
        set_base(m, mt_cursor_varint(in));
        m->row.cfa_offset = (int64_t)mt_cursor_varint(in);
        break;
    case 0x0D: set_base(m, mt_cursor_varint(in)); break;                 /* def_cfa_register */
    case 0x0E: m->row.cfa_offset = (int64_t)mt_cursor_varint(in); break; /* def_cfa_offset */
    case 0x0F: set_cfa_expression(m); break;
    case 0x10: set_register_expression(m, true); break;
    case 0x11: /* offset_extended_sf */
        number = mt_cursor_varint(in);
        set_register(m, number, AT_CFA, factored(m, (uint64_t)cfi_signed(in)));
        break;
    case 0x12: /* def_cfa_sf */
        set_base(m, mt_cursor_varint(in));
        m->row.cfa_offset = factored(m, (uint64_t)cfi_signed(in));
        break;
    case 0x13: m->row.cfa_offset = factored(m, (uint64_t)cfi_signed(in)); break;
    case 0x14: /* val_offset, val_offset_sf */
    case 0x15:
        set_register(m, mt_cursor_varint(in), ELSEWHERE, 0);
        cfi_signed(in);
        break;
    case 0x16: set_register_expression(m, false); break; /* val_expression */
    case 0x2C: /* AARCH64_negate_ra_state_with_pc, AARCH64_negate_ra_state: the walk reads signed
                  and plain return addresses */
    case 0x2D: in->bad |= !m->program->registers->signs_return; break;
    case 0x2E: mt_cursor_varint(in); break; /* GNU_args_size */
    default: in->bad = true;
    }
}

static void execute(struct machine *m, struct mt_cursor instructions)
{
    m->in = instructions;
    while (!m->in.bad && !m->passed && m->in.at < m->in.end) {
        uint8_t op = *m->in.at++;
        switch (op & 0xC0) {
        case 0x40: advance(m, op & 0x3F); break;
        case 0x80: set_register(m, op & 0x3F, AT_CFA, factored(m, mt_cursor_varint(&m->in))); break;
        case 0xC0: restore_register(m, op & 0x3F); break;
        default: execute_extended(m, op);
        }
    }
}

static const struct mt_cfi_rule nowhere = {0, 0, 0, MT_CFI_NOWHERE, MT_CFI_LOST};

/* Stores an offset from the CFA in words. Returns false if a rule cannot have this offset. */
static bool in_words(int64_t offset, int16_t *words)
{
    if (offset % WORD || offset / WORD < INT16_MIN || offset / WORD > INT16_MAX)
        return false;
    *words = (int16_t)(offset / WORD);
    return true;
}

static bool has_return(const struct machine *m, int16_t *words)
{
    return m->row.return_address == AT_CFA && in_words(m->row.return_offset, words) &&
           (*words == -1 || !m->program->registers->has_fixed_return);
}

static struct mt_cfi_rule rule_of(const struct machine *m)
{
    const struct row *row = &m->row;
    struct mt_cfi_rule rule = {0, 0, 0, (uint8_t)row->base, MT_CFI_LOST};

    if (row->return_address == SAME)
        rule.base = MT_CFI_LAST;
    else if (!has_return(m, &rule.return_words) || row->cfa_offset % WORD ||
             row->cfa_offset <= -MAX_CFA_OFFSET || row->cfa_offset >= MAX_CFA_OFFSET)
        return nowhere;
    else
        rule.cfa_offset = (int32_t)row->cfa_offset;
    if (row->fp == SAME || row->fp == AT_FP)
        rule.fp = row->fp == SAME ? MT_CFI_SAME : MT_CFI_AT_FP;
    if (row->fp == AT_CFA && in_words(row->fp_offset, &rule.fp_words))
        rule.fp = MT_CFI_AT_CFA;
    return rule;
}

struct mt_cfi_rule mt_cfi_execute(const struct mt_cfi_program *program, uint64_t pc)
{
    struct machine m = {.program = program, .location = program->begin, .pc = pc};

    execute(&m, program->initial);
    m.initial = m.row;
    if (!m.in.bad)
        execute(&m, program->own);
    return m.in.bad ? nowhere : rule_of(&m);
}

/* Finds the module of an address (in the loader's list), then its entry (by binary search in
 * .eh_frame_hdr), then the instructions of the entry. */

/* Encodings of pointers: the low bits are the format, the other bits the base of the address. */
enum { FORMAT = 0x0F, TO_FIELD = 0x10, TO_TABLE_4_BYTES = 0x3B };

struct query {
    uintptr_t pc;
    struct mt_cfi_rule rule;
};

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
    uint64_t value = 0;

    if (format == 1)
        return mt_cursor_varint(in);
    const uint8_t *at = sizes[format] ? mt_cursor_take(in, sizes[format]) : NULL;
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
    if (!*letters)
        return true;
    if (*letters != 'z')
        return false;
    common->has_data = true;
    uint64_t length = mt_cursor_varint(in);
    const uint8_t *bytes = mt_cursor_take(in, length);
    if (!bytes)
        return false;
    struct mt_cursor data = {bytes, bytes + length, false};
    for (letters++; *letters; letters++) {
        if (*letters == 'S')
            common->is_signal = true;
        if (!strchr("RPL", *letters))
            continue;
        const uint8_t *encoding = mt_cursor_take(&data, 1);
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

    if (!head || mt_get_u32(head) > mt_cursor_left(&in) + 5 || mt_get_u32(head + 4) != 0)
        return false;
    in.end = head + 4 + mt_get_u32(head);
    const uint8_t *end = in.end > in.at ? memchr(in.at, 0, mt_cursor_left(&in)) : NULL;
    if (!end || (head[8] != 1 && head[8] != 3))
        return false;
    in.at = end + 1;
    program->code_align = mt_cursor_varint(&in);
    program->data_align = cfi_signed(&in);
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

    if (!head || mt_get_u32(head) < 4 || mt_get_u32(head) > mt_cursor_left(&in) + 4 ||
        !bytes_at(info, (uintptr_t)head + 4 - mt_get_u32(head + 4), &common_bytes) ||
        !read_common(common_bytes, &program, &common))
        return nowhere;
    in.end = head + 4 + mt_get_u32(head);
    program.begin = read_address(&in, common.encoding);
    uint64_t size = read_value(&in, common.encoding);
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
    const uint8_t *table = in.at, *head = mt_cursor_take(&in, 4);
    uint64_t low = 0;
    struct mt_cursor entry;

    if (!head || head[0] != 1 || head[3] != TO_TABLE_4_BYTES)
        return guess;
    read_value(&in, head[1]); /* address of .eh_frame */
    uint64_t high = read_value(&in, head[2]);
    if (in.bad || high == 0 || high > mt_cursor_left(&in) / 8)
        return guess;
    const uint8_t *pairs = in.at;
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
