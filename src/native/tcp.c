/* TCP for many connections at little cost: one epoll set with all listeners and connections, watched by the
 * event loop; one call a turn accepts, reads and writes what waited, and hands rows to JavaScript. Octets come
 * into one slab and leave from another. JavaScript decides everything; C closes nothing by itself.
 *
 * Always: a slot that was closed is not used again before the next turn, so rows still to be read by
 * JavaScript never speak of another connection. Failures are negative errno values. No call waits. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "addon.h"
#include "watch.h"

#define SLOTS_MAX 131072
#define LISTENERS_MAX 64
#define EVENTS_MAX 512
/* Connections taken in one turn. */
#define ACCEPT_MAX 256
/* Octets read from one connection in one turn, so that none starves the others. */
#define READ_MAX 16384
#define IOV_MAX_USED 64
/* Octets of one connection that wait for the kernel; JavaScript's own bounds are lower. */
#define PENDING_MAX (16u << 20)
#define LISTENER_BIT (UINT64_C(1) << 32)

/* Not in glibc's headers. */
#define ORIGINAL_DESTINATION 80
#define IPV6_OLD_PKTOPTIONS 6

/* Rows for JavaScript: kind, slot, and two numbers. */
enum row_kind {
	ROW_ACCEPTED = 1, /* listener */
	ROW_DATA = 2,     /* offset, length */
	ROW_ENDED = 3,    /* the peer sent FIN */
	ROW_TAKEN = 4,    /* the kernel took octets that waited */
	ROW_CLOSED = 5,   /* errno or 0: the connection is broken; close it */
	ROW_FAULT = 6,    /* slot = listener; errno of accept: it is parked until `rearm` */
};
#define ROW_WORDS 4
#define ROWS_PER_SERVICE 4

enum listen_flags {
	LISTEN_TRANSPARENT = 1,
	LISTEN_WANT_ASKED = 2,
	LISTEN_WANT_INTERFACE = 4,
	LISTEN_REDIRECTED = 8,
	LISTEN_REUSE_PORT = 16,
};

struct link {
	int fd; /* -1: free */
	bool queued;     /* in the ring of links to serve; outlives the link */
	bool registered; /* in the epoll set */
	bool watches_out;
	bool reading; /* not paused */
	bool readable;
	bool writable; /* the kernel said so since the last look */
	bool hung_up;  /* FIN has come, perhaps behind octets */
	bool ended;    /* JavaScript knows of the FIN */
	bool broken;   /* RST, or an error */
	bool told;     /* JavaScript knows that it is broken */
	int fault;
	char *pending; /* what the kernel did not take: [start, end) */
	size_t start, end, room;
};

struct listener {
	int fd; /* -1: free */
	uint32_t flags;
	int family;
	bool parked;
	bool off; /* accepts nothing until JavaScript says so */
	bool ready;
};

/* Memory of JavaScript that the engine reads and writes. */
enum column {
	COLUMN_ROWS,       /* Int32, ROW_WORDS a row */
	COLUMN_SLAB,       /* what was read */
	COLUMN_ADDRESSES,  /* of ROW_ACCEPTED, by row: peer, then asked address, 16 octets each */
	COLUMN_PORTS,      /* likewise: peer, asked */
	COLUMN_INTERFACES, /* likewise: index */
	COLUMN_FAMILIES,   /* likewise: 4 or 6 */
	COLUMN_UNSENT,     /* by slot: octets that wait */
	COLUMN_OUT,        /* frames to send */
	COLUMN_FRAMES,     /* Int32, three a frame: offset, length, next frame of that connection or -1 */
	COLUMNS,
};

struct engine {
	napi_env env;
	int epoll;
	struct watch *watch;
	napi_ref function; /* weak */
	uint32_t sockets;  /* listeners and links that are open */
	uint32_t capacity;
	struct link *links;
	uint32_t *ring; /* links to serve: `waiting` from `head` */
	uint32_t head, waiting;
	uint32_t *free_slots, *resting_slots;
	uint32_t free_count, resting_count;
	struct listener listeners[LISTENERS_MAX];
	napi_ref kept[COLUMNS];
	void *columns[COLUMNS];
	size_t sizes[COLUMNS];
	uint32_t rows, rows_max;
	size_t used; /* octets of the slab */
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

/* Counts a socket in; the event loop watches while there is one. */
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

/* -1 when there is none. */
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
	/* Another process may have the same connection, and then it stays in the set after we have closed ours. */
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

/* ---- writing ---- */

/* Keeps what the kernel did not take. */
static int keep(struct link *link, const void *octets, size_t length)
{
	size_t waits = link->end - link->start;
	if (waits + length > PENDING_MAX)
		return -ENOBUFS;
	if (link->room - link->end < length && link->start > 0) {
		memmove(link->pending, link->pending + link->start, waits);
		link->start = 0;
		link->end = waits;
	}
	if (link->room - link->end < length) {
		size_t room = link->room ? link->room : 4096;
		while (room < link->end + length)
			room *= 2;
		char *grown = realloc(link->pending, room);
		if (!grown)
			return -ENOMEM;
		link->pending = grown;
		link->room = room;
	}
	memcpy(link->pending + link->end, octets, length);
	link->end += length;
	return 0;
}

/* Octets sent, 0 when the kernel takes none now, -errno. */
static ssize_t send_some(int fd, struct iovec *parts, int count)
{
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = (size_t)count };
	for (;;) {
		ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent >= 0)
			return sent;
		if (errno == EINTR)
			continue;
		return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
	}
}

