/* See nvtx_parts.h. Each function records and calls the previous tool. The program gets the results
 * of that tool: its handles, its ids. */
#include "nvtx_parts.h"

#include <errno.h>

#include "thread_names.h"

mt_nvtx_next_slot mt_nvtx_next_core[NVTX_SLOT_COUNT];
mt_nvtx_next_slot mt_nvtx_next_core2[NVTX_SLOT_COUNT];

/* next_NAME(): the function of the previous tool, or NULL. */
#define DECLARE(table, number, name, result, parameters)                                           \
    typedef result(*name##_fn) parameters;                                                         \
    static name##_fn next_##name(void)                                                             \
    {                                                                                              \
        return (name##_fn)atomic_load_explicit(&table[number], memory_order_relaxed);              \
    }
#define DECLARE_CORE(number, name, result, parameters)                                             \
    DECLARE(mt_nvtx_next_core, number, name, result, parameters)
#define DECLARE_CORE2(number, name, result, parameters)                                            \
    DECLARE(mt_nvtx_next_core2, number, name, result, parameters)
NVTX_CORE_SLOTS(DECLARE_CORE)
NVTX_CORE2_SLOTS(DECLARE_CORE2)

static struct nvtx_attributes ascii(const char *message)
{
    return (struct nvtx_attributes){.size = sizeof(struct nvtx_attributes),
                                    .message_type = NVTX_MESSAGE_IS_ASCII,
                                    .message = {.ascii = message}};
}

static struct nvtx_attributes wide(const wchar_t *message)
{
    return (struct nvtx_attributes){.size = sizeof(struct nvtx_attributes),
                                    .message_type = NVTX_MESSAGE_IS_WIDE,
                                    .message = {.wide = message}};
}

static struct mt_nvtx_text ascii_text(const char *text)
{
    return (struct mt_nvtx_text){text, mt_nvtx_length(text, MT_MAX_NVTX_TEXT_BYTES)};
}

struct buffer {
    char bytes[MT_MAX_NVTX_TEXT_BYTES];
};

static struct mt_nvtx_text wide_text(const wchar_t *text, struct buffer *buffer)
{
    return (struct mt_nvtx_text){buffer->bytes,
                                 mt_nvtx_from_wide(text, buffer->bytes, sizeof buffer->bytes)};
}

static void mark(uint32_t domain, const struct nvtx_attributes *attributes)
{
    int saved = errno;

    mt_nvtx_mark(domain, attributes);
    errno = saved;
}

static int push(uint32_t domain, const struct nvtx_attributes *attributes)
{
    int saved = errno;
    int level = mt_nvtx_push(domain, attributes);

    errno = saved;
    return level;
}

static int push_with_payload(uint32_t domain, const struct nvtx_attributes *attributes)
{
    int level = push(domain, attributes), saved = errno;

    mt_nvtx_communicator_attached(domain, attributes);
    errno = saved;
    return level;
}

static int pop(uint32_t domain)
{
    int saved = errno;
    int level = mt_nvtx_pop(domain);

    errno = saved;
    return level;
}

static uint64_t start(uint64_t next, uint32_t domain, const struct nvtx_attributes *attributes)
{
    int saved = errno;
    uint64_t id = mt_nvtx_start(next, domain, attributes);

    errno = saved;
    return id;
}

static void end(uint64_t id)
{
    int saved = errno;

    mt_nvtx_end(id);
    errno = saved;
}

static void on_mark_ex(const struct nvtx_attributes *attributes)
{
    mark(0, attributes);
    if (next_mark_ex())
        next_mark_ex()(attributes);
}

static void on_mark_a(const char *message)
{
    const struct nvtx_attributes plain = ascii(message);

    mark(0, &plain);
    if (next_mark_a())
        next_mark_a()(message);
}

static void on_mark_w(const wchar_t *message)
{
    const struct nvtx_attributes plain = wide(message);

    mark(0, &plain);
    if (next_mark_w())
        next_mark_w()(message);
}

static uint64_t on_range_start_ex(const struct nvtx_attributes *attributes)
{
    return start(next_range_start_ex() ? next_range_start_ex()(attributes) : 0, 0, attributes);
}

static uint64_t on_range_start_a(const char *message)
{
    const struct nvtx_attributes plain = ascii(message);

    return start(next_range_start_a() ? next_range_start_a()(message) : 0, 0, &plain);
}

static uint64_t on_range_start_w(const wchar_t *message)
{
    const struct nvtx_attributes plain = wide(message);

    return start(next_range_start_w() ? next_range_start_w()(message) : 0, 0, &plain);
}

static void on_range_end(uint64_t id)
{
    end(id);
    if (next_range_end())
        next_range_end()(id);
}

static int on_range_push_ex(const struct nvtx_attributes *attributes)
{
    int level = push(0, attributes);

    return next_range_push_ex() ? next_range_push_ex()(attributes) : level;
}

static int on_range_push_a(const char *message)
{
    const struct nvtx_attributes plain = ascii(message);
    int level = push(0, &plain);

    return next_range_push_a() ? next_range_push_a()(message) : level;
}

static int on_range_push_w(const wchar_t *message)
{
    const struct nvtx_attributes plain = wide(message);
    int level = push(0, &plain);

    return next_range_push_w() ? next_range_push_w()(message) : level;
}

static int on_range_pop(void)
{
    int level = pop(0);

    return next_range_pop() ? next_range_pop()() : level;
}

static void on_name_category_a(uint32_t category, const char *name)
{
    mt_nvtx_category_set(0, category, ascii_text(name));
    if (next_name_category_a())
        next_name_category_a()(category, name);
}

static void on_name_category_w(uint32_t category, const wchar_t *name)
{
    struct buffer buffer;

    mt_nvtx_category_set(0, category, wide_text(name, &buffer));
    if (next_name_category_w())
        next_name_category_w()(category, name);
}

static void name_thread(uint32_t os_thread, struct mt_nvtx_text name)
{
    mt_thread_name_set(os_thread, name.bytes, name.length);
}

static void on_name_thread_a(uint32_t os_thread, const char *name)
{
    name_thread(os_thread, ascii_text(name));
    if (next_name_thread_a())
        next_name_thread_a()(os_thread, name);
}

static void on_name_thread_w(uint32_t os_thread, const wchar_t *name)
{
    struct buffer buffer;

    name_thread(os_thread, wide_text(name, &buffer));
    if (next_name_thread_w())
        next_name_thread_w()(os_thread, name);
}

static void on_domain_mark_ex(void *domain, const struct nvtx_attributes *attributes)
{
    struct nvtx_attributes copy;

    mark(mt_nvtx_domain(domain), attributes);
    if (next_domain_mark_ex())
        next_domain_mark_ex()(mt_nvtx_next_handle(domain),
                              mt_nvtx_next_attributes(attributes, &copy));
}

static uint64_t on_domain_range_start_ex(void *domain, const struct nvtx_attributes *attributes)
{
    struct nvtx_attributes copy;
    uint64_t next = 0;

    if (next_domain_range_start_ex())
        next = next_domain_range_start_ex()(mt_nvtx_next_handle(domain),
                                            mt_nvtx_next_attributes(attributes, &copy));
    return start(next, mt_nvtx_domain(domain), attributes);
}

static void on_domain_range_end(void *domain, uint64_t id)
{
    end(id);
    if (next_domain_range_end())
        next_domain_range_end()(mt_nvtx_next_handle(domain), id);
}

static int on_domain_range_push_ex(void *domain, const struct nvtx_attributes *attributes)
{
    int level = push_with_payload(mt_nvtx_domain(domain), attributes);
    struct nvtx_attributes copy;

    if (next_domain_range_push_ex())
        level = next_domain_range_push_ex()(mt_nvtx_next_handle(domain),
                                            mt_nvtx_next_attributes(attributes, &copy));
    return level;
}

static int on_domain_range_pop(void *domain)
{
    int level = pop(mt_nvtx_domain(domain));

    return next_domain_range_pop() ? next_domain_range_pop()(mt_nvtx_next_handle(domain)) : level;
}

static void on_domain_name_category_a(void *domain, uint32_t category, const char *name)
{
    mt_nvtx_category_set(mt_nvtx_domain(domain), category, ascii_text(name));
    if (next_domain_name_category_a())
        next_domain_name_category_a()(mt_nvtx_next_handle(domain), category, name);
}

static void on_domain_name_category_w(void *domain, uint32_t category, const wchar_t *name)
{
    struct buffer buffer;

    mt_nvtx_category_set(mt_nvtx_domain(domain), category, wide_text(name, &buffer));
    if (next_domain_name_category_w())
        next_domain_name_category_w()(mt_nvtx_next_handle(domain), category, name);
}

static void *on_domain_register_string_a(void *domain, const char *text)
{
    void *next = NULL;

    if (next_domain_register_string_a())
        next = next_domain_register_string_a()(mt_nvtx_next_handle(domain), text);
    return mt_nvtx_string_register(mt_nvtx_domain(domain), ascii_text(text), next);
}

static void *on_domain_register_string_w(void *domain, const wchar_t *text)
{
    struct buffer buffer;
    void *next = NULL;

    if (next_domain_register_string_w())
        next = next_domain_register_string_w()(mt_nvtx_next_handle(domain), text);
    return mt_nvtx_string_register(mt_nvtx_domain(domain), wide_text(text, &buffer), next);
}

static void *on_domain_create_a(const char *name)
{
    void *next = next_domain_create_a() ? next_domain_create_a()(name) : NULL;

    return mt_nvtx_domain_create(ascii_text(name), next);
}

static void *on_domain_create_w(const wchar_t *name)
{
    void *next = next_domain_create_w() ? next_domain_create_w()(name) : NULL;
    struct buffer buffer;

    return mt_nvtx_domain_create(wide_text(name, &buffer), next);
}

#define SLOT(number, name, result, parameters) [number] = (nvtx_function)on_##name,
const nvtx_function mt_nvtx_core_slots[NVTX_SLOT_COUNT] = {NVTX_CORE_SLOTS(SLOT)};
const nvtx_function mt_nvtx_core2_slots[NVTX_SLOT_COUNT] = {NVTX_CORE2_SLOTS(SLOT)};
