/* The instructions of an entry build a table with a row for each range of code. They are executed
 * up to the row that contains the address. Only the stack pointer, the frame pointer and the return
 * address are followed. */
#include "cfi.h"

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

int64_t mt_cfi_signed(struct mt_cursor *in)
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
    *offset = mt_cfi_signed(&block);
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
        set_register(m, number, AT_CFA, factored(m, (uint64_t)mt_cfi_signed(in)));
        break;
    case 0x12: /* def_cfa_sf */
        set_base(m, mt_cursor_varint(in));
        m->row.cfa_offset = factored(m, (uint64_t)mt_cfi_signed(in));
        break;
    case 0x13: m->row.cfa_offset = factored(m, (uint64_t)mt_cfi_signed(in)); break;
    case 0x14: /* val_offset, val_offset_sf */
    case 0x15:
        set_register(m, mt_cursor_varint(in), ELSEWHERE, 0);
        mt_cfi_signed(in);
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
