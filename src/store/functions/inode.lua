-- Inodes at their home: attributes and size. Opening, closing and what is written becoming known are in C
-- (src/partition/files.c).

-- A new mode in the classes of an access ACL: owner, mask (or group when there is no mask), other.
local ACL_USER_OBJ, ACL_GROUP_OBJ, ACL_MASK, ACL_OTHER = 1, 4, 16, 32

local function chmod_acl(ino, mode)
    local acl = redis.call('HGET', 'A' .. ino, 'system.posix_acl_access')
    if not acl then
        return
    end
    local group = ACL_GROUP_OBJ
    for at = 5, #acl - 7, 8 do
        if (struct.unpack('<I2', acl, at)) == ACL_MASK then
            group = ACL_MASK
        end
    end
    local perm = { [ACL_USER_OBJ] = math.floor(mode / 64) % 8,
                   [group] = math.floor(mode / 8) % 8, [ACL_OTHER] = mode % 8 }
    for at = 5, #acl - 7, 8 do
        local new = perm[(struct.unpack('<I2', acl, at))]
        if new then
            acl = splice(acl, at + 1, struct.pack('<I2', new))
        end
    end
    redis.call('HSET', 'A' .. ino, 'system.posix_acl_access', acl)
end

-- What the mask (meta/attr.h: MFS_SET_*, MFS_DROP_*) takes away: who owns a file anew gets no privileges with it.
local function dropped(mask)
    return mask % 8 >= 2 and 192 or mask % 256 - mask % 64
end

-- overlayfs copies a file into one of no name that is root's: it sets size (which is that of what was written), mode and
-- last the owner, which the kernel passes on like ftruncate(2) and fchown(2). Only root has put anything there.
local function is_copy_up(rec)
    return struct.unpack('<I4', rec, 9) == 0 and record_nlink(rec) == 0 and has_flag(rec, F_TMPFILE)
end

-- mfs_setattr ino mask mode uid gid atime mtime ctime sid owner group; the new record, and behind a regular file's other
-- holders of a lease. EPERM, ECANCELED: owner, or group, is not this one (empty: whoever).
redis.register_function{ function_name = 'mfs_setattr', flags = { 'allow-oom' },
    callback = function(_, args)
        local ino, mask = args[1], tonumber(args[2])
        local rec = get_record(ino)
        if not rec then
            return fail(errno.ESTALE, 'no inode')
        end
        local uid, gid = struct.unpack('<I4I4', rec, 9)
        if args[10] ~= '' and tonumber(args[10]) ~= uid then
            return fail(errno.EPERM, 'another owner')
        elseif args[11] ~= '' and tonumber(args[11]) ~= gid then
            return fail(errno.ECANCELED, 'another group')
        end
        if dropped(mask) > 0 and not (mask % 8 >= 6 and is_copy_up(rec)) then
            rec = redis.call('mfs_drop', ino, dropped(mask))
        end
        if mask % 2 >= 1 then
            local mode = struct.unpack('<I4', rec, 5)
            mode = mode - mode % 4096 + tonumber(args[3]) % 4096
            rec = splice(rec, 4, struct.pack('<I4', mode))
            if has_flag(rec, F_ACL) then
                chmod_acl(ino, mode)
            end
            if record_type(rec) == S_IFREG and runs_as_another(mode) then
                rec = granted(rec)
            end
        end
        if mask % 4 >= 2 then
            rec = splice(rec, 8, struct.pack('<I4', tonumber(args[4])))
        end
        if mask % 8 >= 4 then
            rec = splice(rec, 12, struct.pack('<I4', tonumber(args[5])))
        end
        if mask % 16 >= 8 then
            rec = splice(rec, 56, args[6])
        end
        if mask % 32 >= 16 then
            rec = splice(rec, 68, args[7])
            if record_type(rec) == S_IFDIR then
                rec = with_flag(rec, F_MTIME, true)
                rec = splice(rec, 2, struct.pack('<I2', (struct.unpack('<I2', rec, 3) + 1) % 65536))
            end
        end
        rec = splice(rec, 80, args[8])
        put_record(ino, rec)
        if record_type(rec) == S_IFREG then
            return rec .. other_holders(ino, args[9])
        end
        return rec
    end }

-- mfs_ctime ino time: never backwards.
redis.register_function{ function_name = 'mfs_ctime', flags = { 'allow-oom' },
    callback = function(_, args)
        local rec = get_record(args[1])
        if rec and later(args[2], sub(rec, 81, 92)) then
            put_record(args[1], splice(rec, 80, args[2]))
        end
    end }

-- The other sessions that have the file open or a lease of it, 8 bytes each: they have to be told of a change.
local function others(ino, sid)
    return redis.call('mfs_holders', ino, sid, 'open')
end

-- May stripes 1 … hold bytes at or beyond `size` that the caller has not deleted? It did so when it had seen `version`;
-- what another client has made known since, also below the end of data that there was, it may have stored after that.
local function untrimmed(rec, size, version, stripe_size)
    local data_end, _, present = struct.unpack('<i8i8i8', rec, 33)
    return data_end > stripe_size and data_end > size and present ~= version
end

