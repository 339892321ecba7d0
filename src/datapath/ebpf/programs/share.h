/* An endpoint's share is the number of entries that it may have in each table of connections. No endpoint can take entries of
 * another endpoint.
 *
 * One half of each table is reserved: `reserved` entries for each possible endpoint. So an entry within this number always has
 * room. The other half is the pool. Beyond `reserved`, an endpoint may have more entries as long as it has fewer than the pool
 * has free, and at most `connections_per_endpoint`.
 *
 * If the share of ng_conn is full, a connection stays in ng_conn_new. If the share of ng_conn_new is full, a new connection
 * replaces the endpoint's oldest connection that was not used again (second chance). For this purpose each connection has a slot.
 * Slots are numbered in the order in which the connections began, and a connection that ended leaves a hole. A tuple that is
 * remembered without its owner is counted for the endpoint that began it. None of this needs a process in user space. User space
 * only removes idle entries, and counts them in counters of its own (COUNT_FREED), so no counter has two writers.
 *
 * The kernel verifies a function that is not static once for each program, and a static function at each call. Before kernel
 * 5.12, the parameters of a function that is not static can only be numbers. */
#ifndef NAMEGATE_SHARE_H
#define NAMEGATE_SHARE_H

#include "maps.h"

#define SECOND 1000000000ULL
/* How many slots one packet examines, to find one to replace. If the slots have many holes, the packet uses these steps to move
 * connections together. */
#define LOOKED_AT 4
#define HOLES_FREE 64

static __always_inline void count(__u32 stat)
{
	__u64 *value = bpf_map_lookup_elem(&ng_stats, &stat);

	if (value)
		*value += 1;
}

static __always_inline __u64 *share_counter(__u32 endpoint, __u32 generation, __u32 side)
{
	struct count_key key = { .endpoint = endpoint, .generation = generation, .side = side };

	return bpf_map_lookup_elem(&ng_conn_count, &key);
}

/* How many entries an owner has in a table. Owner 0 stands for all endpoints. */
static __always_inline __s64 share_used(__u32 endpoint, __u32 generation, __u32 table)
{
	__u64 *opened = share_counter(endpoint, generation, table + COUNT_KERNEL);
	__u64 *freed = share_counter(endpoint, generation, table + COUNT_FREED);

	return (opened ? *opened : 0) - (freed ? *freed : 0);
}

/* The first increment makes the counter. */
__noinline int share_add(__u32 endpoint, __u32 generation, __u32 table)
{
	__u64 *opened = share_counter(endpoint, generation, table + COUNT_KERNEL);

	if (!opened) {
		struct count_key key = { .endpoint = endpoint, .generation = generation,
					 .side = table + COUNT_KERNEL };
		__u64 one = 1;
		if (bpf_map_update_elem(&ng_conn_count, &key, &one, BPF_NOEXIST) == 0)
			return 0;
		opened = share_counter(endpoint, generation, table + COUNT_KERNEL);
	}
	if (opened)
		__sync_fetch_and_add(opened, 1);
	return 0;
}

static __always_inline void share_take(const struct owner_key *owner, __u32 table)
{
	share_add(owner->endpoint, owner->generation, table);
	share_add(0, 0, table);
}

__noinline int share_give(__u32 endpoint, __u32 generation, __u32 table)
{
	__u64 *opened = share_counter(endpoint, generation, table + COUNT_KERNEL);

	if (opened)
		__sync_fetch_and_add(opened, -1);
	opened = share_counter(0, 0, table + COUNT_KERNEL);
	if (opened)
		__sync_fetch_and_add(opened, -1);
	return 0;
}

/* True if an endpoint may have one more entry. */
__noinline int share_has_room(__u32 endpoint, __u32 generation, __u32 table)
{
	__u32 zero = 0;
	struct config_value *config = bpf_map_lookup_elem(&ng_config, &zero);
	__s64 used = share_used(endpoint, generation, table);

	if (!config || used >= (__s64)config->connections_per_endpoint)
		return 0;
	return used < (__s64)config->reserved || used < (__s64)config->pool - share_used(0, 0, table);
}

