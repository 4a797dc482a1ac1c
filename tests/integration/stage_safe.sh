#!/usr/bin/env bash
# memefs stage-in and stage-out where sources meet, where others have written into the target, and where lists lead
# astray: no file is half there or another one's, nothing is written outside, and nobody gets rights by it.
# shellcheck source=tests/support/harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/harness.sh"
need jq sha256sum setfattr setpriv setfacl python3

stage_in() { timeout 60 memefs stage-in "$@"; }
stage_out() { timeout 60 memefs stage-out "$@"; }
told() # WORDS
{
    grep -qE "$1" "$T/expect.out" || fail "does not say $1: $(cat "$T/expect.out")"
}

umask 022
deployment_start 1
cd "$T"

say "two sources with one place"
mkdir a b c
for i in a b c; do head -c 20000000 /dev/urandom >"$i/x"; done
for _ in {1..4}; do
    expect_fail 1 stage_in --json a/x b/x c/x "$MNT0/meet"
    equal '[1,2]' "$(grep '^{' "$T/expect.out" | jq -c '[.files, .failed]')" "copied and refused"
    told 'another source comes to .*meet/x, too'
    cmp -s a/x "$MNT0/meet/x" || cmp -s b/x "$MNT0/meet/x" || cmp "$MNT0/meet/x" c/x
    rm -r "$MNT0/meet"
done
mkdir many
for i in {1..50}; do echo "$i" >"many/$i"; done
printf '%s\n' many/{1..50} many/{1..50} >twice
stage_in --json --manifest twice "$MNT0/twice" >json
equal '[50,0]' "$(jq -c '[.files, .failed]' json)" "each path twice"
diff -r many "$MNT0/twice/many"

say "directories of lists"
equal 755 "$(stat -c %a "$MNT0/twice/many")" "mode of a directory that a list names"

say "what others have left there is not taken over"
mkdir -m 1777 "$MNT0/open" open
head -c 150000000 /dev/urandom >big
for target in "$MNT0/open" open; do
    verb=stage-in source=big
    [ "$target" != open ] || verb=stage-out source=$MNT0/big
    [ "$target" != open ] || cp big "$source"
    memefs "$verb" --jobs 1 "$source" "$target" >/dev/null 2>&1 &
    pid=$!
    until gone "$pid" || [ -n "$(getfattr -n user.memefs-stage "$target"/.memefs-stage.* 2>/dev/null)" ]; do :; done
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    for file in "$target"/.memefs-stage.*; do
        printf 'EVIL' | dd of="$file" conv=notrunc status=none
        chown 65534 "$file"
    done
    timeout 60 memefs "$verb" "$source" "$target" >/dev/null
    cmp big "$target/big"
    equal 0 "$(stat -c %u "$target/big")" "owner"
    rm "$target/big"
done

say "what an earlier run has noted is compared with --verify"
memefs stage-in --jobs 1 big "$MNT0/resumed" >/dev/null 2>&1 &
pid=$!
until gone "$pid" || [ -n "$(getfattr -n user.memefs-stage "$MNT0/resumed"/.memefs-stage.* 2>/dev/null)" ]; do :; done
kill -KILL "$pid" 2>/dev/null || true
wait "$pid" 2>/dev/null || true
for file in "$MNT0/resumed"/.memefs-stage.*; do
    printf 'wrong' | dd of="$file" conv=notrunc status=none
done
stage_in --verify big "$MNT0/resumed" >/dev/null
cmp big "$MNT0/resumed/big"

say "lists stay in the target"
mkdir -m 0700 closed
echo secret >closed/f
mkdir -p "$MNT0/deep/in" "$MNT0/outside"
chmod 755 "$MNT0/deep"
printf 'closed\t..\n' >lines
expect_fail 1 stage_in --manifest lines "$MNT0/deep/in"
told 'out of the target'
equal 755 "$(stat -c %a "$MNT0/deep")" "mode of the directory above"
ln -s "$MNT0/outside" "$MNT0/deep/in/link"
printf 'closed/f\tlink/f\n' >lines
expect_fail 1 stage_in --manifest lines "$MNT0/deep/in"
told 'link: is there and is no directory'
[ ! -e "$MNT0/outside/f" ] || fail "a file behind a link"
[ ! -e "$MNT0/deep/f" ] || fail "a file above the target"