-- Cuts a stripe to `keep` bytes; its old and new length. What is left of a lost one stays lost.
local function cut(key, keep)
    local old, lost = stripe_len(key)
    if keep == 0 then
        redis.call('DEL', key)
        return old, 0
    end
    if old > keep then
        if lost then
            redis.call('HSET', key, 'lost', keep)
        else
            redis.call('SET', key, redis.call('GETRANGE', key, 0, keep - 1))
        end
        return old, keep
    end
    return old, old
end

-- Who appends beyond stripe 0 just now: his session and a number; nil: nobody.
local function appender(ino)
    return redis.call('GET', 'P' .. ino)
end

-- mfs_truncate ino time size stripe_size sid version drop; the new record and behind it the other openers. What
-- `drop` says of the file's privileges goes. ECANCELED: untrimmed. With version 0, which none is, the end of data stays where it was then, and what may be left below it is void:
-- it goes with the file, or with the next truncate. Just a session (8): nothing was done, as that other one appends.
redis.register_function{ function_name = 'mfs_truncate', flags = { 'allow-oom' },
    callback = function(_, args)
        local ino, new = args[1], tonumber(args[3])
        local rec = get_record(ino)
        if not rec then
            return fail(errno.ESTALE, 'no inode')
        end
        local holder = appender(ino)
        if holder and sub(holder, 1, 8) ~= args[5] then
            return sub(holder, 1, 8)
        end
        local seen = tonumber(args[6])
        local left = untrimmed(rec, new, seen, tonumber(args[4]))
        if left and seen > 0 then
            return fail(errno.ECANCELED, 'written meanwhile')
        end
        local size, data_end, alloc, version = struct.unpack('<i8i8i8i8', rec, 25)
        if new < tonumber(args[4]) then
            cut(stripe0(ino), new)
        end
        local before_cut = data_end
        data_end = math.min(data_end, new)
        local cuts = struct.unpack('<I2', rec, 3)
        rec = sub(rec, 1, 2) .. struct.pack('<I2', (cuts + 1) % 65536) ..
              sub(rec, 5, 24) .. struct.pack('<i8i8i8i8', new, data_end, alloc, version + 1) ..
              sub(rec, 57, 68) .. args[2] .. args[2] .. sub(rec, 93)
        put_record(ino, rec)
        if new <= size then
            redis.call('mfs_recount', ino)
        end
        if left then
            return redis.call('mfs_commit0', ino, '', 0, before_cut, '', args[5], '', '', args[7])
        end
        if new ~= size or not is_copy_up(rec) then
            rec = redis.call('mfs_drop', ino, args[7])
        end
        return rec .. others(ino, args[5])
    end }

-- Appending. What fits into stripe 0 is stored in one step. Otherwise the appender gets the place
-- behind the end for itself (P ino: its session and a number), stores the bytes in the stripes, and
-- only then does the file grow: nobody sees bytes that are not there yet.

-- mfs_append ino time len stripe_size sid number drop [bytes]. The record, the other openers, and how it
-- went (1 byte): 'S' stored, 'P' the place is taken for this one. Or just the session (8) that has
-- it.
local function append(_, args)
    local ino, len = args[1], tonumber(args[3])
    local rec = get_record(ino)
    if not rec then
        return fail(errno.ESTALE, 'no inode')
    end
    local holder = appender(ino)
    if holder then
        return sub(holder, 1, 8)
    end
    local size = struct.unpack('<i8', rec, 25)
    local last = size + len
    if not args[8] or last > tonumber(args[4]) then
        redis.call('SET', 'P' .. ino, args[5] .. args[6])
        return rec .. 'P'
    end
    local said = redis.pcall('mfs_commit', ino, args[2], last, 0, '', args[5], '', '', args[7], size, args[8])
    return type(said) == 'string' and said .. 'S' or said
end
redis.register_function('mfs_append', append)

-- mfs_append_place: the same without bytes, so that nothing grows.
redis.register_function{ function_name = 'mfs_append_place', flags = { 'allow-oom' }, callback = append }

-- mfs_append_end ino time begin end sid number drop: the bytes are stored from `begin` to `end` (0: they are not),
-- the place is free. The record and the other openers; ECANCELED when it had been taken away.
redis.register_function{ function_name = 'mfs_append_end', flags = { 'allow-oom' },
    callback = function(_, args)
        local ino = args[1]
        local rec = get_record(ino)
        if redis.call('GET', 'P' .. ino) ~= args[5] .. args[6] then
            return fail(errno.ECANCELED, 'not the appender')
        end
        redis.call('DEL', 'P' .. ino)
        if not rec then
            return fail(errno.ESTALE, 'no inode')
        end
        if args[4] == '0' then
            return rec
        end
        local named = struct.pack('<i8i8', tonumber(args[3]), tonumber(args[4]))
        return redis.pcall('mfs_commit0', ino, args[2], args[4], 0, '', args[5], named, '', args[7])
    end }

-- mfs_append_break ino sid: the session is dead and appends no more.
redis.register_function{ function_name = 'mfs_append_break', flags = { 'allow-oom' },
    callback = function(_, args)
        if redis.call('GETRANGE', 'P' .. args[1], 0, 7) == args[2] then
            redis.call('DEL', 'P' .. args[1])
        end
    end }
