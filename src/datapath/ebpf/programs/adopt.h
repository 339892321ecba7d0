/* This file lets connections continue that are older than the enforcement of their endpoint. src/datapath/adoption.ts has the
 * rules and the reasons. The programs consult it only for packets that policy refuses. An entry carries the generation, so the
 * next endpoint on an address inherits no entry. */
#ifndef NAMEGATE_ADOPT_H
#define NAMEGATE_ADOPT_H

#include "conn.h"
#include "maps.h"
#include "packet.h"

/* True if the programs saw the beginning of the connection. Then the connection is not older than enforcement, and policy can
 * revoke it. */
static __always_inline int was_begun_here(const struct conn_key *k)
{
	return bpf_map_lookup_elem(&ng_conn, k) || bpf_map_lookup_elem(&ng_conn_new, k);
}

/* Adopts a TCP connection by a segment from its middle, while the endpoint may still do so. Returns 1 if it adopted the
 * connection. */
static __noinline int adopt_segment(const struct conn_key *k)
{
	struct adopting_key key = { .endpoint = k->endpoint, .generation = k->generation };
	struct adopting_value *adopting = bpf_map_lookup_elem(&ng_adopting, &key);

	if (!adopting || bpf_ktime_get_ns() >= adopting->learn_until || was_begun_here(k))
		return 0;
	struct adopted_value fresh = { .pass_until = adopting->pass_until, .origin = ADOPTED_LEARNED };
	if (bpf_map_update_elem(&ng_adopted, k, &fresh, BPF_NOEXIST) == 0)
		return 1;
	count(STAT_ADOPTED_FULL);
	return 0;
}

/* True if a packet that policy refuses belongs to an adopted connection. `denied` is set if a deny rule refuses the packet. */
static __always_inline int is_adopted(const struct packet *p, const struct conn_key *k, int denied)
{
	if (p->later_fragment || (p->protocol == IPPROTO_TCP && (p->tcp_flags & TCP_SYN)))
		return 0;
	struct adopted_value *known = bpf_map_lookup_elem(&ng_adopted, k);
	if (known)
		return bpf_ktime_get_ns() < known->pass_until && (!denied || known->origin == ADOPTED_LISTED);
	return p->protocol == IPPROTO_TCP && !denied && adopt_segment(k);
}

#endif
