-- Extended attributes: a hash name → value beside the inode. The inode's flags tell which of the
-- names that the kernel asks for all the time are there.

local function is_another_owner(rec, owner)
    return owner ~= '' and tonumber(owner) ~= (struct.unpack('<I4', rec, 9))
end

local function after_xattr(ino, rec, flag, present, time)
    if flag > 0 then
        rec = with_flag(rec, flag, present)
    end
    rec = with_flag(rec, F_XATTR, present or redis.call('EXISTS', 'A' .. ino) == 1)
    put_record(ino, splice(rec, 80, time))
    return record_type(rec)
end

-- mfs_setxattr ino name value how flag time owner [keep perm drop_sgid]; how: 'c' must not exist, 'r'
-- must exist, 'a' any. Answers with the inode's type, and 16 more if the file has got privileges. EPERM: the owner is not
-- this one (empty: whoever). flag is the inode flag of this name or 0. The last three come with an access
-- ACL: whether it says more than the mode does, the mode's new permission bits.
redis.register_function('mfs_setxattr', function(_, args)
    local ino, name, flag = args[1], args[2], tonumber(args[5])
    local rec = get_record(ino)
    if not rec then
        return fail(errno.ESTALE, 'no inode')
    end
    if is_another_owner(rec, args[7]) then
        return fail(errno.EPERM, 'another owner')
    end
    if flag == F_DEFACL and record_type(rec) ~= S_IFDIR then
        return fail(errno.EACCES, 'no directory')
    end
    if args[4] ~= 'a' then
        local exists = redis.call('HEXISTS', 'A' .. ino, name) == 1
        if args[4] == 'c' and exists then
            return fail(errno.EEXIST, 'exists')
        elseif args[4] == 'r' and not exists then
            return fail(errno.ENODATA, 'no attribute')
        end
    end
    local keep = args[8] ~= '0'
    if keep then
        redis.call('HSET', 'A' .. ino, name, args[3])
    else
        redis.call('HDEL', 'A' .. ino, name)
    end
    local gives = keep and flag == F_SECCAPS
    if args[9] then
        local mode = struct.unpack('<I4', rec, 5)
        mode = mode - mode % 512 + tonumber(args[9])
        if args[10] == '1' and mode % 2048 >= 1024 then
            mode = mode - 1024
        end
        rec = splice(rec, 4, struct.pack('<I4', mode))
        gives = runs_as_another(mode)
    end
    if gives and record_type(rec) == S_IFREG then
        return 16 + after_xattr(ino, granted(rec), flag, keep, args[6])
    end
    return after_xattr(ino, rec, flag, keep, args[6])
end)

-- mfs_removexattr ino name flag time owner: the inode's type
redis.register_function{ function_name = 'mfs_removexattr', flags = { 'allow-oom' },
    callback = function(_, args)
        local ino = args[1]
        local rec = get_record(ino)
        if not rec then
            return fail(errno.ESTALE, 'no inode')
        end
        if is_another_owner(rec, args[5]) then
            return fail(errno.EPERM, 'another owner')
        end
        if redis.call('HDEL', 'A' .. ino, args[2]) == 0 then
            return fail(errno.ENODATA, 'no attribute')
        end
        return after_xattr(ino, rec, tonumber(args[3]), false, args[4])
    end }
