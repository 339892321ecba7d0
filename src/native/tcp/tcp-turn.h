/* In each turn, `next` converts the kernel's events into rows, up to the room for rows. It reads and sends only one piece of each
 * connection in a turn, so no connection starves another. */
#ifndef NAMEGATE_TCP_TURN_H
#define NAMEGATE_TCP_TURN_H

#include "tcp-accept.h"
#include "tcp-send.h"

#define EVENTS_MAX 512
/* Most octets read from one connection in one turn. */
#define READ_MAX 16384

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
	/* A short read has emptied the queue. So if the FIN had arrived before, only the FIN is left. */
	if (got == 0 || link->hung_up) {
		link->ended = true;
		add_row(engine, ROW_ENDED, slot, 0, 0);
	}
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
	if (link->broken && !may_read(link) && !link->reported) {
		link->reported = true;
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
		/* Octets that arrived before the error can still be read. After them `recv` reports the end. */
		link->readable = true;
	}
	enqueue(engine, slot);
}

static bool has_room(const struct engine *engine)
{
	return engine->rows + ROWS_PER_SERVICE <= engine->rows_max &&
	       engine->used + READ_MAX <= engine->sizes[COLUMN_SLAB];
}

/* next(engine) -> the number of rows, or -1 minus that number if connections still wait to be served */
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

#endif
