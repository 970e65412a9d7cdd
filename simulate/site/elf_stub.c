#include "elf_stub.h"

#include <string.h>

enum { BREAKPOINT = 0xcc };

static const unsigned char answer[] = {
    0xb8, 0, 0, 0, 0, /* mov eax, ANSWER */
    0xc3,             /* ret */
};

static const unsigned char counter[] = {
    0xb8, 1,    0,    0,    0,          /* mov eax, 1 */
    0xf0, 0x0f, 0xc1, 0x05, 0, 0, 0, 0, /* lock xadd [rip + COUNTER], eax */
    0xff, 0xc0,                         /* inc eax */
    0x48, 0x85, 0xff,                   /* test rdi, rdi */
    0x74, 0x02,                         /* jz over the next */
    0x89, 0x07,                         /* mov [rdi], eax */
    0x31, 0xc0,                         /* xor eax, eax */
    0xc3,                               /* ret */
};

static const unsigned char jump[] = {
    0xff, 0x25, 0, 0, 0, 0, /* jmp [rip + SLOT] */
};

/* The offset is relative to rip, which is the address after the number. */
enum { ANSWER_NUMBER = 1, COUNTER_NUMBER = 9, COUNTER_RIP = 13, JUMP_NUMBER = 2, JUMP_RIP = 6 };

static void put(unsigned char *code, int32_t number)
{
    memcpy(code, &number, sizeof number);
}

void mt_stub_encode(const struct mt_stub *stub, int32_t distance, unsigned char code[MT_STUB_BYTES])
{
    memset(code, BREAKPOINT, MT_STUB_BYTES);
    switch (stub->kind) {
    case MT_STUB_ANSWER:
        memcpy(code, answer, sizeof answer);
        put(code + ANSWER_NUMBER, stub->answer);
        break;
    case MT_STUB_COUNTER:
        memcpy(code, counter, sizeof counter);
        put(code + COUNTER_NUMBER, distance - COUNTER_RIP);
        break;
    case MT_STUB_JUMP:
        memcpy(code, jump, sizeof jump);
        put(code + JUMP_NUMBER, distance - JUMP_RIP);
        break;
    }
}
