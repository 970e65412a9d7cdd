/* Mutations of pickles by opcode: bytes that a fuzzer changes blindly seldom leave
 * a pickle whose stack still holds together. Opcodes are taken out, doubled,
 * exchanged, copied to other places, and their arguments changed; lengths stay
 * right. One mutation in four is libFuzzer's own. */
#include "bytes.h"
#include "mutate_file.h"
#include "pickle_opcodes.h"

enum { MAX_OPCODES = 4096, MAX_ARGUMENT = 256 };

struct opcode {
    uint32_t at, bytes; /* with its argument */
    uint8_t width;      /* of a counted argument's length; 0 = fixed */
};

/* Bytes of the length that precedes the argument, 0 = the argument is of fixed size or a line. */
static unsigned width_of(uint8_t code)
{
    switch (code) {
    case OP_SHORT_BINSTRING:
    case OP_SHORT_BINBYTES:
    case OP_SHORT_BINUNICODE:
    case OP_LONG1: return 1;
    case OP_BINSTRING:
    case OP_BINUNICODE:
    case OP_BINBYTES:
    case OP_LONG4: return 4;
    case OP_BINUNICODE8:
    case OP_BINBYTES8:
    case OP_BYTEARRAY8: return 8;
    default: return 0;
    }
}

static unsigned fixed_bytes(uint8_t code)
{
    switch (code) {
    case OP_BININT1:
    case OP_BINGET:
    case OP_BINPUT:
    case OP_PROTO:
    case OP_EXT1: return 1;
    case OP_BININT2:
    case OP_EXT2: return 2;
    case OP_BININT:
    case OP_LONG_BINGET:
    case OP_LONG_BINPUT:
    case OP_EXT4: return 4;
    case OP_BINFLOAT:
    case OP_FRAME: return 8;
    default: return 0;
    }
}

static unsigned lines_of(uint8_t code)
{
    if (code == OP_GLOBAL || code == OP_INST)
        return 2;
    return code && strchr("FILSVPgp", code) ? 1 : 0;
}

static size_t line_bytes(const uint8_t *at, size_t left)
{
    const uint8_t *end = left ? memchr(at, '\n', left) : NULL;

    return end ? (size_t)(end - at) + 1 : left;
}

/* The opcode at `at`; what is cut ends with the input. */
static struct opcode opcode_at(const uint8_t *data, size_t size, size_t at)
{
    struct opcode opcode = {(uint32_t)at, 1, (uint8_t)width_of(data[at])};
    size_t left = size - at - 1, argument = fixed_bytes(data[at]);
    uint64_t length = 0;

    for (unsigned i = lines_of(data[at]); i > 0; i--)
        argument += line_bytes(data + at + 1 + argument, left - argument);
    if (opcode.width && opcode.width <= left) {
        for (unsigned i = opcode.width; i-- > 0;)
            length = length << 8 | data[at + 1 + i];
        argument = length < left - opcode.width ? opcode.width + (size_t)length : left;
    }
    opcode.bytes += (uint32_t)(argument < left ? argument : left);
    return opcode;
}

static size_t split(const uint8_t *data, size_t size, struct opcode *opcodes)
{
    size_t count = 0, at;

    for (at = 0; at < size && count < MAX_OPCODES; at += opcodes[count++].bytes)
        opcodes[count] = opcode_at(data, size, at);
    return count;
}

/* Opcodes without an argument, and small ones with one, that build plain data. */
static size_t any_opcode(struct mutate_dice *dice, uint8_t out[10])
{
    static const char plain[] = "(.012N)]}adelstu\x85\x86\x87\x88\x89\x8f\x90\x91\x94";
    unsigned choice = mutate_below(dice, 4);

    memset(out, 0, 10);
    if (choice == 0) {
        out[0] = mutate_below(dice, 2) ? OP_BINGET : OP_BINPUT;
        out[1] = (uint8_t)mutate_below(dice, 16);
        return 2;
    }
    if (choice == 1) {
        out[0] = OP_BININT;
        mt_put_u32(out + 1, (uint32_t)mutate_number(dice));
        return 5;
    }
    out[0] = (uint8_t)plain[mutate_below(dice, sizeof plain - 1)];
    return 1;
}

