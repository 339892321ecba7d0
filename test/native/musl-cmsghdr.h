/* This header comes before the addons of the sanitizer build. It gives them struct cmsghdr with the fields of musl: a field of padding
 * stands between the length and the level. The octets are those of glibc, as long as the padding is 0. */
#define _GNU_SOURCE
#define cmsghdr cmsghdr_of_glibc
#include <sys/socket.h>
#undef cmsghdr

struct cmsghdr {
	socklen_t cmsg_len;
	int __pad1;
	int cmsg_level;
	int cmsg_type;
};

#undef CMSG_DATA
#undef CMSG_NXTHDR
#define CMSG_DATA(c) ((unsigned char *)((struct cmsghdr *)(c) + 1))
#define CMSG_NXTHDR(header, c) ((struct cmsghdr *)__cmsg_nxthdr(header, (struct cmsghdr_of_glibc *)(c)))
