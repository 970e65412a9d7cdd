/* The functions of a library that elf_writer.h writes, and their machine code. */
#ifndef MT_ELF_STUB_H
#define MT_ELF_STUB_H

#include <stdint.h>

enum mt_stub_kind {
    MT_STUB_ANSWER,  /* returns `answer` */
    MT_STUB_COUNTER, /* stores the next of 1, 2, 3, ... at the address in its first argument, and
                        returns 0 */
    MT_STUB_JUMP     /* jumps to the function of this name in the target */
};

struct mt_stub {
    const char *name;
    const char *version; /* NULL: none */
    enum mt_stub_kind kind;
    int32_t answer;
};

enum { MT_STUB_BYTES = 32 };

/* Writes the machine code of a function. `distance`: bytes from the start of the code to the
 * counter, or to the slot with the address to jump to. */
void mt_stub_encode(const struct mt_stub *stub, int32_t distance,
                    unsigned char code[MT_STUB_BYTES]);

#endif
