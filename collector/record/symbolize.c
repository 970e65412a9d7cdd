/* One libdwfl session per file, at the addresses of its own symbol table. */
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arena.h"
#include "demangle.h"
#include "grow.h"
#include "io.h"
#include "sorted.h"
#include "status.h"
#include "symbolize.h"
#include "util.h"

/* Finds the compilation unit of an address in files without the table of addresses that libdw
 * needs. clang does not write this table.
 *
 * Ranges of units overlap only in damaged files. In such a file, the unit that begins last is used,
 * and a search may have to visit all ranges. */

struct code_unit {
    Dwarf_Die *die;  /* borrowed from the module; NULL: not found */
    Dwarf_Addr bias; /* subtract it from an address before a lookup in the unit */
};

struct unit_range {
    Dwarf_Addr begin, end; /* begin first: sorted.h */
    Dwarf_Addr reach;      /* the largest end so far */
    struct code_unit unit;
};

struct code_units {
    struct unit_range *ranges;
    size_t count, capacity;
    bool are_read;
};

static void code_units_release(struct code_units *self)
{
    free(self->ranges);
    *self = (struct code_units){0};
}

static bool add(struct code_units *self, const struct unit_range *range)
{
    if (self->count == self->capacity &&
        mt_grow(&self->ranges, &self->capacity, self->count + 1, sizeof *self->ranges))
        return false;
    self->ranges[self->count++] = *range;
    return true;
}

static bool add_unit(struct code_units *self, struct code_unit unit)
{
    Dwarf_Addr base, begin, end;
    ptrdiff_t next = 0;

    while ((next = dwarf_ranges(unit.die, next, &base, &begin, &end)) > 0) {
        const struct unit_range range = {begin + unit.bias, end + unit.bias, 0, unit};
        if (begin < end && !add(self, &range))
            return false;
    }
    return true;
}

MT_DEFINE_ORDER(by_begin, struct unit_range, MT_ASCENDING(begin) || MT_ASCENDING(end))

static void read_all(struct code_units *self, Dwfl_Module *module)
{
    struct code_unit unit = {NULL, 0};
    Dwarf_Addr reach = 0;

    self->are_read = true;
    while ((unit.die = dwfl_module_nextcu(module, unit.die, &unit.bias)) != NULL)
        if (!add_unit(self, unit))
            break;
    if (self->count)
        qsort(self->ranges, self->count, sizeof *self->ranges, by_begin);
    for (size_t i = 0; i < self->count; i++)
        self->ranges[i].reach = reach = mt_max_u64(reach, self->ranges[i].end);
}

/* The first call reads the ranges of all units; later calls are a binary search. If memory runs
 * out, a unit may not be found. */
static struct code_unit code_units_find(struct code_units *self, Dwfl_Module *module,
                                        Dwarf_Addr address)
{
    if (!self->are_read)
        read_all(self, module);
    size_t i = mt_sorted_count_to(self->ranges, self->count, sizeof *self->ranges, address);
    for (; i > 0 && self->ranges[i - 1].reach > address; i--)
        if (self->ranges[i - 1].end > address)
            return self->ranges[i - 1].unit;
    return (struct code_unit){NULL, 0};
}

/* A symbol that contains an address is at most this many symbols before it, because only assembly
 * nests symbols. */
enum { LOOK_BACK = 32 };

enum mt_status mt_symbol_index_add(struct mt_symbol_index *index, struct mt_symbol symbol)
{
    if (mt_grow(&index->symbols, &index->capacity, index->count + 1, sizeof *index->symbols))
        return MT_ERR_MEMORY;
    index->symbols[index->count++] = symbol;
    return MT_OK;
}

/* Sorts by address. Among symbols at one address the best one is last, because the search finds the
 * last one first. Plain names are better than names with underscores. */
MT_DEFINE_ORDER(compare, struct mt_symbol,
                MT_ASCENDING(address) || MT_ASCENDING(rank) || MT_BY_TEXT(name))

void mt_symbol_index_sort(struct mt_symbol_index *index)
{
    if (index->count)
        qsort(index->symbols, index->count, sizeof *index->symbols, compare);
}

const char *mt_symbol_index_find(const struct mt_symbol_index *index, uint64_t address)
{
    size_t above =
        mt_sorted_count_to(index->symbols, index->count, sizeof *index->symbols, address);

    for (size_t i = above; i > 0 && above - i < LOOK_BACK; i--) {
        const struct mt_symbol *symbol = &index->symbols[i - 1];
        bool is_nearest = symbol->address == index->symbols[above - 1].address;
        if (address - symbol->address < symbol->size_bytes && (is_nearest || !symbol->is_open))
            return symbol->name;
    }
    return NULL;
}

