/* What a walk of the stack (native_stack.c) needs of the processor: x86-64, aarch64. */
#ifndef MT_INJECT_NATIVE_MACHINE_H
#define MT_INJECT_NATIVE_MACHINE_H

#include <stdint.h>

#if defined(__aarch64__)

/* The two words that a frame pointer leads to may be anywhere in a frame. */
enum { MT_GUESS_IS_CFA = 0 };

/* A return address in memory may be signed (pointer authentication). Which bits the signature has
 * depends on the configuration of the kernel, so the processor removes it: xpaclri, which older
 * processors ignore. */
static inline uintptr_t mt_without_signature(uintptr_t pc)
{
    register uintptr_t link __asm__("x30") = pc;

    __asm__("hint #7" : "+r"(link));
    return link;
}

/* The registers at one instruction, a constant of the calling function. Its return address is in
 * its frame there, because x30 is overwritten. */
#define MT_READ_REGISTERS(pc, sp, fp)                                                              \
    __asm__ volatile("mov %2, x29\n\t"                                                             \
                     "mov %1, sp\n\t"                                                              \
                     "adr %0, ."                                                                   \
                     : "=&r"(pc), "=&r"(sp), "=&r"(fp)                                             \
                     :                                                                             \
                     : "x30")

#else

/* They are the first two words of a frame. */
enum { MT_GUESS_IS_CFA = 1 };

static inline uintptr_t mt_without_signature(uintptr_t pc)
{
    return pc;
}

#define MT_READ_REGISTERS(pc, sp, fp)                                                              \
    __asm__ volatile("leaq 0(%%rip), %0\n\t"                                                       \
                     "movq %%rsp, %1\n\t"                                                          \
                     "movq %%rbp, %2"                                                              \
                     : "=a"(pc), "=d"(sp), "=c"(fp))

#endif

#endif
