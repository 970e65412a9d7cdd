#include "elf_reader.h"

#include "io.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

enum { VERSION_HIDDEN = 0x8000, MAX_SECTION_BYTES = 1 << 30 };

struct version {
    const char *name, *library;
};

struct part {
    const unsigned char *bytes;
    size_t length;
};

struct reading {
    int fd;
    uint64_t file_bytes;
    struct mt_elf *elf;
    struct mt_error *error;
    const Elf64_Shdr *sections;
    size_t section_count;
    struct part names; /* of the dynamic symbols; a NUL follows its length */
    struct version *versions;
    size_t version_count, version_records; /* records include repeated ones */
};

static enum mt_status damaged(const struct reading *reading, uint64_t offset, const char *what)
{
    return mt_fail(reading->error, MT_ERR_FORMAT, offset, "%s", what);
}

/* Copies bytes of the file to *part, followed by a NUL. */
static enum mt_status read_part(const struct reading *reading, uint64_t offset, uint64_t length,
                                struct part *part)
{
    if (offset > reading->file_bytes || length > reading->file_bytes - offset ||
        length > MAX_SECTION_BYTES)
        return damaged(reading, offset,
                       "a table of the library extends beyond the end of the file");
    unsigned char *bytes = mt_arena_alloc(&reading->elf->arena, (size_t)length + 1);
    if (!bytes)
        return mt_fail(reading->error, MT_ERR_MEMORY, MT_NO_OFFSET,
                       "no memory for a library's tables");
    ssize_t got = mt_io_pread_full(reading->fd, bytes, (size_t)length, offset);
    if (got < 0)
        return mt_io_fail(reading->error, MT_ERR_IO, "cannot read");
    if ((uint64_t)got != length)
        return damaged(reading, offset, "the file became shorter while it was read");
    *part = (struct part){bytes, (size_t)length};
    return MT_OK;
}

static enum mt_status read_section(const struct reading *reading, const Elf64_Shdr *section,
                                   struct part *part)
{
    return read_part(reading, section->sh_offset, section->sh_size, part);
}

static const Elf64_Shdr *find_section(const struct reading *reading, uint32_t type)
{
    for (size_t i = 0; i < reading->section_count; i++)
        if (reading->sections[i].sh_type == type)
            return &reading->sections[i];
    return NULL;
}

/* Returns NULL if the offset is outside the names. */
static const char *name_at(const struct reading *reading, uint64_t offset)
{
    return offset < reading->names.length ? (const char *)reading->names.bytes + offset : NULL;
}

static enum mt_status read_headers(struct reading *reading)
{
    struct part part;
    Elf64_Ehdr header;
    enum mt_status status = read_part(reading, 0, sizeof header, &part);

    if (status)
        return status;
    memcpy(&header, part.bytes, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return damaged(reading, 0, "it is not an ELF file");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_machine != EM_X86_64 || header.e_type != ET_DYN)
        return mt_fail(reading->error, MT_ERR_UNSUPPORTED, 0,
                       "it is not a shared library for x86-64");
    if (!header.e_shnum || header.e_shentsize != sizeof(Elf64_Shdr))
        return damaged(reading, 0, "it has no section headers");
    status =
        read_part(reading, header.e_shoff, (uint64_t)header.e_shnum * sizeof(Elf64_Shdr), &part);
    reading->sections = (const void *)part.bytes;
    reading->section_count = status ? 0 : header.e_shnum;
    return status;
}

/* Copies a record of a chain. Returns false if it is outside the section. */
static bool record_at(const struct part *part, uint64_t offset, void *record, size_t length)
{
    if (offset > part->length || length > part->length - offset)
        return false;
    memcpy(record, part->bytes + offset, length);
    return true;
}

static enum mt_status note_version(struct reading *reading, unsigned index, const char *name,
                                   const char *library)
{
    index &= ~(unsigned)VERSION_HIDDEN;
    /* records may overlap: a chain with steps of one byte would take hours */
    if (!name || index >= reading->version_count ||
        reading->version_records++ == reading->version_count)
        return damaged(reading, MT_NO_OFFSET, "a version of a function is damaged");
    reading->versions[index] = (struct version){name, library};
    return MT_OK;
}