ln -s big pointer
sha256sum pointer >lines
expect_fail 1 stage_in --manifest lines "$MNT0/sums"
told 'pointer: is no file'

say "each name of a list has its checksum"
echo one >one
ln one other
sha256sum one >lines
sed 's/^..../0000/; s/one$/other/' lines >>lines.wrong
cat lines >>lines.wrong
sed 's/one$/other/' lines >lines.right
cat lines >>lines.right
expect_fail 1 stage_in --manifest lines.wrong "$MNT0/sums"
told 'other: has not the checksum'
echo two >"$MNT0/sums/one"
touch -r one "$MNT0/sums/one"
stage_in --json --manifest lines.right "$MNT0/sums" >json
equal '[1,1,0]' "$(jq -c '[.files, .others, .failed]' json)" "what has another content is copied"
cmp one "$MNT0/sums/one"
cmp one "$MNT0/sums/other"

say "attributes of a link with a long path"
deep=$(printf '%0100d/%0100d/%0100d' 1 2 3)
mkdir -p "$deep"
ln -s nowhere "$deep/link"
setfattr -h -n trusted.colour -v green "$deep/link"
stage_in "$deep/link" "$MNT0/attributes" >/dev/null
equal green "$(getfattr -h --only-values -n trusted.colour "$MNT0/attributes/link")" "attribute of the link"