void mt_symbol_index_release(struct mt_symbol_index *index)
{
    free(index->symbols);
    memset(index, 0, sizeof *index);
}

enum { MAX_NAMESPACE_DEPTH = 32 };

struct mt_code_file {
    Dwfl *session;
    Dwfl_Module *module;
    struct mt_demangler *demangler;
    struct mt_symbol_index symbols;
    bool symbols_read;
    struct code_units units;
    struct mt_arena texts; /* of the last call */
};

/* If there is no memory for the thread-local data of a library that was loaded late, glibc ends the
 * process at the first use, and no handler runs. This use comes before there is a file to remove.
 */
bool mt_symbolize_available(struct mt_error *error)
{
    (void)error;
    (void)elf_errno();
    (void)dwarf_errno();
    (void)dwfl_errno();
    return true;
}

/* If servers for debug files are configured, libdwfl would query them, which can take minutes. With
 * a build id it queries no server. */
static int find_debug_file(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                           const char *path, const char *link, GElf_Word checksum, char **found)
{
    const char *servers = getenv("DEBUGINFOD_URLS");

    if (servers && *servers)
        return dwfl_build_id_find_debuginfo(module, data, name, base, path, link, checksum, found);
    return dwfl_standard_find_debuginfo(module, data, name, base, path, link, checksum, found);
}

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = find_debug_file,
    .section_address = dwfl_offline_section_address,
};

/* Opens a regular file. Returns -1 for other files, because the name may refer to anything by
 * now. */
static int open_file(const struct mt_code_file_id *id, enum mt_code_file_state *state)
{
    int fd = *id->path == '/' ? mt_io_open(id->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0) : -1;
    struct stat info;

    *state = MT_CODE_MISSING;
    if (fd < 0)
        return -1;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
        if (id->build_id_bytes || info.st_mtime <= id->not_after_unix_s)
            return fd;
        *state = MT_CODE_CHANGED;
    }
    close(fd);
    return -1;
}

static bool is_wanted(Dwfl_Module *module, const struct mt_code_file_id *id)
{
    const unsigned char *bits;
    GElf_Addr place;
    int bytes = dwfl_module_build_id(module, &bits, &place);

    return !id->build_id_bytes || (bytes > 0 && (size_t)bytes == id->build_id_bytes &&
                                   memcmp(bits, id->build_id, id->build_id_bytes) == 0);
}

/* Takes ownership of fd. */
static Dwfl_Module *load(struct mt_code_file *file, const char *path, int fd)
{
    file->session = dwfl_begin(&callbacks);
    if (!file->session) {
        close(fd);
        return NULL;
    }
    dwfl_report_begin(file->session);
    Dwfl_Module *module = dwfl_report_elf(file->session, path, path, fd, 0, true);
    if (!module)
        close(fd);
    if (dwfl_report_end(file->session, NULL, NULL) != 0)
        return NULL;
    return module;
}

enum mt_status mt_code_file_open(const struct mt_code_file_id *id, struct mt_demangler *demangler,
                                 struct mt_code_file **out, enum mt_code_file_state *state)
{
    int fd = open_file(id, state);
    struct mt_code_file *file;

    *out = NULL;
    if (fd < 0)
        return MT_OK;
    file = calloc(1, sizeof *file);
    if (!file) {
        close(fd);
        return MT_ERR_MEMORY;
    }
    file->demangler = demangler;
    file->module = load(file, id->path, fd);
    *state = !file->module                 ? MT_CODE_MISSING
             : is_wanted(file->module, id) ? MT_CODE_FOUND
                                           : MT_CODE_CHANGED;
    if (*state == MT_CODE_FOUND)
        *out = file;
    else
        mt_code_file_close(file);
    return MT_OK;
}

void mt_code_file_close(struct mt_code_file *file)
{
    if (!file)
        return;
    mt_symbol_index_release(&file->symbols);
    code_units_release(&file->units);
    mt_arena_release(&file->texts);
    if (file->session)
        dwfl_end(file->session);
    free(file);
}

