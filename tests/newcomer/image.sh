# image.sh ROOT USER FOLDER NAME=VALUE... COMMAND...
# Run a command in files of an image as process 1, which can write to /tmp alone.
set -eu
root=$1 user=$2 folder=$3
shift 3
mount --make-rprivate /
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
exec setpriv --no-new-privs chroot --userspec="$user" "$root" env -i -C "$folder" "$@"
