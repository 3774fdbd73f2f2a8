# Looks at a folder each second, and prints how it stands whenever that is not as before. Input: an id,
# the depth or `-`, the name; its end ends it. Prints names and what each is as list.sh does, with a NUL
# before and after; and `gone` where the folder is no more.
command -v md5sum >/dev/null || refuse 'lacking md5sum'
IFS= read -r id && IFS= read -r depth || exit 125
read_text
must stat -L -c %s -- "$text"
[ -d "$text" ] || refuse 'Not a directory'
cd -- "$text" 2>/dev/null || refuse 'Permission denied'
for base in /dev/shm /tmp; do [ -d "$base" ] && [ -w "$base" ] && break; done
new=$base/.sandpool-watch-$id
exec 5<&0
trap 'rm -f "$new"; kill "$watcher" 2>/dev/null; exit' TERM HUP INT
(
  while IFS= read -r _; do :; done
  kill -s TERM "$$"
) <&5 >/dev/null 2>&1 &
watcher=$!
[ "$depth" = - ] && limit= || limit="-maxdepth $depth"
umask 077
is=$(stat -c '%d %i' .)
echo folder
before=
while :; do
  [ "$(stat -L -c '%d %i' -- "$text" 2>/dev/null)" = "$is" ] || break
  {
    find . -mindepth 1 $limit -name '.sandpool-*.part' -prune -o -print0
    printf '\0'
    find . -mindepth 1 $limit -name '.sandpool-*.part' -prune -o -print0 | xargs -0 stat -c "$FORMAT %n" --
    printf '\0\0'
  } >"$new" 2>/dev/null
  now=$(md5sum <"$new")
  [ "$now" = "$before" ] || cat "$new"
  before=$now
  sleep 1
done
rm -f "$new"
kill "$watcher" 2>/dev/null
printf '\0gone\0\0'
