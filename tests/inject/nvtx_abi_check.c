/* Our declarations of NVTX against its own headers. Compiled by
 * check_nvtx_abi.sh (which defines HAVE_PAYLOAD if that header is there), never run: all of it is
 * static assertions. */
#include <nvtx3/nvToolsExt.h>
#ifdef HAVE_PAYLOAD
#include <nvtx3/nvToolsExtPayload.h>
#endif

#include "nvtx_abi.h"

#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #ours)
#define SAME_FIELD(ours, field, theirs, their_field)                                               \
    _Static_assert(offsetof(ours, field) == offsetof(theirs, their_field), #ours "." #field);      \
    _Static_assert(sizeof(((ours *)0)->field) == sizeof(((theirs *)0)->their_field),               \
                   #ours "." #field)
#define SAME_NUMBER(ours, theirs) _Static_assert((long)(ours) == (long)(theirs), #ours)

SAME_SIZE(struct nvtx_callbacks, NvtxExportTableCallbacks);
SAME_FIELD(struct nvtx_callbacks, struct_size, NvtxExportTableCallbacks, struct_size);
SAME_FIELD(struct nvtx_callbacks, module_table, NvtxExportTableCallbacks, GetModuleFunctionTable);
SAME_SIZE(struct nvtx_version, NvtxExportTableVersionInfo);
SAME_FIELD(struct nvtx_version, version, NvtxExportTableVersionInfo, version);
SAME_FIELD(struct nvtx_version, set_tool_version, NvtxExportTableVersionInfo,
           SetInjectionNvtxVersion);
SAME_NUMBER(NVTX_TABLE_CALLBACKS, NVTX_ETID_CALLBACKS);
SAME_NUMBER(NVTX_TABLE_VERSION, NVTX_ETID_VERSIONINFO);
SAME_NUMBER(NVTX_CORE, NVTX_CB_MODULE_CORE);
SAME_NUMBER(NVTX_CORE2, NVTX_CB_MODULE_CORE2);
SAME_NUMBER(NVTX_SLOT_COUNT, NVTX_CBID_CORE_SIZE);
SAME_NUMBER(NVTX_SLOT_COUNT, NVTX_CBID_CORE2_SIZE);

SAME_SIZE(struct nvtx_attributes, nvtxEventAttributes_t);
SAME_FIELD(struct nvtx_attributes, version, nvtxEventAttributes_t, version);
SAME_FIELD(struct nvtx_attributes, size, nvtxEventAttributes_t, size);
SAME_FIELD(struct nvtx_attributes, category, nvtxEventAttributes_t, category);
SAME_FIELD(struct nvtx_attributes, color_type, nvtxEventAttributes_t, colorType);
SAME_FIELD(struct nvtx_attributes, payload_type, nvtxEventAttributes_t, payloadType);
SAME_FIELD(struct nvtx_attributes, payload, nvtxEventAttributes_t, payload);
SAME_FIELD(struct nvtx_attributes, message_type, nvtxEventAttributes_t, messageType);
SAME_FIELD(struct nvtx_attributes, message, nvtxEventAttributes_t, message);
SAME_NUMBER(NVTX_MESSAGE_IS_ASCII, NVTX_MESSAGE_TYPE_ASCII);
SAME_NUMBER(NVTX_MESSAGE_IS_WIDE, NVTX_MESSAGE_TYPE_UNICODE);
SAME_NUMBER(NVTX_MESSAGE_IS_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED);

/* The number of each slot, by the name that we gave it. */
enum {
    THEIR_mark_ex = NVTX_CBID_CORE_MarkEx,
    THEIR_mark_a = NVTX_CBID_CORE_MarkA,
    THEIR_mark_w = NVTX_CBID_CORE_MarkW,
    THEIR_range_start_ex = NVTX_CBID_CORE_RangeStartEx,
    THEIR_range_start_a = NVTX_CBID_CORE_RangeStartA,
    THEIR_range_start_w = NVTX_CBID_CORE_RangeStartW,
    THEIR_range_end = NVTX_CBID_CORE_RangeEnd,
    THEIR_range_push_ex = NVTX_CBID_CORE_RangePushEx,
    THEIR_range_push_a = NVTX_CBID_CORE_RangePushA,
    THEIR_range_push_w = NVTX_CBID_CORE_RangePushW,
    THEIR_range_pop = NVTX_CBID_CORE_RangePop,
    THEIR_name_category_a = NVTX_CBID_CORE_NameCategoryA,
    THEIR_name_category_w = NVTX_CBID_CORE_NameCategoryW,
    THEIR_name_thread_a = NVTX_CBID_CORE_NameOsThreadA,
    THEIR_name_thread_w = NVTX_CBID_CORE_NameOsThreadW,
    THEIR_domain_mark_ex = NVTX_CBID_CORE2_DomainMarkEx,
    THEIR_domain_range_start_ex = NVTX_CBID_CORE2_DomainRangeStartEx,
    THEIR_domain_range_end = NVTX_CBID_CORE2_DomainRangeEnd,
    THEIR_domain_range_push_ex = NVTX_CBID_CORE2_DomainRangePushEx,
    THEIR_domain_range_pop = NVTX_CBID_CORE2_DomainRangePop,
    THEIR_domain_name_category_a = NVTX_CBID_CORE2_DomainNameCategoryA,
    THEIR_domain_name_category_w = NVTX_CBID_CORE2_DomainNameCategoryW,
    THEIR_domain_register_string_a = NVTX_CBID_CORE2_DomainRegisterStringA,
    THEIR_domain_register_string_w = NVTX_CBID_CORE2_DomainRegisterStringW,
    THEIR_domain_create_a = NVTX_CBID_CORE2_DomainCreateA,
    THEIR_domain_create_w = NVTX_CBID_CORE2_DomainCreateW
};
#define CHECK_SLOT(number, name, result, parameters) SAME_NUMBER(number, THEIR_##name);
NVTX_CORE_SLOTS(CHECK_SLOT)
NVTX_CORE2_SLOTS(CHECK_SLOT)

#ifdef HAVE_PAYLOAD
/* Headers differ in these names, not in the numbers. */
#ifndef NVTX_PAYLOAD_SCHEMA_ATTR_TYPE
#define NVTX_PAYLOAD_SCHEMA_ATTR_TYPE        NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE
#define NVTX_PAYLOAD_SCHEMA_ATTR_ENTRIES     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES
#define NVTX_PAYLOAD_SCHEMA_ATTR_NUM_ENTRIES NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES
#define NVTX_PAYLOAD_SCHEMA_ATTR_SCHEMA_ID   NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID
#endif
#ifndef NVTX_PAYLOAD_ENTRY_TYPE_SCHEMA_ID_STATIC_START
#define NVTX_PAYLOAD_ENTRY_TYPE_SCHEMA_ID_STATIC_START NVTX_PAYLOAD_SCHEMA_ID_STATIC_START
#endif
SAME_SIZE(struct nvtx_segment, nvtxExtModuleSegment_t);
SAME_FIELD(struct nvtx_segment, id, nvtxExtModuleSegment_t, segmentId);
SAME_FIELD(struct nvtx_segment, slot_count, nvtxExtModuleSegment_t, slotCount);
SAME_FIELD(struct nvtx_segment, slots, nvtxExtModuleSegment_t, functionSlots);
SAME_SIZE(struct nvtx_module_info, nvtxExtModuleInfo_t);
SAME_FIELD(struct nvtx_module_info, struct_size, nvtxExtModuleInfo_t, structSize);
SAME_FIELD(struct nvtx_module_info, module, nvtxExtModuleInfo_t, moduleId);
SAME_FIELD(struct nvtx_module_info, compatibility, nvtxExtModuleInfo_t, compatId);
SAME_FIELD(struct nvtx_module_info, segment_count, nvtxExtModuleInfo_t, segmentsCount);
SAME_FIELD(struct nvtx_module_info, segments, nvtxExtModuleInfo_t, segments);
SAME_NUMBER(NVTX_PAYLOAD_MODULE, NVTX_EXT_PAYLOAD_MODULEID);
_Static_assert(NVTX_PAYLOAD_OLDEST_COMPATIBILITY <= NVTX_EXT_PAYLOAD_COMPATID &&
                   NVTX_EXT_PAYLOAD_COMPATID <= NVTX_PAYLOAD_COMPATIBILITY,
               "a version of the payload extension that source_nvtx.c does not know");
SAME_SIZE(struct nvtx_payload, nvtxPayloadData_t);
SAME_FIELD(struct nvtx_payload, schema, nvtxPayloadData_t, schemaId);
SAME_FIELD(struct nvtx_payload, size, nvtxPayloadData_t, size);
SAME_FIELD(struct nvtx_payload, bytes, nvtxPayloadData_t, payload);
SAME_SIZE(struct nvtx_schema_entry, nvtxPayloadSchemaEntry_t);
SAME_FIELD(struct nvtx_schema_entry, flags, nvtxPayloadSchemaEntry_t, flags);
SAME_FIELD(struct nvtx_schema_entry, type, nvtxPayloadSchemaEntry_t, type);
SAME_FIELD(struct nvtx_schema_entry, name, nvtxPayloadSchemaEntry_t, name);
SAME_FIELD(struct nvtx_schema_entry, offset, nvtxPayloadSchemaEntry_t, offset);
SAME_FIELD(struct nvtx_schema, fields, nvtxPayloadSchemaAttr_t, fieldMask);
SAME_FIELD(struct nvtx_schema, type, nvtxPayloadSchemaAttr_t, type);
SAME_FIELD(struct nvtx_schema, entries, nvtxPayloadSchemaAttr_t, entries);
SAME_FIELD(struct nvtx_schema, entry_count, nvtxPayloadSchemaAttr_t, numEntries);
SAME_FIELD(struct nvtx_schema, id, nvtxPayloadSchemaAttr_t, schemaId);
SAME_NUMBER(NVTX_PAYLOAD_IS_EXTENDED, NVTX_PAYLOAD_TYPE_EXT);
SAME_NUMBER(NVTX_ENTRY_IS_INT, NVTX_PAYLOAD_ENTRY_TYPE_INT);
SAME_NUMBER(NVTX_ENTRY_IS_UINT64, NVTX_PAYLOAD_ENTRY_TYPE_UINT64);
SAME_NUMBER(NVTX_SCHEMA_IS_STATIC, NVTX_PAYLOAD_SCHEMA_TYPE_STATIC);
SAME_NUMBER(NVTX_STATIC_SCHEMAS, NVTX_PAYLOAD_ENTRY_TYPE_SCHEMA_ID_STATIC_START);
SAME_NUMBER(NVTX_SCHEMA_HAS_TYPE, NVTX_PAYLOAD_SCHEMA_ATTR_TYPE);
SAME_NUMBER(NVTX_SCHEMA_HAS_ENTRIES, NVTX_PAYLOAD_SCHEMA_ATTR_ENTRIES);
SAME_NUMBER(NVTX_SCHEMA_HAS_COUNT, NVTX_PAYLOAD_SCHEMA_ATTR_NUM_ENTRIES);
SAME_NUMBER(NVTX_SCHEMA_HAS_ID, NVTX_PAYLOAD_SCHEMA_ATTR_SCHEMA_ID);

enum {
    THEIR_schema_register = NVTX3EXT_CBID_nvtxPayloadSchemaRegister,
    THEIR_mark_payload = NVTX3EXT_CBID_nvtxMarkPayload,
    THEIR_range_push_payload = NVTX3EXT_CBID_nvtxRangePushPayload,
    THEIR_range_pop_payload = NVTX3EXT_CBID_nvtxRangePopPayload,
    THEIR_range_start_payload = NVTX3EXT_CBID_nvtxRangeStartPayload,
    THEIR_range_end_payload = NVTX3EXT_CBID_nvtxRangeEndPayload,
};
NVTX_PAYLOAD_SLOTS(CHECK_SLOT)
#endif
