/* map.c: open addressing with linear probing over a table of a power of two slots, at most two
 * thirds full. Hashes are SipHash-1-3 (Aumasson and Bernstein 2012) under a seed drawn for each
 * map, so a hostile vocabulary cannot make look-ups quadratic. It may not let the order of its
 * slots out: that depends on the seed. */
#include "base/map.h"

#include "base/fail.h"
#include "base/mem.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIRST_CAPACITY 16

struct mha_map_slot {
    const char *key; /* NULL marks a free slot */
    size_t len;
    uint64_t hash, value;
};

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotl(v[1], 13) ^ v[0];
    v[0] = rotl(v[0], 32);
    v[2] += v[3];
    v[3] = rotl(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotl(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotl(v[1], 17) ^ v[2];
    v[2] = rotl(v[2], 32);
}

/* The 128-bit key is the seed and its complement. Words are read in host order: the hash never
 * leaves the process. */
static uint64_t hash_bytes(uint64_t seed, const char *key, size_t len)
{
    uint64_t k0 = seed, k1 = ~seed;
    uint64_t v[4] = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u,
                     k1 ^ 0x7465646279746573u};
    size_t whole = len & ~(size_t)7;
    uint64_t word;
    for (size_t i = 0; i < whole; i += 8) {
        memcpy(&word, key + i, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    word = 0;
    if (len > whole)
        memcpy(&word, key + whole, len - whole);
    word ^= (uint64_t)len << 56;
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void mha_map_init(mha_map *m)
{
    *m = (mha_map){0};
    if (getentropy(&m->seed, sizeof m->seed) != 0) {
        struct timespec now = {0};
        clock_gettime(CLOCK_MONOTONIC, &now);
        m->seed = (uint64_t)(uintptr_t)m * 0x9e3779b97f4a7c15u ^ (uint64_t)now.tv_nsec << 20 ^
                  (uint64_t)now.tv_sec;
    }
}

void mha_map_release(mha_map *m)
{
    mha_free(m->slots);
    m->slots = NULL;
    m->count = m->capacity = 0;
}

/* The slot of the key, or the free slot where it belongs. The table has a free slot. */
static struct mha_map_slot *slot_find(const mha_map *m, const char *key, size_t len, uint64_t hash)
{
    size_t mask = m->capacity - 1;
    for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
        struct mha_map_slot *s = &m->slots[i];
        if (!s->key)
            return s;
        if (s->hash == hash && s->len == len && (len == 0 || memcmp(s->key, key, len) == 0))
            return s;
    }
}

static mha_status map_resize(mha_map *m, size_t capacity, mha_err *err)
{
    void *slots = NULL;
    MHA_TRY(mha_alloc(&slots, capacity, sizeof *m->slots, err));
    mha_map old = *m;
    m->slots = slots;
    m->capacity = capacity;
    for (size_t i = 0; i < old.capacity; i++) {
        const struct mha_map_slot *s = &old.slots[i];
        if (s->key)
            *slot_find(m, s->key, s->len, s->hash) = *s;
    }
    mha_free(old.slots);
    return MHA_OK;
}

mha_status mha_map_reserve(mha_map *m, size_t count, mha_err *err)
{
    size_t capacity = m->capacity ? m->capacity : FIRST_CAPACITY;
    if (count > SIZE_MAX / 4 / sizeof *m->slots)
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory: a map of %zu names", count);
    while (count > capacity / 3 * 2)
        capacity *= 2;
    if (capacity == m->capacity)
        return MHA_OK;
    return map_resize(m, capacity, err);
}

mha_status mha_map_set(mha_map *m, const char *key, size_t len, uint64_t value, bool *replaced,
                       mha_err *err)
{
    MHA_TRY(mha_map_reserve(m, m->count + 1, err));
    uint64_t hash = hash_bytes(m->seed, key, len);
    struct mha_map_slot *s = slot_find(m, key, len, hash);
    bool there = s->key != NULL;
    if (!there) {
        /* An empty key may come as NULL, which marks free slots. */
        *s = (struct mha_map_slot){.key = key ? key : "", .len = len, .hash = hash};
        m->count++;
    }
    s->value = value;
    if (replaced)
        *replaced = there;
    return MHA_OK;
}

bool mha_map_get(const mha_map *m, const char *key, size_t len, uint64_t *value)
{
    if (m->count == 0)
        return false;
    const struct mha_map_slot *s = slot_find(m, key, len, hash_bytes(m->seed, key, len));
    if (!s->key)
        return false;
    if (value)
        *value = s->value;
    return true;
}
