# Starts a process. Input: its id, `yes` where it has input, `yes` where it has a terminal, seconds
# until it is killed or `-`, how many may be live, what is to be kept of it as one line, columns, rows;
# and then the order as `child` reads it. Prints one line: `started`, `late` where it may not have
# been possible to run the program, `exists`, `full`, `roomless`, `refused FIELD WHY`, or `lacking WHAT`.
SEGMENT=262144 SEGMENTS=5 RAW=524288 MEMORY=16777216

# Waits for its record, reads the order from descriptor 5, says what came of it on 3, and becomes the
# program. What is refused leaves nothing behind.
child='refuse() {
  cd ..
  rm -rf "./${sandpool_home##*/}"
  echo "refused $1" >&3
  while IFS= read -r sandpool_line <&5; do :; done
  exit 125
}
sandpool_origin=$SANDPOOL_ORIGIN sandpool_home=$PWD
if [ "$SANDPOOL_TTY" ]; then
  exec 5<order 3>said
  rm -f order said child
  tty >ttyname
  stty cols "$SANDPOOL_COLS" rows "$SANDPOOL_ROWS"
  TERM=xterm-256color
  export TERM
fi 2>/dev/null
unset -v SANDPOOL_TTY SANDPOOL_COLS SANDPOOL_ROWS SANDPOOL_ORIGIN
: "${LANG:=C.UTF-8}"; export LANG
echo "$$" >inner
IFS= read -r _ <go
cd -- "$sandpool_origin" 2>/dev/null || cd /
umask 022
while IFS= read -r sandpool_kind <&5 && IFS= read -r sandpool_more <&5 && IFS= read -r sandpool_value <&5; do
  while [ "$sandpool_more" -gt 0 ]; do
    IFS= read -r sandpool_line <&5
    sandpool_value=$sandpool_value"
