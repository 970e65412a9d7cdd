/* The parts of the file: a read-only segment with the ELF header and tables; code; a writable
 * segment with the dynamic section, a slot for each jump, and one counter; names and headers of the
 * sections, which debuggers need and the loader does not. Addresses equal file offsets. */
#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "buf.h"
#include "elf_writer.h"
#include "status.h"

enum { STUB_BYTES = 32 };

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

/* Writes the machine code of a function. `distance`: bytes from the start of the code to the
 * counter, or to the slot with the address to jump to. */
static void stub_encode(const struct mt_stub *stub, int32_t distance,
                        unsigned char code[STUB_BYTES])
{
    memset(code, BREAKPOINT, STUB_BYTES);
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

/* Adds the bytes of the library to `out`, which must be empty. O(stubs). MT_ERR_USAGE: an invalid
 * recipe (a jump without target, more than MT_MAX_STUBS); MT_ERR_MEMORY. */
enum { MT_MAX_STUBS = 1 << 20 };

enum {
    SEGMENT_BYTES = 4096,
    SEGMENTS = 5,
    SLOT_BYTES = 8,
    FIRST_VERSION = 2,
    MAX_VERSIONS = 64,
    VERSION_HIDDEN = 0x8000
};

enum section {
    NONE,
    DYNSYM,
    DYNSTR,
    HASH,
    VERSYM,
    VERDEF,
    VERNEED,
    RELA,
    TEXT,
    DYNAMIC,
    SLOTS,
    NAMES,
    SECTIONS
};

struct span {
    uint64_t offset, length;
};

struct writing {
    const struct mt_elf_recipe *recipe;
    struct mt_buf part[SECTIONS]; /* contents of the parts, before they have an offset */
    struct span span[SECTIONS];
    struct mt_buf headers; /* of sections */
    const char *versions[MAX_VERSIONS];
    size_t version_count, jump_count, symbol_count;
    uint32_t dynstr_soname, dynstr_search;
};

static uint32_t add_text(struct mt_buf *names, const char *text)
{
    uint32_t at = (uint32_t)names->length;

    mt_buf_add(names, text, strlen(text) + 1);
    return at;
}

static uint32_t elf_hash(const char *name)
{
    uint32_t hash = 0;

    for (; *name; name++) {
        hash = (hash << 4) + (unsigned char)*name;
        uint32_t high = hash & UINT32_C(0xf0000000);
        hash = (hash ^ high >> 24) & ~high;
    }
    return hash;
}

static unsigned version_index(const struct writing *writing, const char *version)
{
    for (size_t i = 0; version && i < writing->version_count; i++)
        if (strcmp(writing->versions[i], version) == 0)
            return FIRST_VERSION + (unsigned)i;
    return VER_NDX_GLOBAL;
}

static enum mt_status collect_versions(struct writing *writing, struct mt_error *error)
{
    const struct mt_elf_recipe *recipe = writing->recipe;

    for (size_t i = 0; i < recipe->stub_count; i++) {
        const char *version = recipe->stubs[i].version;
        writing->jump_count += recipe->stubs[i].kind == MT_STUB_JUMP;
        if (!version || version_index(writing, version) != VER_NDX_GLOBAL)
            continue;
        if (writing->version_count == MAX_VERSIONS)
            return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                           "a library has more than %d versions", MAX_VERSIONS);
        writing->versions[writing->version_count++] = version;
    }
    if (recipe->stub_count > MT_MAX_STUBS || (writing->jump_count && !recipe->target))
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "a library that cannot be written");
    return MT_OK;
}

static void add_definition(struct writing *writing, const char *name, unsigned index, bool is_last)
{
    Elf64_Verdef definition = {.vd_version = VER_DEF_CURRENT,
                               .vd_flags = index == VER_NDX_GLOBAL ? VER_FLG_BASE : 0,
                               .vd_ndx = (Elf64_Half)index,
                               .vd_cnt = 1,
                               .vd_hash = elf_hash(name),
                               .vd_aux = sizeof definition};
    Elf64_Verdaux aux = {.vda_name = add_text(&writing->part[DYNSTR], name)};

    definition.vd_next = is_last ? 0 : sizeof definition + sizeof aux;
    mt_buf_add(&writing->part[VERDEF], &definition, sizeof definition);
    mt_buf_add(&writing->part[VERDEF], &aux, sizeof aux);
}

