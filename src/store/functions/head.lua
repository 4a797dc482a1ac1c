#!lua name=memefs
--[[
The part of MemEFS that runs inside each partition: steps that must be atomic there.

The files of this folder are one text, joined in the order given in src/store/CMakeLists.txt.
Arguments come as strings in `args` (keys too: there is no cluster). A function answers with its
result, or with fail(errno, text), which the client turns into -errno.
]]

local errno = { ENOENT = 2, EEXIST = 17, EINVAL = 22 }

local function fail(number, text)
    return redis.error_reply('ERRNO ' .. number .. ' ' .. text)
end

-- Writes the root directory's inode; partition 0 only. Defined by a later file.
local make_root

-- mfs_format deployment index nparts stripe_size sec nsec
local function format(_, args)
    local want = { 'format', '3', 'deployment', args[1], 'index', args[2],
                   'nparts', args[3], 'stripe_size', args[4] }
    if redis.call('EXISTS', '#super') == 1 then
        for i = 1, #want, 2 do
            local have = redis.call('HGET', '#super', want[i])
            if have ~= want[i + 1] then
                return fail(errno.EINVAL, want[i] .. ' is ' .. tostring(have) ..
                            ', not ' .. want[i + 1])
            end
        end
        return redis.status_reply('OK')
    end
    if args[2] == '0' and make_root then
        make_root(args[5], args[6])
    end
    redis.call('HSET', '#super', unpack(want))
    return redis.status_reply('OK')
end

redis.register_function('mfs_format', format)
