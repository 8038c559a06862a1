/* map.h: a hash map from byte strings to 64-bit values: names to indices, pieces to ids.
 * Seeded open addressing: hostile keys cannot be chosen to collide. */
#ifndef MHA_BASE_MAP_H
#define MHA_BASE_MAP_H

#include "mha/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mha_map {
    struct mha_map_slot *slots;
    size_t count, capacity; /* capacity is 0 or a power of two */
    uint64_t seed;
} mha_map;

/* Keys are borrowed: they must outlive the map. */
void mha_map_init(mha_map *m);
void mha_map_release(mha_map *m);
mha_status mha_map_reserve(mha_map *m, size_t count, mha_err *err);

/* Adds or replaces. *replaced (may be NULL) tells whether the key was there. */
mha_status mha_map_set(mha_map *m, const char *key, size_t len, uint64_t value, bool *replaced,
                       mha_err *err);
/* true and *value (may be NULL) when the key is there. */
bool mha_map_get(const mha_map *m, const char *key, size_t len, uint64_t *value);

#endif
