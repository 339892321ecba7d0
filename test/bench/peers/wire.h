/* What the load generator and the upstream share: the clock, the form of the names, and the one query.
 * Names are `<kind><8 hex digits>.z<0-3>.bench.test`, 26 octets on the wire, all of one length. Kind `k` is a name of the
 * steady load, `n` one that is asked once; the digits give the address, so that neither program keeps a table.
 * Four zones, so that 20,000 names stay inside 10,000 per wildcard selector. */
#ifndef WIRE_H
#define WIRE_H
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HEADER 12
#define QUESTION_AT HEADER
#define LABEL 9
#define NAME (1 + LABEL + 3 + 6 + 5 + 1)
#define QUESTION (NAME + 4)
#define OPT 11
#define QUERY (HEADER + QUESTION + OPT)
#define MESSAGE 512
#define BATCH 64
#define SECOND 1000000000ull

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static inline void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static inline uint16_t get16(const uint8_t *m)
{
	return (uint16_t)(m[0] << 8 | m[1]);
}

static inline void put16(uint8_t *m, unsigned value)
{
	m[0] = (uint8_t)(value >> 8);
	m[1] = (uint8_t)value;
}

static inline void put32(uint8_t *m, uint32_t value)
{
	put16(m, value >> 16);
	put16(m + 2, value & 0xffff);
}

/* OPT with 1,232 octets and no options (RFC 6891 6.1.2). */
static inline void put_opt(uint8_t *m)
{
	static const uint8_t opt[OPT] = {0, 0, 41, 0x04, 0xd0};

	memcpy(m, opt, OPT);
}
#endif