/* Offers what waits once more. */
static void send_pending(struct engine *engine, uint32_t slot)
{
	struct link *link = &engine->links[slot];
	bool progress = false;
	while (link->end > link->start) {
		struct iovec part = { link->pending + link->start, link->end - link->start };
		ssize_t sent = send_some(link->fd, &part, 1);
		if (sent < 0) {
			fail(engine, slot, (int)-sent);
			break;
		}
		if (sent == 0)
			break;
		link->start += (size_t)sent;
		progress = true;
	}
	if (link->end == link->start) {
		free(link->pending);
		link->pending = NULL;
		link->start = link->end = link->room = 0;
	}
	((uint32_t *)engine->columns[COLUMN_UNSENT])[slot] = (uint32_t)(link->end - link->start);
	if (progress)
		add_row(engine, ROW_TAKEN, slot, 0, 0);
}

/* The next parts of a chain of frames, neighbours joined; -1 when a frame lies outside `out`, or the chain is longer than
 * `left`, that is, a loop. */
static int next_parts(struct engine *engine, int32_t *frame, struct iovec *parts, size_t *total, size_t *left)
{
	const int32_t *frames = engine->columns[COLUMN_FRAMES];
	size_t count = engine->sizes[COLUMN_FRAMES] / 12, size = engine->sizes[COLUMN_OUT];
	char *out = engine->columns[COLUMN_OUT];
	int used = 0;
	*total = 0;
	while (*frame >= 0) {
		if ((size_t)*frame >= count || *left == 0)
			return -1;
		uint32_t offset = (uint32_t)frames[*frame * 3], length = (uint32_t)frames[*frame * 3 + 1];
		if (offset > size || length > size - offset)
			return -1;
		struct iovec *last = used ? &parts[used - 1] : NULL;
		if (last && (char *)last->iov_base + last->iov_len == out + offset)
			last->iov_len += length;
		else if (used < IOV_MAX_USED)
			parts[used++] = (struct iovec){ out + offset, length };
		else
			break;
		*total += length;
		(*left)--;
		*frame = frames[*frame * 3 + 2];
	}
	return used;
}

/* Keeps what of the parts lies behind the first `sent` octets. */
static int keep_rest(struct link *link, struct iovec *parts, int used, size_t sent)
{
	for (int i = 0; i < used; i++) {
		size_t skip = sent < parts[i].iov_len ? sent : parts[i].iov_len;
		sent -= skip;
		if (skip == parts[i].iov_len)
			continue;
		int result = keep(link, (char *)parts[i].iov_base + skip, parts[i].iov_len - skip);
		if (result < 0)
			return result;
	}
	return 0;
}

static int send_chain(struct engine *engine, uint32_t slot, int32_t frame)
{
	struct link *link = &engine->links[slot];
	struct iovec parts[IOV_MAX_USED];
	size_t total;
	size_t left = engine->sizes[COLUMN_FRAMES] / 12;
	while (frame >= 0) {
		int used = next_parts(engine, &frame, parts, &total, &left);
		if (used < 0)
			return -EINVAL;
		ssize_t sent = link->end > link->start ? 0 : send_some(link->fd, parts, used);
		if (sent < 0)
			return (int)sent;
		if ((size_t)sent < total) {
			int result = keep_rest(link, parts, used, (size_t)sent);
			if (result < 0)
				return result;
		}
	}
	if (link->end > link->start && !link->watches_out)
		return watch_link(engine, slot, true);
	return 0;
}

/* send(engine, slot, frame) -> 0, -errno: sends a chain of frames, keeping what the kernel does not take. After an
 * error the next turn has a row for it. */