/* Takes the endpoint's next slot number. Returns -1 if there is no room. */
__noinline __s64 slot_next(__u32 endpoint, __u32 generation)
{
	struct owner_key owner = { .endpoint = endpoint, .generation = generation };
	struct flow_turn *turn = bpf_map_lookup_elem(&ng_flow_turn, &owner);
	__u32 number;

	if (!turn) {
		struct flow_turn first = {};
		bpf_map_update_elem(&ng_flow_turn, &owner, &first, BPF_NOEXIST);
		turn = bpf_map_lookup_elem(&ng_flow_turn, &owner);
		if (!turn)
			return -1;
	}
	bpf_spin_lock(&turn->lock);
	number = turn->next++;
	bpf_spin_unlock(&turn->lock);
	return number;
}

/* Gives the connection the next slot. Returns the slot's number, or -1 if there is no room. */
static __always_inline __s64 slot_take(const struct owner_key *owner, const struct conn_key *k)
{
	struct slot_key slot = { .owner = *owner };
	__s64 number = slot_next(owner->endpoint, owner->generation);

	if (number < 0)
		return -1;
	slot.number = number;
	return bpf_map_update_elem(&ng_flow_slot, &slot, k, BPF_ANY) < 0 ? -1 : number;
}

/* Removes a slot and its connection, unless the connection now has another slot. Returns 1 if it removed the connection. */
static __always_inline int slot_clear(const struct slot_key *slot, const struct conn_key *k)
{
	struct flow_value *f = bpf_map_lookup_elem(&ng_conn_new, k);
	int gone = f && f->slot == slot->number && bpf_map_delete_elem(&ng_conn_new, k) == 0;

	bpf_map_delete_elem(&ng_flow_slot, slot);
	if (gone)
		share_give(slot->owner.endpoint, slot->owner.generation, TABLE_FLOWS);
	return gone;
}

/* Makes room: examines up to LOOKED_AT of the endpoint's oldest slots, and removes the first connection that was not used since
 * it got its slot. A used connection gets a new slot at the end, except the last examined one, which is removed. If `moving` is
 * set, every examined connection moves to the end. Returns 1 if it removed a connection. */
__noinline int slot_pass(__u32 endpoint, __u32 generation, int moving)
{
	struct slot_key slot = { .owner = { .endpoint = endpoint, .generation = generation } };
	struct flow_turn *turn = bpf_map_lookup_elem(&ng_flow_turn, &slot.owner);

	for (int i = 0; turn && i < LOOKED_AT; i++) {
		slot.number = turn->oldest;
		if ((__s32)(turn->next - slot.number) <= 0)
			return 0;
		turn->oldest = slot.number + 1;
		struct conn_key *k = bpf_map_lookup_elem(&ng_flow_slot, &slot);
		if (!k)
			continue;
		struct flow_value *f = bpf_map_lookup_elem(&ng_conn_new, k);
		if (f && f->slot == slot.number && (moving || (f->conn.used && i < LOOKED_AT - 1))) {
			__s64 later = slot_take(&slot.owner, k);
			if (later >= 0) {
				f->conn.used = 0;
				f->slot = later;
				bpf_map_delete_elem(&ng_flow_slot, &slot);
				continue;
			}
		}
		if (slot_clear(&slot, k)) {
			count(STAT_FLOW_LIMIT);
			return 1;
		}
	}
	return 0;
}

/* True if ended connections have left many holes. */
__noinline int slots_have_holes(__u32 endpoint, __u32 generation)
{
	struct owner_key owner = { .endpoint = endpoint, .generation = generation };
	struct flow_turn *turn = bpf_map_lookup_elem(&ng_flow_turn, &owner);

	return turn && 2 * (__s64)(turn->next - turn->oldest) >
			       3 * share_used(endpoint, generation, TABLE_FLOWS) + HOLES_FREE;
}

#endif
