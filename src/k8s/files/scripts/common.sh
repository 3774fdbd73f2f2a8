# What every script of files begins with. What is refused ends with a line `! WHY`, in the words of the
# tool that could not do it, which are the C library's.
umask 022
LC_ALL=C
export LC_ALL
FORMAT='%f %s %Y %u %g %y'
nl='
'

# Reads a text of any bytes but NUL into `text`: how many line ends it has, and itself.
read_text() {
  IFS= read -r ends && IFS= read -r text || exit 125
  while [ "$ends" -gt 0 ]; do
    IFS= read -r rest || exit 125
    text=$text$nl$rest
    ends=$((ends - 1))
  done
}

refuse() {
  echo "! $*"
  exit
}

# Refuses with a tool's complaint: the C library's words are behind its last colon. Before that are names,
# which may be of any words.
complain() {
  why=${1#*"$text"}
  why=${why%%"$nl"*}
  refuse "${why##*: }"
}

# What ends while content still comes reads the rest: else the way may break before its refusal was heard.
# It stays a moment longer: an API server may cut a way whose far end has gone before all that was said
# there has passed.
read_rest() {
  cat >/dev/null
  exec sleep 1
}

# Runs a command whose complaint is the refusal.
must() {
  why=$("$@" 2>&1 </dev/null) || complain "$why"
}

for tool in stat cat rm mv ln mkdir rmdir chmod readlink find xargs head tail dd wc tr sleep; do
  command -v "$tool" >/dev/null || refuse "lacking $tool"
done

# Waits for `printer`, which prints in the background. Where the input ends before it does, so did the way
# to whoever takes that, and it would wait for ever: it is killed.
await_printer() {
  exec 5<&0
  trap 'kill "$printer" 2>/dev/null; kill "$watcher" 2>/dev/null; exit' TERM HUP INT
  (
    while IFS= read -r _; do :; done
    kill -s TERM "$$"
  ) <&5 >/dev/null 2>&1 &
  watcher=$!
  exec 5<&-
  wait "$printer"
  printed=$?
  kill "$watcher" 2>/dev/null
  return "$printed"
}

# Prints what `$1` is, a line; the last link is followed where `$2` is `-L`.
show() {
  shown=$(stat ${2:-} -c "$FORMAT" -- "$1" 2>&1) || complain "$shown"
  echo "$shown"
}

# Sets `real` to where the links of the name `$1` lead, which may be nothing yet.
resolve() {
  real=$1 links=0
  while [ -L "$real" ]; do
    [ "$links" -lt 40 ] || refuse 'Too many levels of symbolic links'
    says=$(readlink -n "$real" && echo .) || refuse 'Permission denied'
    says=${says%.}
    case $says in
      /*) real=$says ;;
      *) real=${real%/*}/$says ;;
    esac
    links=$((links + 1))
  done
}

# Writers of the container come one after the other to their renaming. The lock is a link that says who
# holds it: it is there whole or not at all, also where there is no room for a byte. Sets `why` where it
# can't be had.
locked=
lock() {
  for each in /dev/shm /tmp; do [ -d "$each" ] && [ -w "$each" ] && break; done
  lock=$each/$1
  tenths=0
  until why=$(ln -sn "$$" "$lock" 2>&1); do
    owner=$(readlink "$lock" 2>/dev/null) || [ ! -f "$lock" ] || rm -f "$lock"
    [ -n "$owner" ] && ! kill -0 "$owner" 2>/dev/null && rm -f "$lock"
    sleep 0.05 2>/dev/null || sleep 1
    tenths=$((tenths + 1))
    [ "$tenths" -lt 200 ] && continue
    [ ! -L "$lock" ] || why='Device or resource busy'
    return 1
  done
  locked=yes
}

unlock() {
  rm -f "$lock"
}