static napi_value send_frames(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	uint32_t slot = unsigned_integer(&call, 1);
	int32_t frame = integer(&call, 2);
	if (call.bad)
		return NULL;
	struct link *link = link_of(engine, slot);
	if (!link)
		return number(env, -EBADF);
	int result = link->broken ? -EPIPE : send_chain(engine, slot, frame);
	if (result < 0)
		fail(engine, slot, -result);
	((uint32_t *)engine->columns[COLUMN_UNSENT])[slot] = (uint32_t)(link->end - link->start);
	return number(env, result);
}

/* ---- accepting ---- */

static void put_address(struct engine *engine, int which, const struct sockaddr_storage *from)
{
	uint8_t *octets = (uint8_t *)engine->columns[COLUMN_ADDRESSES] + ((size_t)engine->rows * 2 + which) * 16;
	uint16_t *ports = (uint16_t *)engine->columns[COLUMN_PORTS] + (size_t)engine->rows * 2;
	memset(octets, 0, 16);
	ports[which] = 0;
	if (!from)
		return;
	if (from->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)from;
		memcpy(octets, &in->sin_addr, 4);
		ports[which] = ntohs(in->sin_port);
	} else {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;
		memcpy(octets, &in6->sin6_addr, 16);
		ports[which] = ntohs(in6->sin6_port);
	}
}

/* The server that the client connected to; false when the kernel doesn't say. */
static bool asked_address(const struct listener *listener, int fd, struct sockaddr_storage *address)
{
	socklen_t length = sizeof(*address);
	if (listener->flags & LISTEN_REDIRECTED) {
		int level = listener->family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
		return getsockopt(fd, level, ORIGINAL_DESTINATION, address, &length) == 0;
	}
	return getsockname(fd, (struct sockaddr *)address, &length) == 0;
}

/* Where the connection came in: the kernel keeps the interface of the handshake and gives it as a control message
 * of the connection (net/ipv4/tcp_ipv4.c: mc_index; net/ipv6/tcp_ipv6.c: pktoptions, mcast_oif). 0: unknown. */
static uint32_t arrival_interface(const struct listener *listener, int fd)
{
	char control[512] __attribute__((aligned(8)));
	socklen_t length = sizeof(control);
	bool ipv4 = listener->family == AF_INET;
	int level = ipv4 ? IPPROTO_IP : IPPROTO_IPV6;
	if (getsockopt(fd, level, ipv4 ? IP_PKTOPTIONS : IPV6_OLD_PKTOPTIONS, control, &length) < 0)
		return 0;
	struct msghdr message = { .msg_control = control, .msg_controllen = length };
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
		if (ipv4 && c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo found;
			memcpy(&found, CMSG_DATA(c), sizeof(found));
			return (uint32_t)found.ipi_ifindex;
		}
		if (!ipv4 && c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo found;
			memcpy(&found, CMSG_DATA(c), sizeof(found));
			return (uint32_t)found.ipi6_ifindex;
		}
	}
	return 0;
}

static void add_accepted(struct engine *engine, uint32_t index, int fd, uint32_t slot,
			 const struct sockaddr_storage *peer)
{
	const struct listener *listener = &engine->listeners[index];
	struct sockaddr_storage asked;
	bool known = (listener->flags & LISTEN_WANT_ASKED) && asked_address(listener, fd, &asked);
	put_address(engine, 0, peer);
	put_address(engine, 1, known ? &asked : NULL);
	((uint8_t *)engine->columns[COLUMN_FAMILIES])[engine->rows] = listener->family == AF_INET ? 4 : 6;
	((uint32_t *)engine->columns[COLUMN_INTERFACES])[engine->rows] =
		listener->flags & LISTEN_WANT_INTERFACE ? arrival_interface(listener, fd) : 0;
	add_row(engine, ROW_ACCEPTED, slot, (int32_t)index, 0);
}

/* No descriptor, no memory: the listener is left alone until `rearm`, else it would be reported every turn. */
static void park(struct engine *engine, uint32_t index, int fault)
{
	struct listener *listener = &engine->listeners[index];
	struct epoll_event event = { .events = 0, .data.u64 = LISTENER_BIT | index };
	epoll_ctl(engine->epoll, EPOLL_CTL_MOD, listener->fd, &event);
	listener->parked = true;
	add_row(engine, ROW_FAULT, index, fault, 0);
}

static bool is_shortage(int fault)
{
	return fault == EMFILE || fault == ENFILE || fault == ENOBUFS || fault == ENOMEM;
}

/* Takes connections of one listener, at most `most`; returns how many tries that took. Octets of a new one are often
 * there already, so it is served in this turn, before the epoll set knows it. */