say "a special file's mode and owner go to no other file"
mkdir fifo
mkfifo -m 666 fifo/f
chown 65534 fifo/f
install -m 600 /dev/null victim
mkdir "$MNT0/theirs"
python3 - fifo/f "$MNT0/theirs" "$T/victim" <<'EOF'
import os, subprocess, sys
source, target, victim = sys.argv[1:]
def copy():
    try:
        os.unlink(f"{target}/f")
    except FileNotFoundError:
        pass
    return subprocess.Popen(["memefs", "stage-in", source, target], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
names, run = set(), copy()
for _ in range(40): # the name that it is made under is always the same
    while run.poll() is None and not names:
        names = {n for n in os.listdir(target) if n.startswith(".memefs-stage.") and len(n) == 47}
    run.wait()
    if names:
        break
    run = copy()
for name in names:
    for _ in range(25):
        run = copy()
        while run.poll() is None:
            os.symlink(victim, f"{target}/link")
            os.replace(f"{target}/link", f"{target}/{name}")
EOF
equal '600 0' "$(stat -c '%a %u' victim)" "mode and owner of a file outside"

say "unfinished copies in the source are counted"
mkdir left
echo x >left/x
echo y >left/.memefs-stage.0123456789abcdef.0123456789abcdef
stage_in left "$MNT0/left" >out
grep -q '^1 left out: unfinished' out || fail "says $(cat out)"
equal x "$(ls -A "$MNT0/left/left")" "what was copied"

put() { "$HARNESS_DIR/put_file" "$@"; }
nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
requests()
{
    say "the request that makes a small file does what the usual calls may do, and no more"
    mkdir -m 1777 "$MNT0/put"
    equal ok "$(printf 'small' | put "$MNT0/put" new 0640 - - 1000000000)" "a file"
    equal "640 0 0 1000000000 small" "$(stat -c '%a %u %g %Y' "$MNT0/put/new") $(cat "$MNT0/put/new")" "the file"
    equal EEXIST "$(put "$MNT0/put" new 0640 - - 1 </dev/null)" "what is there"
    equal small "$(cat "$MNT0/put/new")" "what was there"
    equal ok "$(put "$MNT0/put" empty 0600 7 8 1 </dev/null)" "given away by root"
    equal "7 8 0" "$(stat -c '%u %g %s' "$MNT0/put/empty")" "owner, group, size"
    for name in . ..; do equal EEXIST "$(put "$MNT0/put" $name 0600 - - 1 </dev/null)" "the name $name"; done
    equal EINVAL "$(put "$MNT0/put" a/b 0600 - - 1 </dev/null)" "a name with a slash"
    equal EINVAL "$(put "$MNT0/put" '' 0600 - - 1 </dev/null)" "no name"
    equal EINVAL "$(put "$MNT0/put" s 4755 - - 1 </dev/null)" "set-user-ID"
    equal ENAMETOOLONG "$(put "$MNT0/put" "$(printf 'n%.0s' {1..256})" 0600 - - 1 </dev/null)" "a long name"
    equal ENOTTY "$(PUT_KEY=$MNT0/put/new put "$MNT0/put" other 0600 - - 1 </dev/null)" "with a file that has a name"
    cp -r "$HARNESS_DIR/put_file" "$T/put_file" && chmod 755 "$T/put_file"
    equal ok "$(nobody "$T/put_file" "$MNT0/put" hers 0644 - - 1 </dev/null)" "by another user"
    equal "65534 65534" "$(stat -c '%u %g' "$MNT0/put/hers")" "its owner"
    equal EPERM "$(nobody "$T/put_file" "$MNT0/put" roots 0644 0 - 1 </dev/null)" "given to root"
    equal EPERM "$(nobody "$T/put_file" "$MNT0/put" roots 0644 - 0 1 </dev/null)" "given to root's group"
    chmod 755 "$MNT0/put"
    ! nobody "$T/put_file" "$MNT0/put" hers2 0644 - - 1 </dev/null 2>"$T/expect.out" || fail "without rights in the directory"
    told 'Permission denied'
    setfacl -d -m g:1000:rx "$MNT0/put"
    equal EAGAIN "$(put "$MNT0/put" inherits 0644 - - 1 </dev/null)" "where a default ACL is"
    setfacl -b "$MNT0/put"
    for size in 16400 40000 65536; do
        head -c "$size" /dev/urandom >"$T/parts"
        equal ok "$(put "$MNT0/put" "of$size" 0640 - - 1 <"$T/parts")" "$size bytes, in parts"
        cmp "$T/parts" "$MNT0/put/of$size"
        rm "$MNT0/put/of$size"
    done
    equal EINVAL "$(head -c 65537 /dev/zero | put "$MNT0/put" long 0640 - - 1)" "more than there may be"
    equal EAGAIN "$(head -c 60000 /dev/zero | PUT_GAP=1 put "$MNT0/put" gap 0640 - - 1)" "a part that is missing"
    equal EEXIST "$(head -c 20000 /dev/zero | put "$MNT0/put" new 0640 - - 1)" "what is there, in parts"
    equal ok "$(head -c 20000 /dev/zero | put "$MNT0/put" given 0600 7 8 1)" "given away, in parts"
    equal "7 8 20000" "$(stat -c '%u %g %s' "$MNT0/put/given")" "owner, group, size"
    rm "$MNT0/put/given"
    equal "empty hers new" "$(find "$MNT0/put" -maxdepth 1 -type f -printf '%f\n' | sort | xargs)" "files"

    say "its descriptor gives no rights"
    mkdir "$MNT0/rights"
    mkdir -m 700 "$MNT0/rights/closed"
    equal EPERM "$(PUT_CALLER=65534 put "$MNT0/rights/closed" planted 0755 - - 1 </dev/null)" "by who has inherited it"
    mkdir -m 777 "$MNT0/rights/later"
    equal EPERM "$(PUT_CALLER=65534 put "$MNT0/rights/later" planted 0755 - - 1 </dev/null)" "likewise, who may write there"
    equal ok "$(PUT_OPENER=65534 PUT_CALLER=65534 put "$MNT0/rights/later" f 0644 - - 1 </dev/null)" "with rights"
    equal EACCES "$(PUT_OPENER=65534 PUT_CALLER=65534 PUT_THEN="chmod 755 '$MNT0/rights/later'" \
        put "$MNT0/rights/later" after 0644 - - 1 </dev/null)" "without them by now"
    setfacl -m u:65534:rwx "$MNT0/rights/closed"
    equal ok "$(PUT_OPENER=65534 PUT_CALLER=65534 put "$MNT0/rights/closed" acl 0644 - - 1 </dev/null)" "by an ACL"
    equal EACCES "$(PUT_OPENER=65534 PUT_CALLER=65534 PUT_THEN="setfacl -b '$MNT0/rights/closed'" \
        put "$MNT0/rights/closed" after 0644 - - 1 </dev/null)" "without the ACL by now"
    chgrp 4242 "$MNT0/rights/later" && chmod 570 "$MNT0/rights/later"
    equal ok "$(setpriv --reuid 65534 --regid 65534 --groups 7,4242 "$T/put_file" "$MNT0/rights/later" member 0644 - - 1 \
        </dev/null)" "by a group"
    chown 65534 "$MNT0/rights/later"
    equal ok "$(put "$MNT0/rights/later" root 0644 - - 1 </dev/null)" "by a capability"
    equal "acl f member root" "$(find "$MNT0/rights/closed" "$MNT0/rights/later" -type f -printf '%f\n' | sort | xargs)" "files"
    equal EACCES "$(put "$MNT0" .memefs 0644 - - 1 </dev/null)" "the name of the mount's own files"

    say "files of up to 64 KiB need no rename"
    mkdir "$T/sizes"
    for size in 0 1 16300 16383 16384 32000 49152 65535 65536; do head -c "$size" /dev/urandom >"$T/sizes/$size"; done
    chmod 640 "$T/sizes/32000" && chown 7:8 "$T/sizes/49152"
    renames() { awk '/^memefs_operation_duration_seconds.operation="rename"/ { n += $2 } END { print n + 0 }' "$MNT0/.memefs/stats"; }
    mkdir "$MNT0/sizes"
    before=$(renames)
    stage_in "$T/sizes" "$MNT0/sizes" >/dev/null
    equal "$before" "$(renames)" "renames"
    diff -r "$T/sizes" "$MNT0/sizes/sizes"
    head -c 65537 /dev/urandom >"$T/sizes/65537"
    stage_in "$T/sizes" "$MNT0/sizes" >/dev/null
    equal $((before + 1)) "$(renames)" "renames, with one of more"
    diff -r "$T/sizes" "$MNT0/sizes/sizes"
    equal "$(cd "$T/sizes" && stat -c '%n %a %u %g %y' -- *)" "$(cd "$MNT0/sizes/sizes" && stat -c '%n %a %u %g %y' -- *)" "attributes"

    say "files that it is not for"
    mkdir "$T/odd"
    truncate -s 12000 "$T/odd/sparse"
    stage_in "$T/odd" "$MNT0/odd" >/dev/null
    equal 0 "$(stat -c %b "$MNT0/odd/odd/sparse")" "blocks of a hole"
    head -c 9000 /dev/urandom >"$T/long"
    ! (ulimit -f 4 && stage_in "$T/long" "$MNT0/odd") >/dev/null 2>&1 || fail "a file longer than the process may write"
    [ ! -e "$MNT0/odd/long" ] || fail "it is there"
    if [ ! -e /sys/fs/selinux/enforce ] && setfattr -n security.selinux -v label "$T/long" 2>/dev/null; then
        stage_in "$T/long" "$MNT0/odd" >/dev/null
        equal label "$(getfattr --only-values -n security.selinux "$MNT0/odd/long")" "label"
    fi
}
if python3 -c 'import os, sys; os.open(sys.argv[1], os.O_TMPFILE | os.O_WRONLY)' "$MNT0" 2>/dev/null; then
    requests
else
    say "no O_TMPFILE on mounts, which Linux has from 6.1 on: the request that makes a small file is not tested"
fi

say "that a file is no terminal is no error"
python3 -c 'import os, sys; os.isatty(os.open(sys.argv[1], os.O_RDONLY))' "$MNT0/sums/one"
grep -F 'duration_seconds{operation="ioctl"}' "$MNT0/.memefs/stats" >/dev/null || fail "the request is not counted"
! grep -F 'errors_total{operation="ioctl",errno="other"}' "$MNT0/.memefs/stats" || fail "it counts as an error"

say "a directory that a list comes back to, where several processes copy"
mkdir links
for i in {1..300}; do
    ln -s "t$i" "links/l$i"
    printf 'links/l%s\tx%s/l%s\n' "$i" $((i % 2)) "$i"
done >lines
stage_in --shared --manifest lines "$MNT0/links" >out 2>&1 || fail "fails: $(cat out)"
equal 300 "$(find "$MNT0/links" -type l | wc -l)" "links"

say "a list's directory in its own source"
mkdir -p "$MNT0/own/x"
echo file >"$MNT0/own/x/f"
printf '%s\t%s\n' "$MNT0/own/x" x/y >lines
expect_fail 1 stage_in --manifest lines "$MNT0/own"
told 'not copied into itself'
[ ! -e "$MNT0/own/x/y" ] || fail "copied into itself"
deployment_stop
