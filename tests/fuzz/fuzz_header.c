/* Any bytes as the header of a trace, with the right checksum: what is accepted is
 * written and read as the same facts. */
#include "container.h"
#include "fuzz.h"
#include "identity.h"

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void check_same(const struct mt_trace_header *a, const struct mt_trace_header *b)
{
    FUZZ_CHECK(same_text(a->framework, b->framework) && same_text(a->host, b->host));
    FUZZ_CHECK(same_text(a->allocator_options, b->allocator_options));
    FUZZ_CHECK(same_text(a->command, b->command) && same_text(a->sources, b->sources));
    FUZZ_CHECK(same_text(a->settings, b->settings) && same_text(a->driver_calls, b->driver_calls));
    FUZZ_CHECK(same_text(a->not_recorded, b->not_recorded) && same_text(a->dry_run, b->dry_run));
    FUZZ_CHECK(a->process_id == b->process_id && a->start_t_ns == b->start_t_ns);
    FUZZ_CHECK(a->rank == b->rank && a->world_size == b->world_size);
    FUZZ_CHECK(a->memory_limit_bytes == b->memory_limit_bytes);
    FUZZ_CHECK(a->starts_in_middle == b->starts_in_middle && a->has_stacks == b->has_stacks);
    FUZZ_CHECK(a->sizes_rounded == b->sizes_rounded && a->never_refused == b->never_refused);
}

/* Who the rank is stays the same; reading it never fails. */
static void check_identity(const struct mt_trace_header *a, const struct mt_trace_header *b)
{
    struct mt_identity one, other;

    mt_identity_read(a, a->host, &one);
    mt_identity_read(b, b->host, &other);
    FUZZ_CHECK(memcmp(&one, &other, sizeof one) == 0);
    FUZZ_CHECK(one.rank <= MT_MAX_RANK && (one.world < 0 || one.world > one.rank));
    FUZZ_CHECK(one.group_count <= MT_IDENTITY_GROUPS && one.mesh.count <= MT_MESH_AXES);
}

static void check_again(const struct mt_trace_header *header)
{
    struct mt_trace_header again = {.rank = -1, .world_size = -1};
    struct mt_arena arena = {0};
    struct mt_buf out = {0};
    const char *reason;

    mt_header_write(header, 512, &out);
    FUZZ_CHECK(!out.failed);
    FUZZ_CHECK(mt_header_read((const uint8_t *)out.data + MT_SKIPPABLE_HEADER_BYTES,
                              out.length - MT_SKIPPABLE_HEADER_BYTES, &arena, &again,
                              &reason) == MT_OK);
    check_same(header, &again);
    check_identity(header, &again);
    mt_buf_release(&out);
    mt_arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mt_trace_header header = {.rank = -1, .world_size = -1};
    struct fuzz_input input = {data, size};
    struct mt_arena arena = {0};
    const char *reason;
    size_t length;

    if (size > 60000) /* the writer cuts longer texts */
        return 0;
    uint8_t *payload = fuzz_copy(&input, size, &length);
    if (length >= 4)
        mt_put_u32(payload + length - 4, mt_crc32(payload, length - 4));
    if (mt_header_read(payload, length, &arena, &header, &reason) == MT_OK)
        check_again(&header);
    mt_arena_release(&arena);
    free(payload);
    return 0;
}