static uint32_t accept_from(struct engine *engine, uint32_t index, uint32_t most)
{
	struct listener *listener = &engine->listeners[index];
	uint32_t tries = 0;
	while (tries++ < most && engine->rows < engine->rows_max && engine->free_count > 0) {
		struct sockaddr_storage peer;
		socklen_t length = sizeof(peer);
		int fd = accept4(listener->fd, (struct sockaddr *)&peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			if (errno == EAGAIN || errno == EWOULDBLOCK)
				break;
			if (is_shortage(errno)) {
				park(engine, index, errno);
				break;
			}
			/* An error of that connection alone (accept(2)): the next may be sound. */
			continue;
		}
		engine->sockets++;
		uint32_t slot = (uint32_t)take_slot(engine, fd);
		engine->links[slot].readable = true;
		add_accepted(engine, index, fd, slot, &peer);
		enqueue(engine, slot);
	}
	return tries;
}

/* ---- a turn ---- */

static void read_link(struct engine *engine, uint32_t slot)
{
	struct link *link = &engine->links[slot];
	ssize_t got;
	do
		got = recv(link->fd, (char *)engine->columns[COLUMN_SLAB] + engine->used, READ_MAX, MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	if (got < 0) {
		link->readable = false;
		if (errno != EAGAIN && errno != EWOULDBLOCK)
			fail(engine, slot, errno);
		return;
	}
	if (got > 0) {
		add_row(engine, ROW_DATA, slot, (int32_t)engine->used, (int32_t)got);
		engine->used += (size_t)got;
		if (got == READ_MAX)
			return;
	}
	link->readable = false;
	/* A short read has emptied the queue, so a FIN that was there before it is next. */
	if (got == 0 || link->hung_up) {
		link->ended = true;
		add_row(engine, ROW_ENDED, slot, 0, 0);
	}
}

static bool may_read(const struct link *link)
{
	return link->readable && link->reading && !link->ended;
}

static void serve(struct engine *engine, uint32_t slot)
{
	struct link *link = &engine->links[slot];
	if (link->writable) {
		link->writable = false;
		if (!link->broken)
			send_pending(engine, slot);
	}
	if (may_read(link))
		read_link(engine, slot);
	if (!link->registered && !link->broken) {
		int result = watch_link(engine, slot, false);
		if (result < 0)
			fail(engine, slot, -result);
	}
	if (link->broken && !may_read(link) && !link->told) {
		link->told = true;
		add_row(engine, ROW_CLOSED, slot, link->fault, 0);
	}
	if (may_read(link))
		enqueue(engine, slot);
}

static int fault_of(int fd)
{
	int fault = 0;
	socklen_t length = sizeof(fault);
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &fault, &length) < 0 ? errno : fault;
}

static void note_event(struct engine *engine, const struct epoll_event *event)
{
	if (event->data.u64 & LISTENER_BIT) {
		engine->listeners[event->data.u64 & ~LISTENER_BIT].ready = true;
		return;
	}
	uint32_t slot = (uint32_t)event->data.u64;
	struct link *link = &engine->links[slot];
	if (event->events & (EPOLLIN | EPOLLRDHUP))
		link->readable = true;
	if (event->events & EPOLLRDHUP)
		link->hung_up = true;
	if (event->events & EPOLLOUT)
		link->writable = true;
	if ((event->events & (EPOLLERR | EPOLLHUP)) && !link->broken) {
		link->broken = true;
		link->fault = fault_of(link->fd);
		/* What came before is still to be had, and then `recv` says it's over. */
		link->readable = true;
	}
	enqueue(engine, slot);
}

static bool has_room(const struct engine *engine)
{
	return engine->rows + ROWS_PER_SERVICE <= engine->rows_max &&
	       engine->used + READ_MAX <= engine->sizes[COLUMN_SLAB];
}

/* next(engine) -> rows, or -1 - rows when more is to be had at once. */
static napi_value next(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	struct epoll_event events[EVENTS_MAX];
	if (call.bad)
		return NULL;
	engine->rows = 0;
	engine->used = 0;
	while (engine->resting_count > 0)
		engine->free_slots[engine->free_count++] = engine->resting_slots[--engine->resting_count];
	int count = epoll_wait(engine->epoll, events, EVENTS_MAX, 0);
	for (int i = 0; i < count; i++)
		note_event(engine, &events[i]);
	uint32_t budget = ACCEPT_MAX;
	for (uint32_t i = 0; i < LISTENERS_MAX && budget > 0; i++) {
		struct listener *listener = &engine->listeners[i];
		if (!listener->ready)
			continue;
		listener->ready = false;
		if (listener->fd >= 0 && !listener->parked && !listener->off) {
			uint32_t tries = accept_from(engine, i, budget);
			budget -= tries < budget ? tries : budget;
		}
	}
	for (uint32_t left = engine->waiting; left > 0 && has_room(engine); left--) {
		uint32_t slot = dequeue(engine);
		if (engine->links[slot].fd >= 0)
			serve(engine, slot);
	}
	double rows = engine->rows;
	return number(env, engine->waiting > 0 ? -1 - rows : rows);
}

