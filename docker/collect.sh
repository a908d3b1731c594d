#!/bin/sh
# collect.sh ROOT: lay out in ROOT what runs in the container: the installed
# program with its plugins and configurations, the libraries that these load, and
# the few files that the C library reads.
set -eu
root=$1
mkdir -p "$root/etc"

copy() {
    for path; do
        mkdir -p "$root${path%/*}"
        cp -a "$path" "$root${path%/*}/"
    done
}

copy /usr/bin/lockstep /usr/lib/*/liblockstep.so* /usr/lib/*/lockstep \
    /usr/share/lockstep
# Each under the name by which it is loaded, its links followed.
ldd /usr/bin/lockstep /usr/lib/*/lockstep/plugins/*.so |
    sed -n 's,^.*[[:space:]]\(/[^ ]*\) (0x.*,\1,p' | sort -u |
    while read -r library; do
        [ -e "$root$library" ] || {
            mkdir -p "$root${library%/*}"
            cp -L "$library" "$root$library"
        }
    done

echo 'lockstep:x:10001:10001::/out:/' >"$root/etc/passwd"
echo 'lockstep:x:10001:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
# Volumes begin as copies of these. They are for whichever user a container is
# given, as long as it is one.
mkdir -m 1777 "$root/out" "$root/identity" "$root/tmp"