static unsigned target_index(const struct writing *writing)
{
    return FIRST_VERSION + (unsigned)writing->version_count;
}

/* The loader must bind to the target's function of this version. The first function of this name
 * that it finds is the stub itself. If the stub has no version, it would match unless the version
 * is hidden. Linkers need the plain number of the version. So there are two entries, and the loader
 * uses the last one. */
static void add_target_version(struct writing *writing)
{
    const struct mt_elf_recipe *recipe = writing->recipe;
    unsigned index = target_index(writing);
    Elf64_Verneed need = {.vn_version = VER_NEED_CURRENT,
                          .vn_cnt = 2,
                          .vn_file = add_text(&writing->part[DYNSTR], recipe->target),
                          .vn_aux = sizeof need};
    Elf64_Vernaux aux = {.vna_hash = elf_hash(recipe->target_version),
                         .vna_other = (Elf64_Half)index,
                         .vna_name = add_text(&writing->part[DYNSTR], recipe->target_version),
                         .vna_next = sizeof aux};

    mt_buf_add(&writing->part[VERNEED], &need, sizeof need);
    mt_buf_add(&writing->part[VERNEED], &aux, sizeof aux);
    aux.vna_other = (Elf64_Half)(index | VERSION_HIDDEN);
    aux.vna_next = 0;
    mt_buf_add(&writing->part[VERNEED], &aux, sizeof aux);
}

static void add_versions(struct writing *writing)
{
    add_definition(writing, writing->recipe->soname, VER_NDX_GLOBAL, !writing->version_count);
    for (size_t i = 0; i < writing->version_count; i++)
        add_definition(writing, writing->versions[i], FIRST_VERSION + (unsigned)i,
                       i + 1 == writing->version_count);
    if (writing->recipe->target && writing->recipe->target_version)
        add_target_version(writing);
}

static void add_symbol(struct writing *writing, const Elf64_Sym *symbol, unsigned version)
{
    Elf64_Half index = (Elf64_Half)version;

    mt_buf_add(&writing->part[DYNSYM], symbol, sizeof *symbol);
    mt_buf_add(&writing->part[VERSYM], &index, sizeof index);
    writing->symbol_count++;
}

/* The functions of the target come first. The values of the file's own functions are offsets in the
 * code. */
static void add_symbols(struct writing *writing)
{
    const struct mt_elf_recipe *recipe = writing->recipe;
    unsigned target = recipe->target_version ? target_index(writing) : VER_NDX_GLOBAL;
    Elf64_Sym symbol = {0};

    mt_buf_add_char(&writing->part[DYNSTR], '\0');
    add_symbol(writing, &symbol, VER_NDX_LOCAL);
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    uint32_t first_name = (uint32_t)writing->part[DYNSTR].length, name = first_name;
    for (size_t i = 0; i < recipe->stub_count; i++) {
        symbol.st_name = add_text(&writing->part[DYNSTR], recipe->stubs[i].name);
        if (recipe->stubs[i].kind == MT_STUB_JUMP)
            add_symbol(writing, &symbol, target);
    }
    symbol.st_shndx = TEXT;
    symbol.st_size = STUB_BYTES;
    for (size_t i = 0; i < recipe->stub_count; i++) {
        symbol.st_name = name;
        symbol.st_value = i * STUB_BYTES;
        add_symbol(writing, &symbol, version_index(writing, recipe->stubs[i].version));
        name += (uint32_t)strlen(recipe->stubs[i].name) + 1;
    }
}