/* ---- opening and closing ---- */

static socklen_t fill_address(struct sockaddr_storage *into, int family, const uint8_t *octets16, uint32_t port)
{
	memset(into, 0, sizeof(*into));
	if (family == AF_INET) {
		struct sockaddr_in *in = (struct sockaddr_in *)into;
		in->sin_family = AF_INET;
		in->sin_port = htons((uint16_t)port);
		memcpy(&in->sin_addr, octets16, 4);
		return sizeof(*in);
	}
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)into;
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons((uint16_t)port);
	memcpy(&in6->sin6_addr, octets16, 16);
	return sizeof(*in6);
}

static int set_flag(int fd, int level, int option)
{
	int on = 1;
	return setsockopt(fd, level, option, &on, sizeof(on));
}

static int prepare_listener(int fd, int family, uint32_t flags)
{
	bool ipv4 = family == AF_INET;
	int level = ipv4 ? IPPROTO_IP : IPPROTO_IPV6;
	if (set_flag(fd, SOL_SOCKET, SO_REUSEADDR) < 0 || set_flag(fd, IPPROTO_TCP, TCP_NODELAY) < 0)
		return -errno;
	if (!ipv4 && set_flag(fd, IPPROTO_IPV6, IPV6_V6ONLY) < 0)
		return -errno;
	if ((flags & LISTEN_REUSE_PORT) && set_flag(fd, SOL_SOCKET, SO_REUSEPORT) < 0)
		return -errno;
	/* Before bind, or the kernel takes no connection to another address for it. */
	if ((flags & LISTEN_TRANSPARENT) && (set_flag(fd, level, ipv4 ? IP_TRANSPARENT : IPV6_TRANSPARENT) < 0 ||
					     set_flag(fd, level, ipv4 ? IP_FREEBIND : IPV6_FREEBIND) < 0))
		return -errno;
	/* Connections inherit it. */
	if ((flags & LISTEN_WANT_INTERFACE) && set_flag(fd, level, ipv4 ? IP_PKTINFO : IPV6_RECVPKTINFO) < 0)
		return -errno;
	return 0;
}

/* What connections inherit, for a socket that somebody else bound. */
static int prepare_given(int fd, int family, uint32_t flags)
{
	bool ipv4 = family == AF_INET;
	int level = ipv4 ? IPPROTO_IP : IPPROTO_IPV6;
	if (set_flag(fd, IPPROTO_TCP, TCP_NODELAY) < 0)
		return -errno;
	if ((flags & LISTEN_TRANSPARENT) && set_flag(fd, level, ipv4 ? IP_TRANSPARENT : IPV6_TRANSPARENT) < 0)
		return -errno;
	if ((flags & LISTEN_WANT_INTERFACE) && set_flag(fd, level, ipv4 ? IP_PKTINFO : IPV6_RECVPKTINFO) < 0)
		return -errno;
	return 0;
}

static int open_listener(struct engine *engine, uint32_t index, int family, const uint8_t *octets16, uint32_t port,
			 uint32_t flags, uint32_t backlog, int given)
{
	struct sockaddr_storage address;
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = LISTENER_BIT | index };
	socklen_t length = fill_address(&address, family, octets16, port);
	int fd = given >= 0 ? given : socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	int result = given >= 0 ? prepare_given(fd, family, flags) : prepare_listener(fd, family, flags);
	if (result == 0 && ((given < 0 && bind(fd, (struct sockaddr *)&address, length) < 0) || listen(fd, (int)backlog) < 0 ||
			    epoll_ctl(engine->epoll, EPOLL_CTL_ADD, fd, &event) < 0))
		result = -errno;
	if (result == 0)
		result = socket_opened(engine);
	if (result < 0) {
		close(fd);
		return result;
	}
	engine->listeners[index] = (struct listener){ .fd = fd, .family = family, .flags = flags };
	return (int)index;
}

static int family_of(struct call *call, size_t index)
{
	uint32_t family = unsigned_integer(call, index);
	if (family != 4 && family != 6)
		refuse(call, "4 or 6", index);
	return family == 4 ? AF_INET : AF_INET6;
}

/* listen(engine, family, octets16, port, flags, backlog, given) -> listener, -errno. `given`: a socket that is bound
 * already, -1: none. It is closed when that fails. */
