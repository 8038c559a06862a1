/* test.h: the headers that cmocka wants, in the order that it wants them. */
#ifndef MHA_TESTS_SUPPORT_TEST_H
#define MHA_TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
