/* The UDP addon with a fault planted in it: its table has places for two sockets, and it uses more. Only the sanitizer
 * build makes it (scripts/build-native.sh), to show that such a fault is reported. */
#define _GNU_SOURCE
#include <stdlib.h>

static void *calloc_short(size_t count, size_t size)
{
	return calloc(count > 1 ? 2 : 1, size);
}

#define calloc calloc_short
#include "../../src/native/udp/udp.c"
