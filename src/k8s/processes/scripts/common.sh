# What every script of processes begins with. Its first line of input names the container's folder,
# `room`, in the Pod's memory; no other Pod has one of that name, also where they share a machine.
umask 077
IFS= read -r room || exit 125

# Sets `base` to where the folder is, or else could be made.
find_base() {
  base=
  for each in /dev/shm /tmp /var/tmp /run; do
    [ -d "$each/$room" ] && base=$each && return
  done
  for each in /dev/shm /tmp /var/tmp /run; do
    [ -d "$each" ] && [ -w "$each" ] && [ -x "$each" ] && base=$each && return
  done
  return 1
}

# Sets `began`: when the process $1 began, in ticks since the machine did; empty where there is none.
read_began() {
  began= text=
  [ -r "/proc/$1/stat" ] || return 0
  { while IFS= read -r line; do text="$text $line"; done <"/proc/$1/stat"; } 2>/dev/null
  set -- ${text##*) }
  began=${20:-}
  case ${1:-Z} in Z | X) began= ;; esac
}

# Reads the record of the process in this folder: `status` R or E, the launcher and the process with
# when each began, seconds of the machine at start and end, and the code.
read_record() {
  status= launcher= launcher_began= pid= pid_began= started= ended= code= whole=
  { IFS=' ' read -r status launcher launcher_began pid pid_began started ended code whole <record; } 2>/dev/null
  [ "$whole" = . ]
}

# Whether a process whose record says that it runs does.
is_live() {
  [ "$status" = R ] || return 1
  read_began "$launcher"
  [ "$began" = "$launcher_began" ] && return
  read_began "$pid"
  [ "$began" = "$pid_began" ]
}

# Reads how far the output is: the newest segment, its bytes, the bytes of all, the oldest segment,
# and `-`, or `x` once there is no more, or `g` where it was removed. It is written in one piece, but
# may be seen between.
read_state() {
  tries=0
  while [ "$tries" -lt 1000 ]; do
    whole=
    { IFS=' ' read -r newest filled raw total oldest over whole <state; } 2>/dev/null || [ -d . ] || return 1
    [ "$whole" = . ] && return
    [ -e state ] || return 1
    tries=$((tries + 1))
  done
  return 1
}

# Has each reader look anew. What marks it is taken back by the reader before it looks: so that at
# most a few bytes wait for one that is slow, which can't hold up whoever pokes it.
poke_readers() {
  for wake in w.*; do
    [ -p "$wake" ] || continue
    mark=m.${wake#w.}
    [ -s "$mark" ] && continue
    echo 1 >"$mark"
    echo 1<>"$wake"
  done 2>/dev/null
}

# Prints what is known of the process $1 in this folder, a line: its id, `R`, `E` or `L` (ended, nobody
# knows how), its number, seconds of the machine at start, end and now, the code, and what was told
# of it.
describe() {
  read_record && { IFS= read -r told <told; } 2>/dev/null || return 0
  if [ "$status" = R ] && ! is_live; then
    read_record
    [ "$status" = E ] || status=L
  fi 2>/dev/null
  inner= now=
  { read -r inner <inner; } 2>/dev/null
  IFS=' ' read -r now _ </proc/uptime
  # Some shells' echo would take what follows a backslash for an order.
  printf '%s\n' "$1 $status ${inner:-$pid} $started $ended $now $code $told"
}