/* A chain for each bucket. There are as many buckets as functions. */
static void add_hash(struct writing *writing)
{
    uint32_t bucket_count = (uint32_t)writing->recipe->stub_count + 1;
    uint32_t chain_count = (uint32_t)writing->symbol_count;
    size_t length = (2 + (size_t)bucket_count + chain_count) * sizeof(uint32_t);
    char *room = mt_buf_reserve(&writing->part[HASH], length);

    if (!room || writing->part[DYNSYM].failed || writing->part[DYNSTR].failed)
        return;
    memset(room, 0, length);
    uint32_t *words = (uint32_t *)(void *)room, *buckets = words + 2;
    const Elf64_Sym *symbols = (const void *)writing->part[DYNSYM].data;
    words[0] = bucket_count;
    words[1] = chain_count;
    for (uint32_t i = 1; i < chain_count; i++) {
        const char *name = writing->part[DYNSTR].data + symbols[i].st_name;
        uint32_t *bucket = &buckets[elf_hash(name) % bucket_count];
        buckets[bucket_count + i] = *bucket;
        *bucket = i;
    }
    writing->part[HASH].length += length;
}

static void place(struct writing *writing, enum section section, uint64_t *end, uint64_t alignment)
{
    uint64_t length = writing->part[section].length;

    *end = (*end + alignment - 1) / alignment * alignment;
    writing->span[section] = (struct span){*end, length};
    *end += length;
}

/* Assigns offsets to all parts. Parts whose contents depend on offsets already have their final
 * length. */
static uint64_t place_all(struct writing *writing)
{
    uint64_t end = sizeof(Elf64_Ehdr) + SEGMENTS * sizeof(Elf64_Phdr);

    for (enum section section = DYNSYM; section <= RELA; section++)
        place(writing, section, &end, 8);
    place(writing, TEXT, &end, SEGMENT_BYTES);
    place(writing, DYNAMIC, &end, SEGMENT_BYTES);
    place(writing, SLOTS, &end, 8);
    place(writing, NAMES, &end, 1);
    return (end + 7) / 8 * 8;
}

static void fill(struct mt_buf *buf, size_t length)
{
    char *room = mt_buf_reserve(buf, length);

    if (room) {
        memset(room, 0, length);
        buf->length += length;
    }
}

static uint64_t slot_address(const struct writing *writing, size_t slot)
{
    return writing->span[SLOTS].offset + slot * SLOT_BYTES;
}

/* Slot 0 is the counter. */
static void make_code(struct writing *writing)
{
    const struct mt_elf_recipe *recipe = writing->recipe;
    size_t slot = 0;

    mt_buf_reset(&writing->part[TEXT]);
    mt_buf_reset(&writing->part[RELA]);
    for (size_t i = 0; i < recipe->stub_count; i++) {
        const struct mt_stub *stub = &recipe->stubs[i];
        uint64_t at = writing->span[TEXT].offset + i * STUB_BYTES;
        unsigned char code[STUB_BYTES];
        bool jumps = stub->kind == MT_STUB_JUMP;
        slot += jumps;
        uint64_t uses = slot_address(writing, jumps ? slot : 0);
        stub_encode(stub, (int32_t)(uses - at), code);
        mt_buf_add(&writing->part[TEXT], code, sizeof code);
        Elf64_Rela rela = {.r_offset = uses, .r_info = ELF64_R_INFO(slot, R_X86_64_GLOB_DAT)};
        if (jumps)
            mt_buf_add(&writing->part[RELA], &rela, sizeof rela);
    }
}

static void move_symbols(struct writing *writing)
{
    Elf64_Sym *symbols = (void *)writing->part[DYNSYM].data;

    for (size_t i = 1; symbols && i < writing->symbol_count; i++)
        if (symbols[i].st_shndx == TEXT)
            symbols[i].st_value += writing->span[TEXT].offset;
}

static void add_entry(struct writing *writing, int64_t tag, uint64_t value)
{
    Elf64_Dyn entry = {.d_tag = tag, .d_un.d_val = value};

    mt_buf_add(&writing->part[DYNAMIC], &entry, sizeof entry);
}