/* The versions that are required of one library. */
static enum mt_status read_needed_file(struct reading *reading, const struct part *part,
                                       uint64_t at, const Elf64_Verneed *need)
{
    const char *library = name_at(reading, need->vn_file);
    uint64_t aux_at = at + need->vn_aux;

    for (unsigned i = 0; i < need->vn_cnt; i++) {
        Elf64_Vernaux aux;
        if (!library || !record_at(part, aux_at, &aux, sizeof aux))
            return damaged(reading, MT_NO_OFFSET, "the list of needed versions is damaged");
        enum mt_status status =
            note_version(reading, aux.vna_other, name_at(reading, aux.vna_name), library);
        if (status)
            return status;
        if (!aux.vna_next)
            break;
        aux_at += aux.vna_next;
    }
    return MT_OK;
}

static enum mt_status read_needed_versions(struct reading *reading)
{
    const Elf64_Shdr *section = find_section(reading, SHT_GNU_verneed);
    struct part part;
    enum mt_status status = section ? read_section(reading, section, &part) : MT_END;
    uint64_t at = 0;

    for (size_t left = status ? 0 : part.length / sizeof(Elf64_Verneed); left; left--) {
        Elf64_Verneed need;
        if (!record_at(&part, at, &need, sizeof need))
            return damaged(reading, MT_NO_OFFSET, "the list of needed versions is damaged");
        status = read_needed_file(reading, &part, at, &need);
        if (status || !need.vn_next)
            return status;
        at += need.vn_next;
    }
    return status < 0 ? status : MT_OK;
}

static enum mt_status read_own_versions(struct reading *reading)
{
    const Elf64_Shdr *section = find_section(reading, SHT_GNU_verdef);
    struct part part;
    enum mt_status status = section ? read_section(reading, section, &part) : MT_END;
    uint64_t at = 0;

    for (size_t left = status ? 0 : part.length / sizeof(Elf64_Verdef); left; left--) {
        Elf64_Verdef definition;
        Elf64_Verdaux aux;
        if (!record_at(&part, at, &definition, sizeof definition) ||
            !record_at(&part, at + definition.vd_aux, &aux, sizeof aux))
            return damaged(reading, MT_NO_OFFSET, "the list of own versions is damaged");
        status = note_version(reading, definition.vd_ndx, name_at(reading, aux.vda_name), NULL);
        if (status || !definition.vd_next)
            return status;
        at += definition.vd_next;
    }
    return status < 0 ? status : MT_OK;
}

static enum mt_status read_versions(struct reading *reading)
{
    reading->version_count = VERSION_HIDDEN;
    reading->versions =
        mt_arena_array(&reading->elf->arena, reading->version_count, sizeof *reading->versions);
    if (!reading->versions)
        return mt_fail(reading->error, MT_ERR_MEMORY, MT_NO_OFFSET, "no memory for versions");
    enum mt_status status = read_own_versions(reading);
    return status ? status : read_needed_versions(reading);
}

static enum mt_status read_symbol(struct reading *reading, const struct part *part,
                                  const struct part *indexes, size_t i)
{
    Elf64_Sym raw;
    uint16_t index = 0;

    memcpy(&raw, part->bytes + i * sizeof raw, sizeof raw);
    (void)record_at(indexes, i * sizeof index, &index, sizeof index);
    index &= (uint16_t) ~(unsigned)VERSION_HIDDEN;
    const struct version *version = &reading->versions[index];
    const char *name = name_at(reading, raw.st_name);
    bool is_defined = raw.st_shndx != SHN_UNDEF;
    if (!name)
        return damaged(reading, MT_NO_OFFSET, "the name of a function is damaged");
    if (*name)
        reading->elf->symbols[reading->elf->symbol_count++] = (struct mt_elf_symbol){
            name, index > VER_NDX_GLOBAL ? version->name : NULL,
            index > VER_NDX_GLOBAL && !is_defined ? version->library : NULL, is_defined};
    return MT_OK;
}

