/* The engine is the state of the UDP addon: an epoll set with all its sockets, the memory that JavaScript shares with it, and the
 * rows of one flush. Pointers into typed arrays are read once. They stay valid because the engine references the arrays for as
 * long as it lives. The engine allocates memory per datagram only for what a full socket keeps back.
 *
 * A handle is a socket's place in the table and a generation, which changes with each use of the place. So a stale handle is
 * recognized. Every index and offset from JavaScript is compared with a bound before it is used. */
#ifndef NAMEGATE_UDP_ENGINE_H
#define NAMEGATE_UDP_ENGINE_H

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../addon.h"
#include "../watch.h"

#define SOCKETS_MAX 65536
#define AREAS_MAX 8
#define CLIENTS_MAX 4
/* Most datagrams in one system call. */
#define RUN_MAX 256
#define ROWS_MAX 1024
#define CONTROL_OCTETS 96
/* Most datagrams that one socket keeps back while the kernel's buffer is full. */
#define KEPT_MAX 1024
#define REPORTS_MAX 512
#define REFERENCES_MAX 64
#define NONE UINT32_MAX
/* Hash buckets, in which a flush groups rows that can leave as one piece. A power of two. */
#define BUCKETS 512

enum udp_flags {
	UDP_LISTENER = 1,       /* reads into the batch of queries. Any other socket is connected and reads into the answers */
	UDP_TRANSPARENT = 2,
	UDP_REUSE_ADDRESS = 4,
	UDP_WANT_ASKED = 8,     /* report the asked address and the interface, from the packet information */
	UDP_WANT_ORIGINAL = 16, /* report the address and port before TPROXY */
	UDP_SEND_ONLY = 32,     /* receives nothing */
	UDP_RAW = 64,           /* sends whole packets with headers made here */
};

struct kept {
	struct kept *next;
	struct sockaddr_in6 name;
	uint32_t name_length, control_length, length, segments;
	unsigned char control[CONTROL_OCTETS];
	unsigned char octets[];
};

struct udp_socket {
	int fd; /* -1: free */
	uint16_t generation, port;
	uint8_t family;
	bool ready, watches_out;
	bool quiet; /* not read: datagrams wait in the kernel */
	bool apart; /* always sends datagrams one by one, never in one piece */
	uint32_t flags, channel;
	/* The first and last row of this socket in the current flush. */
	uint32_t first_row, last_row;
	struct kept *first_kept, *last_kept;
	uint32_t kept;
	uint64_t received, sent, ignored, oversized, dropped, errors;
};

/* The columns of src/proxy/messages/client-columns.ts. */
struct clients {
	uint32_t rows;
	uint8_t *families, *addresses, *asked_addresses, *transports;
	uint16_t *ports, *asked_ports;
	uint32_t *channels, *interfaces;
};

struct area {
	uint8_t *octets;
	size_t size;
};

/* A list of sockets that have datagrams to read. */
struct ready {
	uint32_t list[SOCKETS_MAX];
	uint32_t from, to;
};

struct engine {
	napi_env env;
	struct watch *watch;
	int epoll;
	struct udp_socket *sockets;
	uint32_t used; /* places from here on were never used */
	uint32_t open_sockets;
	struct ready queries, answers;
	struct area areas[AREAS_MAX];
	struct clients clients[CLIENTS_MAX];
	/* A batch of queries is area 0, clients 0 and these columns. */
	uint32_t *query_offsets, *query_lengths;
	uint8_t *query_oversized;
	/* Received answers are area 1 and these columns. */
	uint32_t *answer_handles, *answer_offsets, *answer_lengths, answer_room;
	/* Rows to send, and reports about sockets. */
	uint32_t *rows, row_room;
	int32_t *reports;
	uint32_t report_count;
	/* References to all shared arrays. */
	napi_ref references[REFERENCES_MAX];
	uint32_t reference_count;
	uint32_t next_row[ROWS_MAX];
	uint32_t fragment_id;
	/* Scratch memory of one system call. */
	struct mmsghdr messages[RUN_MAX];
	struct iovec iovecs[RUN_MAX];
	struct sockaddr_in6 names[RUN_MAX];
	unsigned char controls[RUN_MAX][CONTROL_OCTETS] __attribute__((aligned(8)));
	uint32_t segments[RUN_MAX]; /* how many datagrams each message has */
	uint32_t buckets[BUCKETS];
	unsigned char buffer[1 << 18];
};

static inline uint32_t handle_of(struct engine *engine, struct udp_socket *socket)
{
	return (uint32_t)(socket - engine->sockets) | (uint32_t)socket->generation << 16;
}

/* The open socket of a handle, or NULL. */
static inline struct udp_socket *socket_of(struct engine *engine, uint32_t handle)
{
	uint32_t place = handle & 0xffff;
	struct udp_socket *socket = &engine->sockets[place];
	if (place >= engine->used || socket->fd < 0 || socket->generation != handle >> 16)
		return NULL;
	return socket;
}

/* Reports (handle, errno, datagrams dropped) to JavaScript. If the reports are full, only the socket's counter changes. */
static inline void report(struct engine *engine, struct udp_socket *socket, int error, uint32_t dropped)
{
	uint32_t handle = handle_of(engine, socket);
	uint32_t at = engine->report_count;
	socket->dropped += dropped;
	if (at > 0 && (uint32_t)engine->reports[at * 3 - 3] == handle && engine->reports[at * 3 - 2] == error) {
		engine->reports[at * 3 - 1] += (int32_t)dropped;
		return;
	}
	if (at == REPORTS_MAX || !engine->reports)
		return;
	engine->reports[at * 3] = (int32_t)handle;
	engine->reports[at * 3 + 1] = error;
	engine->reports[at * 3 + 2] = (int32_t)dropped;
	engine->report_count++;
}

static inline void watch_socket(struct engine *engine, struct udp_socket *socket, int operation)
{
	bool reads = !(socket->flags & UDP_SEND_ONLY) && !socket->quiet;
	struct epoll_event event = {
		.events = (reads ? EPOLLIN : 0) | (socket->watches_out ? EPOLLOUT : 0),
		.data.u32 = handle_of(engine, socket),
	};
	epoll_ctl(engine->epoll, operation, socket->fd, &event);
}

static inline void make_ready(struct ready *ready, struct udp_socket *socket, uint32_t place)
{
	if (socket->ready || ready->to - ready->from == SOCKETS_MAX)
		return;
	socket->ready = true;
	ready->list[ready->to++ % SOCKETS_MAX] = place;
}

static inline struct sockaddr_in6 make_address(uint8_t family, const uint8_t *octets, uint16_t port, uint32_t scope)
{
	struct sockaddr_in6 result = {};
	if (family == 4) {
		struct sockaddr_in *address = (struct sockaddr_in *)&result;
		address->sin_family = AF_INET;
		address->sin_port = htons(port);
		memcpy(&address->sin_addr, octets, 4);
		return result;
	}
	result.sin6_family = AF_INET6;
	result.sin6_port = htons(port);
	memcpy(&result.sin6_addr, octets, 16);
	if (IN6_IS_ADDR_LINKLOCAL(&result.sin6_addr))
		result.sin6_scope_id = scope;
	return result;
}

static inline socklen_t address_length(uint8_t family)
{
	return family == 4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

#endif