static napi_value listen_on(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	int family = family_of(&call, 1);
	const uint8_t *octets16 = octets(&call, 2, 16, NULL);
	uint32_t port = unsigned_integer(&call, 3), flags = unsigned_integer(&call, 4);
	uint32_t backlog = unsigned_integer(&call, 5);
	int given = integer(&call, 6);
	if (call.bad)
		return NULL;
	for (uint32_t i = 0; i < LISTENERS_MAX; i++)
		if (engine->listeners[i].fd < 0)
			return number(env, open_listener(engine, i, family, octets16, port, flags, backlog, given));
	return number(env, -ENOSPC);
}

/* portOf(engine, listener) -> port, -errno */
static napi_value port_of(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	uint32_t index = unsigned_integer(&call, 1);
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	if (call.bad)
		return NULL;
	if (index >= LISTENERS_MAX || engine->listeners[index].fd < 0)
		return number(env, -EBADF);
	if (getsockname(engine->listeners[index].fd, (struct sockaddr *)&address, &length) < 0)
		return number(env, -errno);
	if (address.ss_family == AF_INET)
		return number(env, ntohs(((struct sockaddr_in *)&address)->sin_port));
	return number(env, ntohs(((struct sockaddr_in6 *)&address)->sin6_port));
}

/* unlisten(engine, listener) -> 0, -EBADF; its connections stay */
static napi_value unlisten(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	uint32_t index = unsigned_integer(&call, 1);
	if (call.bad)
		return NULL;
	if (index >= LISTENERS_MAX || engine->listeners[index].fd < 0)
		return number(env, -EBADF);
	epoll_ctl(engine->epoll, EPOLL_CTL_DEL, engine->listeners[index].fd, NULL);
	close(engine->listeners[index].fd);
	engine->listeners[index].fd = -1;
	socket_closed(engine);
	return number(env, 0);
}

/* accepting(engine, listener, on) -> 0, -EBADF: off, connections wait in the kernel */
static napi_value accepting(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	uint32_t index = unsigned_integer(&call, 1), on = unsigned_integer(&call, 2);
	if (call.bad)
		return NULL;
	if (index >= LISTENERS_MAX || engine->listeners[index].fd < 0)
		return number(env, -EBADF);
	struct listener *listener = &engine->listeners[index];
	struct epoll_event event = { .events = on ? EPOLLIN : 0, .data.u64 = LISTENER_BIT | index };
	listener->off = !on;
	listener->ready = false;
	return number(env, epoll_ctl(engine->epoll, EPOLL_CTL_MOD, listener->fd, &event) < 0 ? -errno : 0);
}

/* listenerDescriptor(engine, listener), linkDescriptor(engine, slot) -> the descriptor, which stays the engine's, -EBADF */
static napi_value listener_descriptor(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	uint32_t index = unsigned_integer(&call, 1);
	if (call.bad)
		return NULL;
	bool open = index < LISTENERS_MAX && engine->listeners[index].fd >= 0;
	return number(env, open ? engine->listeners[index].fd : -EBADF);
}

static napi_value link_descriptor(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	uint32_t slot = unsigned_integer(&call, 1);
	if (call.bad)
		return NULL;
	struct link *link = link_of(engine, slot);
	return number(env, link ? link->fd : -EBADF);
}

/* unsentOctets(engine, slot, into) -> octets that wait for the kernel, copied as far as there is room; -EBADF */
static napi_value unsent_octets(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	uint32_t slot = unsigned_integer(&call, 1);
	size_t size = 0;
	uint8_t *into = octets(&call, 2, 0, &size);
	if (call.bad)
		return NULL;
	struct link *link = link_of(engine, slot);
	if (!link)
		return number(env, -EBADF);
	size_t waits = link->end - link->start;
	if (waits > 0)
		memcpy(into, link->pending + link->start, waits < size ? waits : size);
	return number(env, (double)waits);
}

/* adopt(engine, fd, unsent: octets) -> slot, -errno: a connection that somebody else accepted, which is not read yet
 * (`reading`); the octets are sent first. The descriptor is the engine's, also when that fails. */
static napi_value adopt(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	size_t size = 0;
	int fd = integer(&call, 1);
	uint8_t *unsent = octets(&call, 2, 0, &size);
	if (call.bad)
		return NULL;
	int64_t slot = take_slot(engine, fd);
	int result = slot < 0 ? -EMFILE : socket_opened(engine);
	if (result < 0) {
		if (slot >= 0)
			drop_link(engine, (uint32_t)slot);
		else
			close(fd);
		return number(env, result);
	}
	struct link *link = &engine->links[slot];
	link->reading = false;
	result = size > 0 ? keep(link, unsent, size) : 0;
	if (result == 0)
		result = watch_link(engine, (uint32_t)slot, size > 0);
	if (result < 0) {
		drop_link(engine, (uint32_t)slot);
		socket_closed(engine);
		return number(env, result);
	}
	((uint32_t *)engine->columns[COLUMN_UNSENT])[slot] = (uint32_t)size;
	return number(env, (double)slot);
}