static enum mt_status read_symbols(struct reading *reading, const Elf64_Shdr *section)
{
    const Elf64_Shdr *versions = find_section(reading, SHT_GNU_versym);
    struct part part, indexes = {NULL, 0};
    enum mt_status status = read_section(reading, section, &part);

    if (!status && versions)
        status = read_section(reading, versions, &indexes);
    size_t count = status ? 0 : part.length / sizeof(Elf64_Sym);
    reading->elf->symbols =
        mt_arena_array(&reading->elf->arena, count, sizeof *reading->elf->symbols);
    if (!status && !reading->elf->symbols)
        return mt_fail(reading->error, MT_ERR_MEMORY, MT_NO_OFFSET, "no memory for symbols");
    for (size_t i = 0; i < count && !status; i++)
        status = read_symbol(reading, &part, &indexes, i);
    return status;
}

static enum mt_status read_dynamic(struct reading *reading)
{
    const Elf64_Shdr *section = find_section(reading, SHT_DYNAMIC);
    struct part part = {NULL, 0};
    struct mt_elf *elf = reading->elf;
    enum mt_status status = section ? read_section(reading, section, &part) : MT_OK;
    size_t count = part.length / sizeof(Elf64_Dyn);

    elf->needed = mt_arena_array(&elf->arena, count, sizeof *elf->needed);
    if (!status && !elf->needed)
        return mt_fail(reading->error, MT_ERR_MEMORY, MT_NO_OFFSET, "no memory for names");
    for (size_t i = 0; i < count && !status; i++) {
        Elf64_Dyn entry;
        memcpy(&entry, part.bytes + i * sizeof entry, sizeof entry);
        if (entry.d_tag == DT_NULL)
            break;
        const char *name = name_at(reading, entry.d_un.d_val);
        if (entry.d_tag != DT_NEEDED && entry.d_tag != DT_SONAME)
            continue;
        if (!name)
            status = damaged(reading, MT_NO_OFFSET, "the name of a library is damaged");
        else if (entry.d_tag == DT_NEEDED)
            elf->needed[elf->needed_count++] = name;
        else
            elf->soname = name;
    }
    return status;
}

static enum mt_status read_tables(struct reading *reading)
{
    enum mt_status status = read_headers(reading);
    const Elf64_Shdr *symbols = status ? NULL : find_section(reading, SHT_DYNSYM);

    if (status)
        return status;
    if (!symbols || symbols->sh_link >= reading->section_count)
        return damaged(reading, 0, "it has no dynamic symbols");
    status = read_section(reading, &reading->sections[symbols->sh_link], &reading->names);
    if (!status)
        status = read_versions(reading);
    if (!status)
        status = read_symbols(reading, symbols);
    return status ? status : read_dynamic(reading);
}

enum mt_status mt_elf_read(const char *path, struct mt_elf *elf, struct mt_error *error)
{
    struct reading reading = {
        .fd = mt_io_open(path, O_RDONLY | O_NONBLOCK, 0), .elf = elf, .error = error};
    struct stat info;
    enum mt_status status;

    *elf = (struct mt_elf){0};
    if (reading.fd < 0)
        return mt_io_fail(error, MT_ERR_IO, "cannot open");
    if (fstat(reading.fd, &info) != 0) {
        status = mt_io_fail(error, MT_ERR_IO, "cannot read");
    } else if (!S_ISREG(info.st_mode)) {
        status = mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET, "it is not a file");
    } else {
        reading.file_bytes = info.st_size > 0 ? (uint64_t)info.st_size : 0;
        status = read_tables(&reading);
    }
    (void)mt_io_close(reading.fd);
    if (status)
        mt_elf_release(elf);
    return status;
}

void mt_elf_release(struct mt_elf *elf)
{
    mt_arena_release(&elf->arena);
    *elf = (struct mt_elf){0};
}
