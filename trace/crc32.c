#include "bytes.h"

/* Four bits at a time: the table fits in one cache line, and this checksum covers only headers and
 * indexes (event frames have zstd's own). */
uint32_t mt_crc32(const void *bytes, size_t length)
{
    return mt_crc32_add(0, bytes, length);
}

uint32_t mt_crc32_add(uint32_t crc, const void *bytes, size_t length)
{
    static const uint32_t table[16] = {0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC,
                                       0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
                                       0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C,
                                       0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C};
    const uint8_t *at = bytes;
    uint32_t sum = ~crc;

    while (length--) {
        sum ^= *at++;
        sum = sum >> 4 ^ table[sum & 15];
        sum = sum >> 4 ^ table[sum & 15];
    }
    return ~sum;
}
