# Does something to a process: `signal NAME`, `resize COLS ROWS`, `eof`, `remove`, `take PIECE` (back,
# of its input). Prints `done`, `ended`, `closed`, `late` or `unable`.
IFS=' ' read -r deed first second || exit 125

# The group that signals reach: of a terminal the one in its foreground.
find_group() {
  inner=
  { read -r inner <inner; } 2>/dev/null
  inner=${inner:-$pid} group=$inner
  [ -e ttyname ] || return 0
  text=
  { while IFS= read -r line; do text="$text $line"; done <"/proc/$inner/stat"; } 2>/dev/null
  set -- ${text##*) }
  [ "${6:-0}" -gt 0 ] && group=$6
}

# Written so that dash, bash and busybox mean the same: after `--` busybox sends it and says that it
# failed.
send() {
  kill "-$1" "-$2" 2>/dev/null || kill "-$1" "$2" 2>/dev/null
}

# Waits a tenth of a second, or a whole one where that can't be.
doze() {
  sleep 0.1 2>/dev/null || sleep 1
}

# Kills it, waits until its end is told, and those who read have read it, each for some seconds.
remove() {
  rounds=0 killed=
  while is_live && [ "$status" = R ] && [ "$rounds" -lt 50 ]; do
    find_group
    send KILL "$group"
    [ "$group" = "$inner" ] || send KILL "$inner"
    [ "$inner" = "$pid" ] || send KILL "$pid"
    killed=$inner
    doze
    read_record || break
    rounds=$((rounds + 1))
  done
  while [ "$killed" ] && kill -s 0 -- "-$killed" && [ "$rounds" -lt 50 ]; do
    doze
    rounds=$((rounds + 1))
  done 2>/dev/null
  while read_state && [ "$over" = - ] && [ "$rounds" -lt 100 ]; do
    read_began "$launcher"
    [ "$began" ] && [ "$began" = "$launcher_began" ] || break
    doze
    rounds=$((rounds + 1))
  done
  rounds=0
  while has_readers && [ "$rounds" -lt 20 ]; do
    doze
    rounds=$((rounds + 1))
  done
  read_state && echo "$newest $filled $raw $total $oldest g ." 1<>state
  : >closed
  for each in q.*; do
    [ -p "k.${each#q.}" ] && echo closed 1<>"k.${each#q.}"
  done
  poke_readers
  cd .. && rm -rf "./$id" 2>/dev/null
  rm -rf "./$id"
  [ ! -d "$id" ]
}

has_readers() {
  for wake in w.*; do [ -p "$wake" ] && return; done
  return 1
}

case $deed in
  signal)
    is_live && [ "$status" = R ] || { echo ended; exit; }
    find_group
    send "$first" "$group" && echo 'done' || echo ended
    ;;
  resize)
    is_live && [ "$status" = R ] || { echo ended; exit; }
    read -r name <ttyname && stty cols "$first" rows "$second" <"$name" 2>/dev/null && echo 'done' || echo unable
    ;;
  eof)
    [ "$status" = R ] && [ -e eof ] && { echo 'done'; exit; }
    [ -e closed ] && { echo closed; exit; }
    : >eof
    [ ! -p wake ] || echo 1<>wake
    echo 'done'
    ;;
  take)
    : >"n.$first"
    rm -f "x.$first"
    if mv "q.$first" "x.$first" 2>/dev/null; then rm -f "x.$first"; elif [ -e "t.$first" ]; then echo late; exit; fi
    echo 'done'
    ;;
  remove) remove && echo 'done' || echo unable ;;
esac
