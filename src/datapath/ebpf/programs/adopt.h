/* Flows that are older than the enforcement of their endpoint; src/datapath/adoption.ts has the rules and the reasons.
 * Consulted only for packets that policy refuses. Entries carry the generation, so the next endpoint on an address inherits
 * none. */
#ifndef NAMEGATE_ADOPT_H
#define NAMEGATE_ADOPT_H

#include "conn.h"
#include "maps.h"
#include "packet.h"

/* Whether the flow's beginning was seen: then it is no older than enforcement, and policy that revokes it counts. */
static __always_inline int was_begun_here(const struct conn_key *k)
{
	return bpf_map_lookup_elem(&ng_conn, k) || bpf_map_lookup_elem(&ng_conn_new, k);
}

/* Enters a TCP flow by a segment of its middle, while that is allowed; 1 when it was entered. */
static __noinline int adopt_segment(const struct conn_key *k)
{
	if (!k)
		return 0;
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

/* Whether a packet that policy refuses belongs to an adopted flow; `denied`: a rule refuses it by name. */
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
