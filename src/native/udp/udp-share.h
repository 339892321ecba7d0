/* This file takes over the memory that JavaScript shares with an engine: areas of octets, columns of clients, queries and
 * answers, and the rows to send. The engine checks that each array is long enough, and keeps it from the garbage collector. */
#ifndef NAMEGATE_UDP_SHARE_H
#define NAMEGATE_UDP_SHARE_H

#include "udp-engine.h"

/* Returns the engine of a call. If the argument is no running engine, it returns NULL and throws. */
static struct engine *engine_at(struct call *call)
{
	void *data = NULL;
	if (call->count == 0 || napi_get_value_external(call->env, call->values[0], &data) != napi_ok || !data ||
	    !((struct engine *)data)->watch) {
		refuse(call, "an engine that runs", 0);
		return NULL;
	}
	return data;
}

/* Returns the octets of one typed array of a list, at least `least`. The engine keeps the array from the garbage collector. */
static uint8_t *shared(struct call *call, struct engine *engine, napi_value list, uint32_t index, size_t least, size_t *size)
{
	struct call one = { .env = call->env, .count = 1 };
	if (call->bad || engine->reference_count == REFERENCES_MAX ||
	    napi_get_element(call->env, list, index, &one.values[0]) != napi_ok) {
		refuse(call, "a list of typed arrays", 2);
		return NULL;
	}
	uint8_t *result = octets(&one, 0, least, size);
	if (one.bad) {
		call->bad = true;
		return NULL;
	}
	if (napi_create_reference(call->env, one.values[0], 1, &engine->references[engine->reference_count]) == napi_ok)
		engine->reference_count++;
	return result;
}

/* shareArea(engine, index, [octets]): an area holds octets to send, or the cells of received messages */
static napi_value share_area(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	uint32_t index = unsigned_integer(&call, 1);
	if (call.bad || index >= AREAS_MAX || call.count < 3) {
		refuse(&call, "an area", 1);
		return NULL;
	}
	size_t size = 0;
	uint8_t *data = shared(&call, engine, call.values[2], 0, 0, &size);
	if (!call.bad)
		engine->areas[index] = (struct area){ data, size };
	return NULL;
}

/* shareClients(engine, index, [families, addresses, ports, transports, channels, interfaces, askedAddresses, askedPorts]) */
static napi_value share_clients(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	uint32_t index = unsigned_integer(&call, 1);
	struct clients c = {};
	size_t rows = 0;
	if (call.bad || index >= CLIENTS_MAX || call.count < 3) {
		refuse(&call, "clients", 1);
		return NULL;
	}
	napi_value list = call.values[2];
	c.families = shared(&call, engine, list, 0, 1, &rows);
	c.addresses = shared(&call, engine, list, 1, rows * 16, NULL);
	c.ports = (uint16_t *)shared(&call, engine, list, 2, rows * 2, NULL);
	c.transports = shared(&call, engine, list, 3, rows, NULL);
	c.channels = (uint32_t *)shared(&call, engine, list, 4, rows * 4, NULL);
	c.interfaces = (uint32_t *)shared(&call, engine, list, 5, rows * 4, NULL);
	c.asked_addresses = shared(&call, engine, list, 6, rows * 16, NULL);
	c.asked_ports = (uint16_t *)shared(&call, engine, list, 7, rows * 2, NULL);
	c.rows = (uint32_t)rows;
	if (!call.bad)
		engine->clients[index] = c;
	return NULL;
}

/* shareQueries(engine, 0, [offsets, lengths, oversized]): the remaining columns of the query batch, which also uses clients 0 and
 * area 0 */
static napi_value share_queries(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	if (call.bad || call.count < 3)
		return NULL;
	uint32_t rows = engine->clients[0].rows;
	uint32_t *offsets = (uint32_t *)shared(&call, engine, call.values[2], 0, rows * 4, NULL);
	uint32_t *lengths = (uint32_t *)shared(&call, engine, call.values[2], 1, rows * 4, NULL);
	uint8_t *oversized = shared(&call, engine, call.values[2], 2, rows, NULL);
	if (call.bad)
		return NULL;
	engine->query_offsets = offsets;
	engine->query_lengths = lengths;
	engine->query_oversized = oversized;
	return NULL;
}

/* shareAnswers(engine, 0, [handles, offsets, lengths]): the columns of received answers, whose octets are in area 1 */
static napi_value share_answers(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	size_t size = 0;
	if (call.bad || call.count < 3)
		return NULL;
	uint32_t *handles = (uint32_t *)shared(&call, engine, call.values[2], 0, 4, &size);
	uint32_t *offsets = (uint32_t *)shared(&call, engine, call.values[2], 1, size, NULL);
	uint32_t *lengths = (uint32_t *)shared(&call, engine, call.values[2], 2, size, NULL);
	if (call.bad)
		return NULL;
	engine->answer_handles = handles;
	engine->answer_offsets = offsets;
	engine->answer_lengths = lengths;
	engine->answer_room = (uint32_t)(size / 4);
	return NULL;
}

/* shareSends(engine, 0, [rows, reports]): `flush` sends `rows`, and failures are written to `reports` */
static napi_value share_sends(napi_env env, napi_callback_info info)
{
	struct call call = read_call(env, info);
	struct engine *engine = engine_at(&call);
	size_t size = 0;
	if (call.bad || call.count < 3)
		return NULL;
	uint32_t *rows = (uint32_t *)shared(&call, engine, call.values[2], 0, ROW_WORDS * 4, &size);
	int32_t *reports = (int32_t *)shared(&call, engine, call.values[2], 1, REPORTS_MAX * 12, NULL);
	if (call.bad)
		return NULL;
	size /= ROW_WORDS * 4;
	engine->rows = rows;
	engine->row_room = (uint32_t)(size < ROWS_MAX ? size : ROWS_MAX);
	engine->reports = reports;
	return NULL;
}

#endif
