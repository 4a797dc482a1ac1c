-- Inode records. The layout (partition/layout.h has the same in C), little-endian:
--    0 u8 format = 1   1 u8 flags   2 u16 cuts    4 u32 mode    8 u32 uid     12 u32 gid
--   16 u32 nlink      20 u32 rdev  24 i64 size   32 i64 end of data            40 i64 allocated
--   48 i64 version    56 atime     68 mtime      80 ctime      92 tail
-- Cuts: of a directory, how often its mtime was set by hand (decisions/0008).
-- A time is i64 seconds and u32 nanoseconds, 12 bytes that travel as they are. The tail: a
-- directory's parent (8 bytes), generation of its last move (8 bytes, big-endian), bitmap of the
-- partitions that hold entries; a symlink's target.

-- Library tables (string, struct, …) can't be named while the library is loaded; a string knows
-- its.
local sub, byte, char = ('').sub, ('').byte, ('').char

errno.EPERM = 1
errno.EACCES = 13
errno.ENOTDIR = 20
errno.EISDIR = 21
errno.EMLINK = 31
errno.ENOTEMPTY = 39
errno.ENODATA = 61
errno.ESTALE = 116
errno.ECANCELED = 125

local S_IFDIR = 4 -- mode / 4096: what an entry calls its type

-- Replaces the bytes behind the first `at`.
local function splice(rec, at, bytes)
    return sub(rec, 1, at) .. bytes .. sub(rec, at + #bytes + 1)
end

local function get_record(ino)
    return redis.call('GET', 'I' .. ino)
end

local function put_record(ino, rec)
    redis.call('SET', 'I' .. ino, rec)
end

local function record_nlink(rec)
    return (struct.unpack('<I4', rec, 17))
end

make_root = function(sec, nsec)
    local time = struct.pack('<i8I4', tonumber(sec), tonumber(nsec))
    local ino = '\0\0\0\0\0\0\0\1'
    local fixed = struct.pack('<BBI2I4I4I4I4I4i8i8i8i8', 1, 0, 0, S_IFDIR * 4096 + 1023, 0, 0, 2, 0,
                              0, 0, 0, 1)
    put_record(ino, fixed .. time .. time .. time .. ino .. '\0\0\0\0\0\0\0\0')
    redis.call('SET', '#seq', '1')
end
