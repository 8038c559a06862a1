/* base_sha256: the published test vectors, and input in pieces. */
#include "support/test.h"

#include "base/sha256.h"

#include <string.h>

static void expect(const void *bytes, size_t n, const char *hex)
{
    mha_sha256 h;
    char out[65];
    mha_sha256_init(&h);
    mha_sha256_add(&h, bytes, n);
    mha_sha256_hex(&h, out);
    assert_string_equal(out, hex);
}

static void test_published_vectors(void **state)
{
    static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    static const char four[] = "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                               "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu";
    expect("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect(two, strlen(two), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    expect(four, strlen(four), "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
}

static void test_a_million_letters(void **state)
{
    mha_sha256 h;
    char out[65], text[1000];
    memset(text, 'a', sizeof text);
    mha_sha256_init(&h);
    for (int i = 0; i < 1000; i++)
        mha_sha256_add(&h, text, sizeof text);
    mha_sha256_hex(&h, out);
    assert_string_equal(out, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void test_pieces_give_the_whole(void **state)
{
    unsigned char text[200];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (unsigned char)(i * 7);
    for (size_t n = 0; n <= sizeof text; n++) {
        mha_sha256 h;
        char whole[65], pieces[65];
        mha_sha256_init(&h);
        mha_sha256_add(&h, text, n);
        mha_sha256_hex(&h, whole);
        for (size_t cut = 0; cut <= n; cut += 13) {
            mha_sha256_init(&h);
            mha_sha256_add(&h, text, cut);
            mha_sha256_add(&h, NULL, 0);
            mha_sha256_add(&h, text + cut, n - cut);
            mha_sha256_hex(&h, pieces);
            assert_string_equal(whole, pieces);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_vectors),
        cmocka_unit_test(test_a_million_letters),
        cmocka_unit_test(test_pieces_give_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
