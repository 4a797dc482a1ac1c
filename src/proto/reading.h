/* What a program tells a mount of a file that it has open: an ioctl, by which this open file is no
 * reading of the content (decisions/0045). Of use to who opens a file to look at it, or several
 * times to read it once. ENOTTY: the file is not of a mount, or that knows no such request. */
#ifndef MFS_PROTO_READING_H
#define MFS_PROTO_READING_H

#include <sys/ioctl.h>

#define MFS_NO_READING _IO(0xEF, 2)

#endif
