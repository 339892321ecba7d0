/* This file finds out which messages of nf_tables belong to a table. */
#ifndef NAMEGATE_NFTABLES_TABLE_H
#define NAMEGATE_NFTABLES_TABLE_H

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <string.h>

/* The table's name is the first attribute of every message, except the message that ends a transaction. */
static inline bool is_of_table(const struct nlmsghdr *m, const char *table)
{
	const struct nlattr *name =
		(const struct nlattr *)((const char *)m + NLMSG_LENGTH(sizeof(struct nfgenmsg)));
	size_t length = strlen(table) + 1;
	if ((m->nlmsg_type & 0xff) == NFT_MSG_NEWGEN ||
	    m->nlmsg_len < NLMSG_LENGTH(sizeof(struct nfgenmsg)) + NLA_HDRLEN + length)
		return false;
	return (name->nla_type & NLA_TYPE_MASK) == NFTA_TABLE_NAME && name->nla_len == NLA_HDRLEN + length &&
	       memcmp((const char *)name + NLA_HDRLEN, table, length) == 0;
}

#endif
