/* The engine is the state of the TCP addon: an epoll set with all listeners and connections, a slot for each connection, a ring
 * of connections to serve, and the rows that one turn returns to JavaScript. The engine references the memory that JavaScript
 * shares for as long as the engine lives.
 *
 * A closed slot is never used again before the next turn. So a row that JavaScript has not read yet never names the wrong
 * connection. */
#ifndef NAMEGATE_TCP_ENGINE_H
#define NAMEGATE_TCP_ENGINE_H

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../addon.h"
#include "../watch.h"

#define SLOTS_MAX 131072
#define LISTENERS_MAX 64
#define LISTENER_BIT (UINT64_C(1) << 32)

/* Rows for JavaScript. A row has a kind, a slot and two numbers. */
enum row_kind {
	ROW_ACCEPTED = 1, /* number: listener */
	ROW_DATA = 2,     /* numbers: offset, length */
	ROW_ENDED = 3,    /* the peer sent FIN */
	ROW_TAKEN = 4,    /* the kernel accepted octets that had waited */
	ROW_CLOSED = 5,   /* number: errno or 0. The connection is broken; close it */
	ROW_FAULT = 6,    /* slot: listener, number: errno of accept. It is parked until `rearm` */
};
#define ROW_WORDS 4
#define ROWS_PER_SERVICE 4

enum listen_flags {
	LISTEN_TRANSPARENT = 1,
	LISTEN_WANT_ASKED = 2,
	LISTEN_WANT_INTERFACE = 4,
	LISTEN_REDIRECTED = 8,
};

struct link {
	int fd; /* -1: free */
	bool queued;     /* in the ring of links to serve; can stay true after the link is closed */
	bool registered; /* in the epoll set */
	bool watches_out;
	bool reading; /* false while JavaScript has paused it */
	bool readable;
	bool writable; /* an event reported room to send, not yet served */
	bool hung_up;  /* the peer sent FIN; octets before the FIN may be unread */
	bool ended;    /* JavaScript knows of the FIN */
	bool broken;   /* RST or another error */
	bool reported;     /* JavaScript knows that it is broken */
	int fault;
	char *pending; /* octets that the kernel has not accepted: [start, end) */
	size_t start, end, room;
};

struct listener {
	int fd; /* -1: free */
	uint32_t flags;
	int family;
	bool parked;
	bool off; /* accepts nothing until JavaScript switches it on */
	bool ready;
};

/* Memory of JavaScript that the engine reads and writes. */
enum column {
	COLUMN_ROWS,       /* Int32, ROW_WORDS for each row */
	COLUMN_SLAB,       /* octets that were read */
	COLUMN_ADDRESSES,  /* index: row of kind ROW_ACCEPTED; peer, then asked address, 16 octets each */
	COLUMN_PORTS,      /* same index: ports of the peer and of the asked server */
	COLUMN_INTERFACES, /* same index: interface index */
	COLUMN_FAMILIES,   /* same index: 4 or 6 */
	COLUMN_UNSENT,     /* index: slot; octets that wait for the kernel */
	COLUMN_OUT,        /* octets of frames to send */
	COLUMN_FRAMES,     /* Int32, three for each frame: offset, length, and the connection's next frame or -1 */
	COLUMNS,
};

struct engine {
	napi_env env;
	int epoll;
	struct watch *watch;
	napi_ref function; /* weak */
	uint32_t sockets;  /* open listeners and links */
	uint32_t capacity;
	struct link *links;
	uint32_t *ring; /* links to serve: `waiting` of them, from `head` on */
	uint32_t head, waiting;
	uint32_t *free_slots, *resting_slots;
	uint32_t free_count, resting_count;
	struct listener listeners[LISTENERS_MAX];
	napi_ref kept[COLUMNS];
	void *columns[COLUMNS];
	size_t sizes[COLUMNS];
	uint32_t rows, rows_max;
	size_t used; /* octets of the slab in use */
};

static struct engine *engine_of(struct call *call)
{
	void *engine = NULL;
	if (call->count < 1 || napi_get_value_external(call->env, call->values[0], &engine) != napi_ok)
		refuse(call, "an engine", 0);
	return engine;
}

static struct link *link_of(struct engine *engine, uint32_t slot)
{
	return slot < engine->capacity && engine->links[slot].fd >= 0 ? &engine->links[slot] : NULL;
}

/* Counts a new socket. The event loop watches the engine while it has a socket. */
static int socket_opened(struct engine *engine)
{
	napi_value function;
	if (!engine->watch) {
		if (napi_get_reference_value(engine->env, engine->function, &function) != napi_ok || !function)
			return -EINVAL;
		engine->watch = watch_start(engine->env, engine->epoll, function);
		if (!engine->watch)
			return -ENOMEM;
	}
	engine->sockets++;
	return 0;
}

static void socket_closed(struct engine *engine)
{
	if (--engine->sockets > 0 || !engine->watch)
		return;
	watch_stop(engine->watch);
	engine->watch = NULL;
}

static void enqueue(struct engine *engine, uint32_t slot)
{
	struct link *link = &engine->links[slot];
	if (link->queued)
		return;
	link->queued = true;
	engine->ring[(engine->head + engine->waiting++) % engine->capacity] = slot;
}

static uint32_t dequeue(struct engine *engine)
{
	uint32_t slot = engine->ring[engine->head];
	engine->head = (engine->head + 1) % engine->capacity;
	engine->waiting--;
	engine->links[slot].queued = false;
	return slot;
}

/* Returns a free slot for `fd`, or -1. */
static int64_t take_slot(struct engine *engine, int fd)
{
	if (engine->free_count == 0)
		return -1;
	uint32_t slot = engine->free_slots[--engine->free_count];
	bool queued = engine->links[slot].queued;
	engine->links[slot] = (struct link){ .fd = fd, .queued = queued, .reading = true };
	((uint32_t *)engine->columns[COLUMN_UNSENT])[slot] = 0;
	return slot;
}

static void drop_link(struct engine *engine, uint32_t slot)
{
	struct link *link = &engine->links[slot];
	/* If another process has the same connection, it would stay in the epoll set after this process closed its descriptor. */
	epoll_ctl(engine->epoll, EPOLL_CTL_DEL, link->fd, NULL);
	close(link->fd);
	free(link->pending);
	link->fd = -1;
	link->pending = NULL;
	((uint32_t *)engine->columns[COLUMN_UNSENT])[slot] = 0;
	engine->resting_slots[engine->resting_count++] = slot;
}

static void add_row(struct engine *engine, enum row_kind kind, uint32_t slot, int32_t a, int32_t b)
{
	int32_t *row = (int32_t *)engine->columns[COLUMN_ROWS] + (size_t)engine->rows++ * ROW_WORDS;
	row[0] = kind;
	row[1] = (int32_t)slot;
	row[2] = a;
	row[3] = b;
}

static void fail(struct engine *engine, uint32_t slot, int fault)
{
	struct link *link = &engine->links[slot];
	if (!link->broken)
		link->fault = fault;
	link->broken = true;
	link->readable = false;
	enqueue(engine, slot);
}

static bool may_read(const struct link *link)
{
	return link->readable && link->reading && !link->ended;
}

static int watch_link(struct engine *engine, uint32_t slot, bool out)
{
	struct link *link = &engine->links[slot];
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLRDHUP | EPOLLET | (out ? (uint32_t)EPOLLOUT : 0),
		.data.u64 = slot,
	};
	int act = link->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
	if (epoll_ctl(engine->epoll, act, link->fd, &event) < 0)
		return -errno;
	link->registered = true;
	link->watches_out = out;
	return 0;
}

#endif