/* Returns the section of a symbol if it contains code. */
static bool find_code(Elf *elf, GElf_Word section, GElf_Shdr *header)
{
    Elf_Scn *found = elf ? elf_getscn(elf, section) : NULL;

    return found && gelf_getshdr(found, header) && header->sh_flags & SHF_EXECINSTR;
}

/* Rank 0: not a function. Functions in assembly often have neither type nor size. */
static void describe(const GElf_Sym *raw, Elf *elf, GElf_Word section, struct mt_symbol *symbol)
{
    unsigned type = GELF_ST_TYPE(raw->st_info), binding = GELF_ST_BIND(raw->st_info);
    bool is_typed = type == STT_FUNC || type == STT_GNU_IFUNC;
    GElf_Shdr header;

    symbol->rank = 0;
    symbol->size_bytes = raw->st_size;
    symbol->is_open = raw->st_size == 0;
    if (section == SHN_UNDEF || section == SHN_ABS || (!is_typed && type != STT_NOTYPE))
        return;
    if (!is_typed || symbol->is_open) {
        if (!find_code(elf, section, &header) || raw->st_value - header.sh_addr >= header.sh_size)
            return;
        if (symbol->is_open)
            symbol->size_bytes = header.sh_size - (raw->st_value - header.sh_addr);
    }
    symbol->rank = (is_typed ? 4u : 1u) + (binding == STB_GLOBAL ? 2u
                                           : binding == STB_WEAK ? 1u
                                                                 : 0u);
}

static void read_symbols(struct mt_code_file *file)
{
    int count = dwfl_module_getsymtab(file->module);

    file->symbols_read = true;
    for (int i = 1; i < count; i++) {
        struct mt_symbol symbol;
        GElf_Sym raw;
        GElf_Word section;
        Elf *elf;
        symbol.name =
            dwfl_module_getsym_info(file->module, i, &raw, &symbol.address, &section, &elf, NULL);
        if (!symbol.name || !*symbol.name)
            continue;
        describe(&raw, elf, section, &symbol);
        if (symbol.rank && mt_symbol_index_add(&file->symbols, symbol) != MT_OK)
            break; /* no memory: the symbols so far are still useful */
    }
    mt_symbol_index_sort(&file->symbols);
}

static const char *symbol_at(struct mt_code_file *file, uint64_t address)
{
    if (!file->symbols_read)
        read_symbols(file);
    return mt_symbol_index_find(&file->symbols, address);
}

/* Scopes around an address, outermost first: a function, and the functions that are inlined into
 * it. */
struct scopes {
    Dwarf_Die dies[MT_MAX_CODE_POSITIONS];
    size_t count;
};

static bool is_container(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_module;
}

static bool is_code(int tag)
{
    return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine ||
           tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block ||
           tag == DW_TAG_with_stmt;
}

static void enter_scope(struct scopes *scopes, const Dwarf_Die *die, int tag)
{
    if (tag == DW_TAG_subprogram)
        scopes->count = 0; /* a function in a function is a separate call */
    if ((tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine) &&
        scopes->count < MT_MAX_CODE_POSITIONS)
        scopes->dies[scopes->count++] = *die;
}

/* In valid files, siblings follow each other. */
static bool next_sibling(Dwarf_Die *die, Dwarf_Die *next)
{
    Dwarf_Off before = dwarf_dieoffset(die);

    return dwarf_siblingof(die, next) == 0 && dwarf_dieoffset(next) > before;
}

/* Descends to the children of entries that contain the address, and skips all others. Namespaces
 * contain functions but have no addresses, so the search can return from them. */
static void find_scopes(Dwarf_Die *unit, Dwarf_Addr address, struct scopes *scopes)
{
    Dwarf_Die resume[MAX_NAMESPACE_DEPTH], die, child;
    size_t depth = 0;
    bool more = dwarf_child(unit, &die) == 0;

    scopes->count = 0;
    while (more) {
        int tag = dwarf_tag(&die);
        if (is_container(tag) && depth < MAX_NAMESPACE_DEPTH && dwarf_child(&die, &child) == 0) {
            resume[depth++] = die;
            die = child;
            continue;
        }
        if (is_code(tag) && dwarf_haspc(&die, address) == 1) {
            enter_scope(scopes, &die, tag);
            depth = 0;
            more = dwarf_child(&die, &child) == 0;
            die = child;
            continue;
        }
        more = next_sibling(&die, &die);
        while (!more && depth > 0)
            more = next_sibling(&resume[--depth], &die);
    }
}