/* rearm(engine) -> how many listeners accept again after a shortage */
static napi_value rearm(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	uint32_t count = 0;
	if (call.bad)
		return NULL;
	for (uint32_t i = 0; i < LISTENERS_MAX; i++) {
		struct listener *listener = &engine->listeners[i];
		struct epoll_event event = { .events = listener->off ? 0 : EPOLLIN, .data.u64 = LISTENER_BIT | i };
		if (listener->fd < 0 || !listener->parked)
			continue;
		if (epoll_ctl(engine->epoll, EPOLL_CTL_MOD, listener->fd, &event) < 0)
			continue;
		listener->parked = false;
		count++;
	}
	return number(env, count);
}

static int begin_connect(struct engine *engine, int family, const uint8_t *octets16, uint32_t port, uint32_t mark)
{
	struct sockaddr_storage address;
	socklen_t length = fill_address(&address, family, octets16, port);
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	int result = set_flag(fd, IPPROTO_TCP, TCP_NODELAY) < 0 ? -errno : 0;
	/* Before connect, so that the first packet carries it. */
	if (result == 0 && mark && setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) < 0)
		result = -errno;
	if (result == 0 && connect(fd, (struct sockaddr *)&address, length) < 0 && errno != EINPROGRESS)
		result = -errno;
	int64_t slot = result == 0 ? take_slot(engine, fd) : -1;
	if (result == 0 && slot < 0)
		result = -EMFILE;
	if (result == 0)
		result = socket_opened(engine);
	if (result < 0) {
		if (slot >= 0)
			drop_link(engine, (uint32_t)slot);
		else
			close(fd);
		return result;
	}
	result = watch_link(engine, (uint32_t)slot, true);
	if (result < 0) {
		drop_link(engine, (uint32_t)slot);
		socket_closed(engine);
		return result;
	}
	return (int)slot;
}

/* mayMark(mark) -> 0, -EPERM: may this process set SO_MARK? */
static napi_value may_mark(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	uint32_t mark = unsigned_integer(&call, 0);
	if (call.bad)
		return NULL;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return number(env, -errno);
	int result = setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) < 0 ? -errno : 0;
	close(fd);
	return number(env, result);
}

/* connect(engine, family, octets16, port, mark) -> slot, -errno; 0: no mark. What is sent before it is connected waits. */
static napi_value connect_to(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	int family = family_of(&call, 1);
	const uint8_t *octets16 = octets(&call, 2, 16, NULL);
	uint32_t port = unsigned_integer(&call, 3), mark = unsigned_integer(&call, 4);
	if (call.bad)
		return NULL;
	return number(env, begin_connect(engine, family, octets16, port, mark));
}

