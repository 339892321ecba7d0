/* This addon handles many TCP connections at little cost. One epoll set holds all listeners and connections, and the event loop
 * watches the set. In each turn, one call accepts, reads, sends what waited, and returns rows to JavaScript. Received octets go
 * into one slab, and sent octets come from another slab. JavaScript decides everything; C never closes a connection by itself. A
 * failed call returns a negative errno. No call waits.
 *
 * Files:
 * - tcp-engine.h: the state of an engine
 * - tcp-turn.h, tcp-accept.h, tcp-send.h: the work of a turn
 * - tcp-listen.h: opening and closing of listeners
 * - tcp-link.h: opening and closing of connections */
#define _GNU_SOURCE
#include "tcp-link.h"
#include "tcp-listen.h"
#include "tcp-turn.h"

static void engine_free(napi_env env, void *data, void *hint)
{
	struct engine *engine = data;
	(void)hint;
	/* If a watch still runs here, the environment and its loop are ending, because a running watch keeps the engine alive. */
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

/* The least octets of a column for this capacity and number of rows. */
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

/* create(capacity, rows, function, columns) -> the engine, or -errno. `columns` is an array of typed arrays in the order of enum
 * column. The engine calls `function` once a turn while `next` has work. */
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