static const char *text_attribute(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;

    return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

static const char *copy(struct mt_code_file *file, const char *text)
{
    return text ? mt_arena_text(&file->texts, text, strlen(text)) : NULL;
}

static const char *function_name(struct mt_code_file *file, Dwarf_Die *die)
{
    const char *name = text_attribute(die, DW_AT_linkage_name);

    if (!name)
        name = text_attribute(die, DW_AT_MIPS_linkage_name);
    if (!name)
        name = text_attribute(die, DW_AT_name);
    return name ? copy(file, mt_demangle(file->demangler, name)) : NULL;
}

static const char *absolute_path(struct mt_code_file *file, Dwarf_Die *unit, const char *path)
{
    Dwarf_Attribute attribute;

    if (!path || *path == '/')
        return copy(file, path);
    const char *folder = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
    return folder ? mt_arena_printf(&file->texts, "%s/%s", folder, path) : copy(file, path);
}

/* Sets the position of the call of an inlined function. */
static void set_call_place(struct mt_code_file *file, Dwarf_Die *unit, Dwarf_Die *inlined,
                           struct mt_code_position *place)
{
    Dwarf_Attribute attribute;
    Dwarf_Word number;
    Dwarf_Files *files;
    size_t count;

    if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &number) == 0 &&
        number <= UINT32_MAX)
        place->line = (uint32_t)number;
    if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &number) == 0 &&
        dwarf_getsrcfiles(unit, &files, &count) == 0 && number < count)
        place->file = absolute_path(file, unit, dwarf_filesrc(files, number, NULL, NULL));
}

/* Returns the file, or NULL if it is unknown. libdw finds a line through the table of addresses.
 * clang does not write such a table; the unit is then searched. */
static const char *line_at(struct mt_code_file *file, const struct code_unit *unit,
                           Dwarf_Addr address, int *number)
{
    Dwfl_Line *found = dwfl_module_getsrc(file->module, address);

    if (found)
        return dwfl_lineinfo(found, NULL, number, NULL, NULL, NULL);
    Dwarf_Line *line = unit->die ? dwarf_getsrc_die(unit->die, address - unit->bias) : NULL;
    if (!line || dwarf_lineno(line, number) != 0)
        return NULL;
    return dwarf_linesrc(line, NULL, NULL);
}

static void set_line(struct mt_code_file *file, const struct code_unit *unit, Dwarf_Addr address,
                     struct mt_code_position *place)
{
    int number = 0;
    const char *path = line_at(file, unit, address, &number);

    if (!path)
        return;
    place->file = unit->die ? absolute_path(file, unit->die, path) : copy(file, path);
    place->line = number > 0 ? (uint32_t)number : 0;
}

static struct code_unit unit_at(struct mt_code_file *file, Dwarf_Addr address)
{
    struct code_unit unit = {NULL, 0};

    unit.die = dwfl_module_addrdie(file->module, address, &unit.bias);
    return unit.die ? unit : code_units_find(&file->units, file->module, address);
}

static size_t dwarf_places(struct mt_code_file *file, Dwarf_Addr address,
                           struct mt_code_position places[MT_MAX_CODE_POSITIONS])
{
    struct scopes scopes = {.count = 0};
    const struct code_unit unit = unit_at(file, address);

    if (unit.die)
        find_scopes(unit.die, address - unit.bias, &scopes);
    for (size_t i = 0; i < scopes.count; i++) {
        places[i] = (struct mt_code_position){.function = function_name(file, &scopes.dies[i])};
        if (i > 0)
            set_call_place(file, unit.die, &scopes.dies[i], &places[i - 1]);
    }
    if (scopes.count)
        set_line(file, &unit, address, &places[scopes.count - 1]);
    return scopes.count;
}

size_t mt_code_file_positions(struct mt_code_file *file, uint64_t address,
                              struct mt_code_position places[MT_MAX_CODE_POSITIONS])
{
    const struct code_unit no_unit = {NULL, 0};

    mt_arena_release(&file->texts);
    size_t count = dwarf_places(file, address, places);
    if (count && places[0].function) {
        for (size_t i = 1; i < count; i++)
            if (!places[i].function)
                places[i].function = "?";
        return count;
    }
    const char *name = symbol_at(file, address);
    if (!name)
        return 0;
    places[0] =
        (struct mt_code_position){.function = copy(file, mt_demangle(file->demangler, name))};
    set_line(file, &no_unit, address, &places[0]);
    return places[0].function ? 1 : 0;
}
