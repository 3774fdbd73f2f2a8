# Prints what a process printed and prints. Input: an id of the reader, where to begin (`latest`, a
# position, or `-` for the oldest), `yes` where the process is to wait; the end of the input ends it.
# Prints `at POSITION`, then segments as they are, and after the last `gone`, or `end` and what is
# known of the process.
IFS= read -r reader && IFS= read -r from && IFS= read -r paced || exit 125

leave() {
  rm -f "w.$reader" "m.$reader" "p.$reader"
  { echo 1<>room; } 2>/dev/null
  kill "$watcher"
} 2>/dev/null

note_place() {
  [ "$paced" = yes ] || return 0
  echo "$segment $$ $reader_began" 1<>"p.$reader"
  [ ! -p room ] || echo 1<>room
}

end_as() {
  leave
  echo "$1"
  [ "$1" = gone ] || describe "$id"
  exit
}

mkfifo "w.$reader" || gone
watcher= printer=
trap 'kill "$printer" 2>/dev/null; leave; exit' TERM HUP INT
exec 3<>"w.$reader" 5<&0
read_began "$$"
reader_began=$began
(
  while IFS= read -r _; do :; done
  kill -s TERM "$$"
) <&5 >/dev/null 2>&1 3>&- &
watcher=$!
exec 5<&-
read_state || end_as gone
segment=$oldest
note_place
read_state || end_as gone
case $from in
  latest) from=$total segment=$newest ;;
  -) from=0 ;;
  *) [ "$from" -le "$total" ] || from=0 ;;
esac
first=$oldest
while [ "$first" -le "$newest" ]; do
  { IFS=' ' read -r _ begins _ <"log.$first"; } 2>/dev/null && [ "$begins" -le "$from" ] && segment=$first
  first=$((first + 1))
done
[ "$segment" -ge "$oldest" ] || segment=$oldest
note_place
echo "at $from"
opened=
while :; do
  : >"m.$reader"
  read_state && [ "$over" != g ] || end_as gone
  if [ -z "$opened" ]; then
    [ "$segment" -ge "$oldest" ] || segment=$oldest
    command exec 4<"log.$segment" || { [ -e state ] || end_as gone; segment=$((segment + 1)); continue; }
    opened=yes
    note_place
  fi 2>/dev/null
  cat <&4 &
  printer=$!
  wait "$printer" || { leave; exit; }
  printer=
  if [ "$segment" -lt "$newest" ]; then
    segment=$((segment + 1)) opened=
  elif [ "$over" = x ]; then
    end_as end
  else
    IFS= read -r _ <&3
  fi
done
