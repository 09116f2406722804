/* SPDX-License-Identifier: Apache-2.0 */
/* need_event(): by table, and against its definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "ring/event_idx.h"

static void test_table(void **state)
{
	static const struct {
		uint16_t event, new_idx, old_idx;
		bool wanted;
	} table[] = {
		{0, 1, 0, true},
		{0, 0, 0, false}, /* nothing moved */
		{5, 5, 5, false},
		{1, 1, 0, false}, /* not yet: wants to know of the one after it */
		{1, 2, 0, true},
		{1, 2, 1, true},
		{1, 3, 2, false}, /* passed before */
		{65535, 0, 65535, true},
		{65535, 5, 65530, true},
		{0, 5, 65530, true},
		{4, 5, 65530, true},
		{5, 5, 65530, false},
		{65529, 5, 65530, false},
		{65530, 5, 65530, true},
		{32767, 32768, 0, true}, /* the largest ring in one step */
		{32768, 32768, 0, false},
		{100, 99, 100, true}, /* 65535 steps: all but one value are passed */
		{99, 99, 100, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		assert_int_equal(need_event(table[i].event, table[i].new_idx, table[i].old_idx),
				 table[i].wanted);
}

/* Walks from old to new and looks whether it steps on event. */
static void test_definition(void **state)
{
	static const uint16_t bases[] = {0, 1, 127, 32767, 32768, 65400, 65530, 65535};

	for (size_t b = 0; b < ARRAY_SIZE(bases); b++) {
		for (uint16_t steps = 0; steps < 40; steps++) {
			uint16_t old_idx = bases[b], new_idx = (uint16_t)(old_idx + steps);

			for (int at = -50; at < 100; at++) {
				uint16_t event = (uint16_t)(old_idx + at);
				bool stepped = at >= 0 && at < steps;

				assert_int_equal(need_event(event, new_idx, old_idx), stepped);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_definition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