/* Another argument: numbers get telling values, texts are mutated by libFuzzer. */
static size_t change_argument(struct mutate_text *text, const struct opcode *opcode,
                              struct mutate_dice *dice)
{
    uint8_t bytes[1 + 8 + MAX_ARGUMENT];
    size_t head = 1u + opcode->width, length = opcode->bytes - head;
    uint64_t number = mutate_number(dice);

    if (opcode->bytes <= head || length > MAX_ARGUMENT / 2)
        return text->size;
    memcpy(bytes, text->data + opcode->at, opcode->bytes);
    if (opcode->width) {
        length = LLVMFuzzerMutate(bytes + head, length, MAX_ARGUMENT - (opcode->width == 1));
        for (unsigned i = 0; i < opcode->width; i++)
            bytes[1 + i] = i < 4 ? (uint8_t)(length >> (8 * i)) : 0;
    } else if (fixed_bytes(bytes[0])) {
        for (size_t i = 0; i < length; i++)
            bytes[head + i] = (uint8_t)(number >> (8 * i % 64));
        if (strchr("hjqr", bytes[0]) && mutate_below(dice, 4)) { /* the memo is small */
            memset(bytes + head, 0, length);
            bytes[head] = (uint8_t)mutate_below(dice, 64);
        }
    } else {
        length = LLVMFuzzerMutate(bytes + head, length - 1, MAX_ARGUMENT - 1);
        bytes[head + length++] = '\n';
    }
    return mutate_replace(text, opcode->at, opcode->bytes, bytes, head + length);
}

static size_t mutate_opcodes(struct mutate_text *text, const struct opcode *opcodes, size_t count,
                             struct mutate_dice *dice)
{
    const struct opcode *one = &opcodes[mutate_below(dice, (unsigned)count)];
    const struct opcode *other = &opcodes[mutate_below(dice, (unsigned)count)];
    size_t run = other->bytes, i = (size_t)(other - opcodes);
    uint8_t fresh[10];

    switch (mutate_below(dice, 8)) {
    case 0: return mutate_replace(text, one->at, one->bytes, NULL, 0);
    case 1: return mutate_copy(text, one->at, 0, other->at, other->bytes);
    case 2: return mutate_copy(text, one->at, one->bytes, other->at, other->bytes);
    case 3: /* a run of opcodes: a record, a list of them */
        for (unsigned more = mutate_below(dice, 32); more && ++i < count; more--)
            run += opcodes[i].bytes;
        return mutate_copy(text, one->at, 0, other->at, run);
    case 4:
        for (unsigned more = mutate_below(dice, 8); more && ++i < count; more--)
            run += opcodes[i].bytes;
        return mutate_replace(text, other->at, run, NULL, 0);
    case 5: return mutate_replace(text, one->at, 0, fresh, any_opcode(dice, fresh));
    default: return change_argument(text, one, dice);
    }
}

size_t mutate_pickle(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static struct opcode opcodes[MAX_OPCODES];
    struct mutate_dice dice = {seed};
    struct mutate_text text = {data, size, max_size};
    size_t count = split(data, size, opcodes);

    if (!count || mutate_below(&dice, 4) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    for (unsigned times = 1 + mutate_below(&dice, 3); times && count; times--) {
        text.size = mutate_opcodes(&text, opcodes, count, &dice);
        count = split(data, text.size, opcodes);
    }
    return text.size;
}

/* A run of opcodes of the second pickle within the first one. */
size_t mutate_cross_pickles(const struct mutate_crossing *crossing, uint8_t *out, size_t room,
                            unsigned seed)
{
    static struct opcode first[MAX_OPCODES], second[MAX_OPCODES];
    size_t count1 = split(crossing->one, crossing->one_size, first);
    size_t count2 = split(crossing->other, crossing->other_size, second), at, from, end;
    struct mutate_text text = {out, crossing->one_size, room};
    struct mutate_dice dice = {seed};

    if (!count1 || !count2 || crossing->one_size > room)
        return 0;
    memcpy(out, crossing->one, crossing->one_size);
    at = first[mutate_below(&dice, (unsigned)count1)].at;
    from = mutate_below(&dice, (unsigned)count2);
    end = from + 1 + mutate_below(&dice, 64);
    end = end < count2 ? end : count2 - 1;
    return mutate_replace(&text, at, 0, crossing->other + second[from].at,
                          second[end].at + second[end].bytes - second[from].at);
}
