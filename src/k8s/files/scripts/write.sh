# Writes a file beside its name and renames it. Input: the name, an id of the writing, `yes` where what
# is there is replaced, `yes` where folders above are made, permission bits or `-`, which versions are
# replaced (`-` for all, `any`, or words `SIZE:SECONDS.NANOSECONDS` with nine digits behind the point),
# what ends the content, the name of the lock; once it has printed `ready` the content, and its end.
# Prints `made` or `replaced`, and what the file is. Content without its end is thrown away.
read_text
IFS= read -r id && IFS= read -r overwrite && IFS= read -r parents && IFS= read -r mode &&
  IFS= read -r versions && IFS= read -r end && IFS= read -r lock_name || exit 125
folder=${text%/*}
[ "$parents" != yes ] || must mkdir -p -- "${folder:-/}"
resolve "$text"
folder=${real%/*}
# Also says of a name that is too long, or leads nowhere.
found=$(stat -L -c "%a" -- "$real" 2>&1) || case $found in *': No such file or directory') found= ;; *) complain "$found" ;; esac
if [ -d "$real" ]; then refuse 'Is a directory'; fi
[ -z "$found" ] || [ -f "$real" ] || refuse 'not a file'
[ -z "$found" ] || [ "$overwrite" = yes ] || refuse 'File exists'
part=$folder/.sandpool-$id.part
trap 'rm -f -- "$part"; [ -z "$locked" ] || unlock; exit' TERM HUP INT
(umask 077; set -C; : >"$part") 2>/dev/null || {
  why=$( (: >"$part") 2>&1) || complain "${why#*"$part"}"
}
echo ready
why=$(cat 2>&1 >"$part") || {
  rm -f -- "$part"
  (complain "$why")
  read_rest
}
size=$(($(wc -c <"$part") - ${#end}))
if [ "$size" -lt 0 ] || [ "$(tail -c "${#end}" -- "$part" | tr -d '\000')" != "$end" ]; then
  rm -f -- "$part"
  exit
fi
fail() {
  rm -f -- "$part"
  [ -z "$locked" ] || unlock
  complain "$1"
}
why=$(dd if=/dev/null of="$part" bs=1 seek="$size" 2>&1) || fail "$why"
lock "$lock_name" || fail "$why"
there=$(stat -L -c "$FORMAT" -- "$real" 2>/dev/null) || there=
if [ "$versions" != - ]; then
  [ "$there" ] || fail 'it has changed'
  set -- $there
  nanos=${7#*.}
  [ "$nanos" != "$7" ] || nanos=000000000
  case " $versions " in ' any ' | *" $2:$3.$nanos "*) ;; *) fail 'it has changed' ;; esac
fi
[ ! -d "$real" ] || fail 'Is a directory'
[ "$mode" != - ] || mode=${found:-644}
why=$(chmod "$mode" "$part" 2>&1) || fail "$why"
if [ "$overwrite" = yes ]; then
  why=$(mv -f -- "$part" "$real" 2>&1) || fail "$why"
else
  why=$(ln -- "$part" "$real" 2>&1) || fail "$why"
  rm -f -- "$part"
fi
unlock
[ "$there" ] && echo replaced || echo made
show "$real" -L