"$sandpool_line
    sandpool_more=$((sandpool_more - 1))
  done
  case $sandpool_kind in
    cwd) cd -- "$sandpool_value" 2>/dev/null || { cd "$sandpool_home"; refuse cwd; } ;;
    env) command export "$sandpool_value" ;;
    arg) set -- "$@" "$sandpool_value" ;;
    run)
      IFS= read -r sandpool_line <&5 # the end of the input, for which await-end.sh says why
      unset -v sandpool_kind sandpool_more sandpool_value sandpool_line sandpool_origin sandpool_home
      case $1 in
        */*) [ -x "$1" ] && [ ! -d "$1" ] ;;
        *) command -v -- "$1" >/dev/null 2>&1 ;;
      esac && echo "started $$" >&3 || echo "late $$" >&3
      exec "$@" 3>&- 5<&- ;;
  esac
done
cd "$sandpool_home"
refuse order'

# Appends what comes in to the output as of the kind $1, until nobody can print any more. One line of
# `lock` is what the writers of the output pass among themselves.
move_output() {
  while [ -p lock ]; do
    dd bs=65536 count=1 2>/dev/null >"$1.chunk"
    failed=$?
    size=$(wc -c 2>/dev/null <"$1.chunk")
    if [ "${size:-0}" -gt 0 ]; then
      append "$1" $((size)) || break
    elif [ "$failed" = 0 ]; then
      break
    fi
  done
  rm -f "$1.chunk"
  exec cat >/dev/null 2>&1
}

append() {
  IFS= read -r _ <&9
  read_state || return 1
  [ "$over" = - ] || { echo >&9; return 1; }
  head="$1 $total $2"
  if { echo "$head" && cat "$1.chunk"; } 2>/dev/null >>"log.$newest"; then
    filled=$((filled + $2)) raw=$((raw + ${#head} + 1 + $2))
  else # there is no room: it is dropped whole
    dd if=/dev/null of="log.$newest" bs=1 seek="$raw" 2>/dev/null
  fi
  total=$((total + $2))
  if [ "$filled" -ge "$SEGMENT" ] || [ "$raw" -ge "$RAW" ]; then begin_segment; fi
  echo "$newest $filled $raw $total $oldest - ." 1<>state
  echo >&9
  poke_readers
}

begin_segment() {
  newest=$((newest + 1)) filled=0
  head="s $total 0"
  raw=$((${#head} + 1))
  echo "$head" >"log.$newest"
  while [ $((newest - oldest)) -ge "$SEGMENTS" ]; do
    echo "$newest $filled $raw $total $oldest - ." 1<>state
    [ "$oldest" -gt 0 ] || await_first
    await_paced
    rm -f "log.$oldest"
    oldest=$((oldest + 1))
  done
}

# Gives whoever started the process two seconds to begin to read, before anything is dropped.
await_first() {
  tenths=0
  while [ "$tenths" -lt 20 ] && [ -p lock ]; do
    for wake in w.*; do [ -p "$wake" ] && return; done
    sleep 0.1 && tenths=$((tenths + 1)) || { sleep 1 && tenths=$((tenths + 10)); }
  done 2>/dev/null
}

# Waits until no reader that the process is to wait for is at the oldest segment; those that are gone
# are forgotten.
await_paced() {
  for paced in p.*; do
    while [ -s "$paced" ]; do
      at= reader= reader_began=
      IFS=' ' read -r at reader reader_began <"$paced"
      [ "${at:-0}" -le "$oldest" ] || break
      read_began "${reader:-0}"
      [ "$began" ] && [ "$began" = "$reader_began" ] || { rm -f "$paced"; break; }
      [ -p lock ] || return 0
      poke_readers
      [ -e ticking ] || tick &
      IFS= read -r _ <&7
    done
  done 2>/dev/null
}

# Has who waits for readers look again each second, whether they live.
tick() {
  : >ticking
  while [ -p lock ]; do
    sleep 1
    set -- p.*
    [ -e "$1" ] || break
    echo >&7
  done
  rm -f ticking
  echo >&7
}

# Hands over what was put into `q.*`, one after the other; `eof` says that there will be no more. The
# name of the last that was taken stays, for who would take it back.
move_input() {
  exec 8>in
  taken=
  while :; do
    is_last=
    [ -e eof ] && is_last=yes
    for each in q.*; do
      piece=${each#q.}
      mv "$each" "t.$piece" 2>/dev/null || continue
      [ -z "$taken" ] || rm -f "t.$taken"
      taken=$piece
      answer "$piece" taken
      cat "t.$piece" >&8 2>/dev/null || break 2
      : >"t.$piece"
    done
    if [ "$is_last" ]; then
      [ "$tty" = yes ] || break
      rm -f eof
      printf '\004' >&8
    fi
    IFS= read -r _ <&6
  done
  close_input
}

answer() {
  [ -p "k.$1" ] && echo "$2" 1<>"k.$1"
}

close_input() {
  : >closed
  for each in q.*; do
    mv "$each" closed 2>/dev/null && answer "${each#q.}" closed
  done
}

end_by_time() {
  trap 'kill "$sleeper"; exit' TERM
  sleep "$1" &
  sleeper=$!
  wait "$sleeper"
  : >timedout
  read -r pid 2>/dev/null <inner || pid=$2
  kill -KILL "-$pid" || kill -KILL "$pid"
}

write_record() {
  echo "$* ." >record.new && mv record.new record
}

# Waits for a process from before its start until after its end. Descriptors are closed by `exec`, since
# shells only put aside what the redirections of a function close.
launch() {
  IFS=' ' read -r launcher _ </proc/self/stat
  read_began "$launcher"
  launcher_began=$began
  exec 9<>lock 7<>room 6<>wake 4<>go
  echo >&9
  echo "s 0 0" >log.0
  echo "0 0 6 0 0 - ." >state
  input=/dev/null pump= timer= teller=
  if [ "$stdin" = yes ]; then
    input=in
    (exec 3>&- 5<&-; move_input) &
    pump=$!
  else
    : >closed
  fi
  (exec <out 3>&- 4>&- 5<&- 6>&-; move_output o) &
  out=$! err=
  SANDPOOL_ORIGIN=$origin SANDPOOL_TTY= SANDPOOL_COLS=$cols SANDPOOL_ROWS=$rows
  if [ "$tty" = yes ]; then
    # What makes the terminal stays beside the program, and would keep these descriptors open.
    SANDPOOL_TTY=yes
    cat <&5 >order && echo "$child" >child && mkfifo said || return
    (exec 4>&- 5<&- 6>&- 7>&- 9>&-; IFS= read -r word <said && echo "$word" >&3) &
    teller=$!
    export SANDPOOL_ORIGIN SANDPOOL_TTY SANDPOOL_COLS SANDPOOL_ROWS
    exec 5<&-
    (
      exec 3>&- 4>&- 6>&- 7>&- 9>&-
      SHELL=/bin/sh exec script -q -e -c '. ./child' /dev/null <in >out 2>&1
    ) &
  else
    (exec <err 3>&- 4>&- 5<&- 6>&-; move_output e) &
    err=$!
    export SANDPOOL_ORIGIN SANDPOOL_TTY SANDPOOL_COLS SANDPOOL_ROWS
    # A shell such as bash gives it a group without that program too.
    [ "$session" ] || set -m
    $session /bin/sh -c "$child" sh <"$input" >out 2>err 4>&- 6>&- 7>&- 9>&- &
  fi
  pid=$!
  exec 5<&-
  read_began "$pid"
  pid_began=${began:-0}
  IFS=' ' read -r started _ </proc/uptime
  write_record R "$launcher" "$launcher_began" "$pid" "$pid_began" "$started" - -
  exec 3>&-
  echo >&4
  if [ "$seconds" != - ]; then
    (exec 4>&- 6>&- 7>&- 9>&-; end_by_time "$seconds" "$pid") &
    timer=$!
  fi
  wait "$pid"
  code=$?
  [ -z "$timer" ] || kill "$timer"
  [ -e timedout ] && [ "$code" -ge 128 ] && code=124
  IFS=' ' read -r ended _ </proc/uptime
  [ -z "$teller" ] || kill "$teller"
  [ -z "$pump" ] || { kill "$pump"; close_input; }
  write_record E "$launcher" "$launcher_began" "$pid" "$pid_began" "$started" "$ended" "$code"
  await_movers
  IFS= read -r _ <&9
  read_state && echo "$newest $filled $raw $total $oldest x ." 1<>state
  echo >&9
  rm -f in out err child order said
  poke_readers
}

# Waits for the last of the output; of what holds it open beyond the process, for its pauses of two
# seconds.
await_movers() {
  rounds=0 seen=-1
  trap : USR1
  while [ "$rounds" -lt 5 ] && { kill -0 "$out" || { [ "$err" ] && kill -0 "$err"; }; }; do
    read_state && [ "$total" != "$seen" ] || break
    seen=$total
    { sleep 2; kill -s USR1 "$launcher"; } &
    nap=$!
    wait $out $err
    kill "$nap"
    rounds=$((rounds + 1))
  done
  trap '' USR1
}

IFS= read -r id && IFS= read -r stdin && IFS= read -r tty && IFS= read -r seconds && IFS= read -r most &&
  IFS= read -r told && IFS= read -r cols && IFS= read -r rows || exit 125
for tool in mkfifo dd wc cat mv rm mkdir sleep printf; do
  command -v "$tool" >/dev/null || { echo "lacking $tool"; exit; }
done
session=
command -v setsid >/dev/null && session=setsid
if [ "$tty" = yes ]; then
  for tool in script stty tty; do
    command -v "$tool" >/dev/null || { echo "refused tty $tool"; exit; }
  done
fi
find_base || { echo 'lacking a folder that can be written to'; exit; }
origin=$PWD
mkdir -p "$base/$room" 2>/dev/null && cd "$base/$room" || { echo 'lacking a folder that can be written to'; exit; }

# Counts the live ones, and forgets what ended long ago, before 64 others or before others whose
# output is 16 MiB, and what was never whole.
look_around() {
  live=0 past=0 bytes=0 first= first_ended= old=
  for each in */; do
    each=${each%/}
    cd "$each" 2>/dev/null || continue
    if ! read_record; then
      born=0
      { read -r born <born; } 2>/dev/null
      [ $((${now%.*} - ${born%.*})) -le 60 ] && live=$((live + 1)) || old="$old $each"
    elif is_live; then
      live=$((live + 1))
    elif [ "$status" = E ] && [ $((${now%.*} - ${ended%.*})) -gt 600 ]; then
      old="$old $each"
    else
      past=$((past + 1)) ended=${ended%.*}
      read_state && bytes=$((bytes + (newest - oldest) * SEGMENT + raw))
      [ "$ended" = - ] && ended=0
      [ -z "$first" ] || [ "$ended" -lt "$first_ended" ] && first=$each first_ended=$ended
    fi
    cd "$base/$room" || exit 125
  done
  [ "$past" -ge 64 ] || [ "$bytes" -gt "$MEMORY" ] && old="$old $first"
  for each in $old; do rm -rf "./$each"; done
  [ "$bytes" -le "$MEMORY" ]
}

IFS=' ' read -r now _ </proc/uptime
until look_around; do :; done
[ -d "$id" ] && { echo exists; exit; }
[ "$live" -lt "$most" ] || { echo full; exit; }
mkdir "$id" 2>/dev/null || { [ -d "$id" ] && echo exists || echo roomless; exit; }
cd "$id" && echo "$now" >born && printf '%s\n' "$told" >told && mkfifo out err lock room wake in go && [ -s told ] || {
  cd .. && rm -rf "./$id"
  echo roomless
  exit
}
exec 3>&1 5<&0
trap - EXIT # what is left of the input is the child's
(launch) </dev/null >/dev/null 2>&1 &
