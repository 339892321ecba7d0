/* Shared by the load generator and the upstream: the clock, the form of the names, and the one query.
 * Names are `<kind><8 hex digits>.z<0-3>.bench.test`, 26 octets on the wire, all of one length. Kind `k` is a name of the
 * steady load, `n` one that is asked once; the digits give the address, so that neither program keeps a table.
 * Four zones, so that 20,000 names stay inside 10,000 per wildcard selector. */
#ifndef WIRE_H
#define WIRE_H
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#define HEADER 12
#define QUESTION_AT HEADER
#define LABEL 9
#define NAME (1 + LABEL + 3 + 6 + 5 + 1)
#define QUESTION (NAME + 4)
#define OPT 11
#define QUERY (HEADER + QUESTION + OPT)
#define MESSAGE 512
/* At most the number of segments of one packet (UDP_MAX_SEGMENTS of the kernel's udp.h: 64, later 128). */
#define BATCH 64
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef SOL_UDP
#define SOL_UDP 17
#endif
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

/* Sends `count` datagrams of one size, a part each, to one peer, as one packet that the kernel splits (UDP_SEGMENT, udp(7)), so
 * that generator and upstream do not limit a fast proxy. Returns how many left: all or none. */
static inline int send_train(int fd, struct sockaddr_in *to, struct iovec *parts, int count)
{
	char control[CMSG_SPACE(sizeof(uint16_t))] = {0};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count};
	uint16_t segment = (uint16_t)parts[0].iov_len;
	struct cmsghdr *c;
	ssize_t sent;

	if (count > 1) {
		message.msg_control = control;
		message.msg_controllen = sizeof control;
		c = CMSG_FIRSTHDR(&message);
		c->cmsg_level = SOL_UDP;
		c->cmsg_type = UDP_SEGMENT;
		c->cmsg_len = CMSG_LEN(sizeof segment);
		memcpy(CMSG_DATA(c), &segment, sizeof segment);
	}
	if (to != NULL) {
		message.msg_name = to;
		message.msg_namelen = sizeof *to;
	}
	do
		sent = sendmsg(fd, &message, 0);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? 0 : count;
}

/* OPT with 1,232 octets and no options (RFC 6891 6.1.2). */
static inline void put_opt(uint8_t *m)
{
	static const uint8_t opt[OPT] = {0, 0, 41, 0x04, 0xd0};

	memcpy(m, opt, OPT);
}
#endif
