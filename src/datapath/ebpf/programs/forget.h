/* This file makes the kernel's verifier forget what it knows about a value. The verifier follows every path through a program, and
 * ends a path only where it was before in an equal state. A field that is the constant 6 after one header and the constant 17
 * after another makes states different, so the verifier follows the rest of the program once for each combination of such
 * fields. A forgotten field is unknown in all states, so they are equal. The value itself does not change. */
#ifndef NAMEGATE_FORGET_H
#define NAMEGATE_FORGET_H

#include <linux/types.h>

/* `noise` is any number that the verifier does not know. */
#define forget(value, noise)                                                                            \
	do {                                                                                            \
		__u32 mixed = (value) ^ (noise);                                                        \
		asm volatile("" : "+r"(mixed)); /* keeps the compiler from removing both operations */ \
		(value) = mixed ^ (noise);                                                              \
	} while (0)

#endif