/* close(engine, slot, reset) -> 0, -EBADF; with reset the peer gets RST and the kernel keeps nothing */
static napi_value close_link(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	uint32_t slot = unsigned_integer(&call, 1), reset = unsigned_integer(&call, 2);
	struct linger linger = { .l_onoff = 1, .l_linger = 0 };
	if (call.bad)
		return NULL;
	struct link *link = link_of(engine, slot);
	if (!link)
		return number(env, -EBADF);
	if (reset)
		setsockopt(link->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	drop_link(engine, slot);
	socket_closed(engine);
	return number(env, 0);
}

/* reading(engine, slot, on) -> 1 when there is something to be had at once, else 0; -EBADF */
static napi_value set_reading(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_of(&call);
	uint32_t slot = unsigned_integer(&call, 1), on = unsigned_integer(&call, 2);
	if (call.bad)
		return NULL;
	struct link *link = link_of(engine, slot);
	if (!link)
		return number(env, -EBADF);
	link->reading = on != 0;
	if (!may_read(link))
		return number(env, 0);
	enqueue(engine, slot);
	return number(env, 1);
}

/* ---- the engine ---- */

static void engine_free(napi_env env, void *data, void *hint)
{
	struct engine *engine = data;
	(void)hint;
	/* A watch that still runs keeps the engine alive, so this is the end of the environment, and of the loop. */
	for (uint32_t i = 0; i < engine->capacity; i++) {
		if (engine->links[i].fd < 0)
			continue;
		close(engine->links[i].fd);
		free(engine->links[i].pending);
	}
	for (uint32_t i = 0; i < LISTENERS_MAX; i++)
		if (engine->listeners[i].fd >= 0)
			close(engine->listeners[i].fd);
	if (!engine->watch)
		close(engine->epoll);
	for (int i = 0; i < COLUMNS; i++)
		if (engine->kept[i])
			napi_delete_reference(env, engine->kept[i]);
	if (engine->function)
		napi_delete_reference(env, engine->function);
	free(engine->links);
	free(engine->ring);
	free(engine->free_slots);
	free(engine->resting_slots);
	free(engine);
}

static struct engine *engine_new(napi_env env, uint32_t capacity)
{
	struct engine *engine = calloc(1, sizeof(*engine));
	if (!engine)
		return NULL;
	engine->env = env;
	engine->epoll = epoll_create1(EPOLL_CLOEXEC);
	engine->links = calloc(capacity, sizeof(*engine->links));
	engine->ring = calloc(capacity, sizeof(*engine->ring));
	engine->free_slots = calloc(capacity, sizeof(*engine->free_slots));
	engine->resting_slots = calloc(capacity, sizeof(*engine->resting_slots));
	for (int i = 0; i < LISTENERS_MAX; i++)
		engine->listeners[i].fd = -1;
	if (engine->epoll < 0 || !engine->links || !engine->ring || !engine->free_slots || !engine->resting_slots) {
		engine_free(env, engine, NULL);
		return NULL;
	}
	engine->capacity = capacity;
	for (uint32_t i = 0; i < capacity; i++) {
		engine->links[i].fd = -1;
		engine->free_slots[i] = capacity - 1 - i;
	}
	engine->free_count = capacity;
	return engine;
}

/* Least octets of each column for so many connections and rows. */
static size_t least_of(int column, uint32_t capacity, uint32_t rows)
{
	switch (column) {
	case COLUMN_ROWS:
		return (size_t)rows * ROW_WORDS * 4;
	case COLUMN_SLAB:
		return READ_MAX;
	case COLUMN_ADDRESSES:
		return (size_t)rows * 32;
	case COLUMN_PORTS:
	case COLUMN_INTERFACES:
		return (size_t)rows * 4;
	case COLUMN_FAMILIES:
		return rows;
	case COLUMN_UNSENT:
		return (size_t)capacity * 4;
	default:
		return 12;
	}
}

/* create(capacity, rows, function, columns) -> engine, -errno. `columns`: an array of typed arrays in the order of enum
 * column. `function` is called once a turn while there is something for `next`. */
static napi_value create(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	uint32_t capacity = unsigned_integer(&call, 0), rows = unsigned_integer(&call, 1);
	napi_value result;
	if (call.count < 4)
		refuse(&call, "there", call.count);
	if (capacity < 1 || capacity > SLOTS_MAX || rows < ROWS_PER_SERVICE || rows > 65536)
		refuse(&call, "in range", 0);
	if (call.bad)
		return NULL;
	struct engine *engine = engine_new(env, capacity);
	if (!engine)
		return number(env, -ENOMEM);
	engine->rows_max = rows;
	for (uint32_t i = 0; i < COLUMNS && !call.bad; i++) {
		struct call element = { .env = env, .count = 1 };
		if (napi_get_element(env, call.values[3], i, &element.values[0]) != napi_ok)
			refuse(&call, "an array of typed arrays", 3);
		else
			engine->columns[i] = octets(&element, 0, least_of((int)i, capacity, rows), &engine->sizes[i]);
		call.bad = call.bad || element.bad;
		if (!call.bad)
			napi_create_reference(env, element.values[0], 1, &engine->kept[i]);
	}
	if (!call.bad && napi_create_reference(env, call.values[2], 0, &engine->function) != napi_ok)
		refuse(&call, "a function", 2);
	if (call.bad) {
		engine_free(env, engine, NULL);
		return NULL;
	}
	napi_create_external(env, engine, engine_free, NULL, &result);
	return result;
}

NAPI_MODULE_INIT()
{
	static const struct export list[] = {
		{ "create", create },     { "next", next },          { "listen", listen_on },
		{ "portOf", port_of },    { "unlisten", unlisten },  { "rearm", rearm },
		{ "connect", connect_to }, { "send", send_frames },  { "close", close_link },
		{ "reading", set_reading }, { "mayMark", may_mark },  { "accepting", accepting },
		{ "listenerDescriptor", listener_descriptor }, { "linkDescriptor", link_descriptor },
		{ "unsentOctets", unsent_octets }, { "adopt", adopt }, { NULL, NULL },
	};
	export_all(env, exports, list);
	return exports;
}
