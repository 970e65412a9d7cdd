/* Reads call frame information (.eh_frame) to find the caller's frame, for x86-64 and aarch64.
 * Compilers write it for nearly all code, because C++ exceptions need it. Only the rules that a
 * stack walk needs are read: those for the caller's stack pointer, frame pointer and return
 * address. */
#ifndef MT_INJECT_CFI_H
#define MT_INJECT_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "bytes.h"

enum mt_cfi_base {
    MT_CFI_NOWHERE, /* the code is in no module, or its rule is not supported: stop */
    MT_CFI_LAST,    /* the outermost frame, or one that a signal interrupted. On aarch64 also a
                       frame whose return address is still in its register. */
    MT_CFI_SP,      /* CFA = stack pointer + offset */
    MT_CFI_FP,      /* CFA = frame pointer + offset */
    MT_CFI_FP_CELL, /* CFA = the word at frame pointer + offset (aligned frames) */
    MT_CFI_GUESS    /* the module has no rule for the code: fp probably points to the caller's
                       frame pointer and return address */
};

enum mt_cfi_saved {
    MT_CFI_SAME,   /* the caller's frame pointer equals that of this frame */
    MT_CFI_AT_CFA, /* the caller's frame pointer is stored at CFA + fp_words */
    MT_CFI_AT_FP,  /* the caller's frame pointer is stored where the frame pointer points */
    MT_CFI_LOST    /* the caller's frame pointer cannot be determined */
};

/* CFA (canonical frame address) = the caller's stack pointer. The offsets of the frame pointer and
 * the return address count from it, in words of 8 bytes. */
struct mt_cfi_rule {
    int32_t cfa_offset; /* a multiple of 8 below 512 MiB */
    int16_t fp_words, return_words;
    uint8_t base, fp; /* enums above */
};

/* Numbers of registers in call frame information. */
struct mt_cfi_registers {
    uint8_t frame_pointer, stack_pointer, return_address;
    bool has_fixed_return; /* the return address is always the word below the CFA */
    bool signs_return;     /* instructions switch the signing of return addresses */
};

extern const struct mt_cfi_registers mt_cfi_x86_64, mt_cfi_aarch64;

/* Those of this process. */
#if defined(__aarch64__)
#define MT_CFI_OWN (&mt_cfi_aarch64)
#else
#define MT_CFI_OWN (&mt_cfi_x86_64)
#endif

/* Returns the rule at a code address (a return address minus 1). Takes a few microseconds, during
 * which it holds the lock of the loader's list. Never reads outside the segments of loaded modules,
 * even if their tables are damaged. */
struct mt_cfi_rule mt_cfi_find(uintptr_t pc);

struct mt_cfi_program {
    const struct mt_cfi_registers *registers;
    struct mt_cursor initial, own; /* instructions of the CIE, of the FDE */
    uint64_t begin;                /* address of the function's first instruction */
    uint64_t code_align;
    int64_t data_align;
};

struct mt_cfi_rule mt_cfi_execute(const struct mt_cfi_program *program, uint64_t pc);

#endif
