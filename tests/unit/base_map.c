/* base_map: the hash map against what was put into it. */
#include "support/test.h"

#include "base/map.h"

#include <stdio.h>
#include <string.h>

#define MANY      100000
#define KEY_BYTES 24

static char keys[MANY][KEY_BYTES];

static void keys_make(void)
{
    for (int i = 0; i < MANY; i++)
        snprintf(keys[i], KEY_BYTES, "%s.%d", i % 2 ? "layers" : "l", i);
}

static void test_many_keys(void **state)
{
    mha_map m;
    uint64_t value = 0;
    bool replaced = true;
    keys_make();
    mha_map_init(&m);
    for (uint64_t i = 0; i < MANY; i++) {
        assert_int_equal(mha_map_set(&m, keys[i], strlen(keys[i]), i * i, &replaced, NULL), MHA_OK);
        assert_false(replaced);
    }
    assert_int_equal(m.count, MANY);
    for (uint64_t i = 0; i < MANY; i++) {
        assert_true(mha_map_get(&m, keys[i], strlen(keys[i]), &value));
        assert_int_equal(value, i * i);
        /* A prefix of a key is another key. */
        assert_false(mha_map_get(&m, keys[i], 1, NULL));
    }
    for (uint64_t i = 0; i < MANY; i += 7) {
        assert_int_equal(mha_map_set(&m, keys[i], strlen(keys[i]), i, &replaced, NULL), MHA_OK);
        assert_true(replaced);
    }
    assert_int_equal(m.count, MANY);
    for (uint64_t i = 0; i < MANY; i++) {
        assert_true(mha_map_get(&m, keys[i], strlen(keys[i]), &value));
        assert_int_equal(value, i % 7 == 0 ? i : i * i);
    }
    mha_map_release(&m);
    assert_false(mha_map_get(&m, keys[0], strlen(keys[0]), NULL));
}

static void test_keys_are_byte_strings(void **state)
{
    mha_map m;
    uint64_t value = 0;
    mha_map_init(&m);
    assert_false(mha_map_get(&m, "a", 1, &value));
    assert_int_equal(mha_map_set(&m, "a\0b", 3, 1, NULL, NULL), MHA_OK);
    assert_int_equal(mha_map_set(&m, "a\0c", 3, 2, NULL, NULL), MHA_OK);
    assert_int_equal(mha_map_set(&m, "a", 1, 3, NULL, NULL), MHA_OK);
    assert_int_equal(mha_map_set(&m, NULL, 0, 4, NULL, NULL), MHA_OK);
    assert_int_equal(m.count, 4);
    assert_true(mha_map_get(&m, "a\0c", 3, &value));
    assert_int_equal(value, 2);
    assert_true(mha_map_get(&m, "a", 1, &value));
    assert_int_equal(value, 3);
    assert_true(mha_map_get(&m, "", 0, &value));
    assert_int_equal(value, 4);
    mha_map_release(&m);
}

static void test_lengths_around_a_word(void **state)
{
    static const char text[] = "abcdefghijklmnopqrstuvwxyz";
    mha_map m;
    uint64_t value = 0;
    mha_map_init(&m);
    for (size_t n = 0; n <= 26; n++)
        assert_int_equal(mha_map_set(&m, text, n, n, NULL, NULL), MHA_OK);
    for (size_t n = 0; n <= 26; n++) {
        assert_true(mha_map_get(&m, text, n, &value));
        assert_int_equal(value, n);
    }
    mha_map_release(&m);
}

static void test_reserve(void **state)
{
    mha_map m;
    mha_map_init(&m);
    assert_int_equal(mha_map_reserve(&m, 1000, NULL), MHA_OK);
    size_t capacity = m.capacity;
    keys_make();
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(mha_map_set(&m, keys[i], strlen(keys[i]), i, NULL, NULL), MHA_OK);
    assert_int_equal(m.capacity, capacity);
    assert_int_equal(mha_map_reserve(&m, SIZE_MAX / 2, NULL), MHA_ERR_NOMEM);
    assert_int_equal(m.count, 1000);
    mha_map_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_keys_are_byte_strings),
        cmocka_unit_test(test_lengths_around_a_word),
        cmocka_unit_test(test_reserve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