static void make_dynamic(struct writing *writing, const uint32_t *needed_names)
{
    const struct mt_elf_recipe *recipe = writing->recipe;
    const struct span *span = writing->span;

    mt_buf_reset(&writing->part[DYNAMIC]);
    for (size_t i = 0; i < recipe->needed_count; i++)
        add_entry(writing, DT_NEEDED, needed_names[i]);
    add_entry(writing, DT_SONAME, writing->dynstr_soname);
    if (recipe->search)
        add_entry(writing, DT_RPATH, writing->dynstr_search);
    add_entry(writing, DT_HASH, span[HASH].offset);
    add_entry(writing, DT_STRTAB, span[DYNSTR].offset);
    add_entry(writing, DT_STRSZ, span[DYNSTR].length);
    add_entry(writing, DT_SYMTAB, span[DYNSYM].offset);
    add_entry(writing, DT_SYMENT, sizeof(Elf64_Sym));
    add_entry(writing, DT_VERSYM, span[VERSYM].offset);
    add_entry(writing, DT_VERDEF, span[VERDEF].offset);
    add_entry(writing, DT_VERDEFNUM, 1 + writing->version_count);
    if (span[VERNEED].length) {
        add_entry(writing, DT_VERNEED, span[VERNEED].offset);
        add_entry(writing, DT_VERNEEDNUM, 1);
    }
    if (span[RELA].length) {
        add_entry(writing, DT_RELA, span[RELA].offset);
        add_entry(writing, DT_RELASZ, span[RELA].length);
        add_entry(writing, DT_RELAENT, sizeof(Elf64_Rela));
    }
    add_entry(writing, DT_NULL, 0);
}

static void make_section_headers(struct writing *writing)
{
    static const struct {
        const char *name;
        uint32_t type;
        uint64_t flags, entry_bytes;
        uint32_t link, info;
    } rows[SECTIONS] = {
        [NONE] = {"", SHT_NULL, 0, 0, 0, 0},
        [DYNSYM] = {".dynsym", SHT_DYNSYM, SHF_ALLOC, sizeof(Elf64_Sym), DYNSTR, 1},
        [DYNSTR] = {".dynstr", SHT_STRTAB, SHF_ALLOC, 0, 0, 0},
        [HASH] = {".hash", SHT_HASH, SHF_ALLOC, 4, DYNSYM, 0},
        [VERSYM] = {".gnu.version", SHT_GNU_versym, SHF_ALLOC, 2, DYNSYM, 0},
        [VERDEF] = {".gnu.version_d", SHT_GNU_verdef, SHF_ALLOC, 0, DYNSTR, 0},
        [VERNEED] = {".gnu.version_r", SHT_GNU_verneed, SHF_ALLOC, 0, DYNSTR, 1},
        [RELA] = {".rela.dyn", SHT_RELA, SHF_ALLOC, sizeof(Elf64_Rela), DYNSYM, 0},
        [TEXT] = {".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, 0, 0},
        [DYNAMIC] = {".dynamic", SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, sizeof(Elf64_Dyn), DYNSTR, 0},
        [SLOTS] = {".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0, 0, 0},
        [NAMES] = {".shstrtab", SHT_STRTAB, 0, 0, 0, 0},
    };
    mt_buf_reset(&writing->part[NAMES]);
    mt_buf_reset(&writing->headers);
    for (enum section i = NONE; i < SECTIONS; i++) {
        const struct span *span = &writing->span[i];
        bool is_read_only = rows[i].flags & SHF_ALLOC;
        Elf64_Shdr header = {.sh_name = add_text(&writing->part[NAMES], rows[i].name),
                             .sh_type = rows[i].type,
                             .sh_flags = rows[i].flags,
                             .sh_addr = is_read_only ? span->offset : 0,
                             .sh_offset = span->offset,
                             .sh_size = span->length,
                             .sh_link = rows[i].link,
                             .sh_info =
                                 i == VERDEF ? 1 + (uint32_t)writing->version_count : rows[i].info,
                             .sh_addralign = i == NONE ? 0 : 8,
                             .sh_entsize = rows[i].entry_bytes};
        if (i == NAMES || i == DYNSTR)
            header.sh_addralign = 1;
        if (i == TEXT)
            header.sh_addralign = 16;
        mt_buf_add(&writing->headers, &header, sizeof header);
    }
}

static Elf64_Phdr segment(uint32_t type, uint32_t flags, uint64_t start, uint64_t end)
{
    return (Elf64_Phdr){.p_type = type,
                        .p_flags = flags,
                        .p_offset = start,
                        .p_vaddr = start,
                        .p_paddr = start,
                        .p_filesz = end - start,
                        .p_memsz = end - start,
                        .p_align = type == PT_LOAD ? SEGMENT_BYTES : 8};
}

static uint64_t end_of(const struct span *span)
{
    return span->offset + span->length;
}

static void add_headers(const struct writing *writing, uint64_t sections_at, struct mt_buf *out)
{
    const struct span *span = writing->span;
    Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                                     EV_CURRENT, ELFOSABI_NONE},
                         .e_type = ET_DYN,
                         .e_machine = EM_X86_64,
                         .e_version = EV_CURRENT,
                         .e_phoff = sizeof header,
                         .e_shoff = sections_at,
                         .e_ehsize = sizeof header,
                         .e_phentsize = sizeof(Elf64_Phdr),
                         .e_phnum = SEGMENTS,
                         .e_shentsize = sizeof(Elf64_Shdr),
                         .e_shnum = SECTIONS,
                         .e_shstrndx = NAMES};
    Elf64_Phdr segments[SEGMENTS] = {
        segment(PT_LOAD, PF_R, 0, end_of(&span[RELA])),
        segment(PT_LOAD, PF_R | PF_X, span[TEXT].offset, end_of(&span[TEXT])),
        segment(PT_LOAD, PF_R | PF_W, span[DYNAMIC].offset, end_of(&span[SLOTS])),
        segment(PT_DYNAMIC, PF_R | PF_W, span[DYNAMIC].offset, end_of(&span[DYNAMIC])),
        segment(PT_GNU_STACK, PF_R | PF_W, 0, 0),
    };
    mt_buf_add(out, &header, sizeof header);
    mt_buf_add(out, segments, sizeof segments);
}

static void add_all(const struct writing *writing, uint64_t sections_at, struct mt_buf *out)
{
    add_headers(writing, sections_at, out);
    for (enum section i = DYNSYM; i < SECTIONS && !out->failed; i++) {
        fill(out, (size_t)(writing->span[i].offset - out->length));
        mt_buf_add(out, writing->part[i].data, writing->part[i].length);
        out->failed |= writing->part[i].failed;
    }
    if (!out->failed)
        fill(out, (size_t)(sections_at - out->length));
    mt_buf_add(out, writing->headers.data, writing->headers.length);
    out->failed |= writing->headers.failed;
}

static void write_parts(struct writing *writing, uint32_t *needed_names, struct mt_buf *out)
{
    const struct mt_elf_recipe *recipe = writing->recipe;
    struct mt_buf *names = &writing->part[DYNSTR];

    add_symbols(writing);
    for (size_t i = 0; i < recipe->needed_count; i++)
        needed_names[i] = add_text(names, recipe->needed[i]);
    writing->dynstr_soname = add_text(names, recipe->soname);
    if (recipe->search)
        writing->dynstr_search = add_text(names, recipe->search);
    add_versions(writing);
    add_hash(writing);
    fill(&writing->part[TEXT], recipe->stub_count * STUB_BYTES);
    fill(&writing->part[SLOTS], (1 + writing->jump_count) * SLOT_BYTES);
    fill(&writing->part[RELA], writing->jump_count * sizeof(Elf64_Rela));
    writing->span[RELA].length = writing->part[RELA].length;
    writing->span[VERNEED].length = writing->part[VERNEED].length;
    make_dynamic(writing, needed_names);
    make_section_headers(writing);
    uint64_t sections_at = place_all(writing);
    make_code(writing);
    move_symbols(writing);
    make_dynamic(writing, needed_names);
    make_section_headers(writing);
    add_all(writing, sections_at, out);
}

enum mt_status mt_elf_write(const struct mt_elf_recipe *recipe, struct mt_buf *out,
                            struct mt_error *error)
{
    struct writing writing = {.recipe = recipe};
    struct mt_buf needed = {0};
    enum mt_status status = collect_versions(&writing, error);

    fill(&needed, recipe->needed_count * sizeof(uint32_t) + 1);
    if (!status && !needed.failed)
        write_parts(&writing, (uint32_t *)(void *)needed.data, out);
    if (!status && (needed.failed || out->failed))
        status = mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "no memory for a library");
    for (enum section i = NONE; i < SECTIONS; i++)
        mt_buf_release(&writing.part[i]);
    mt_buf_release(&writing.headers);
    mt_buf_release(&needed);
    return status;
}
