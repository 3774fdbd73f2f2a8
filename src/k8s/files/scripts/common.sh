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

# Runs a command whose complaint is the refusal.
must() {
  why=$("$@" 2>&1 </dev/null) || refuse "${why%%"$nl"*}"
}

for tool in stat cat rm mv ln mkdir rmdir chmod readlink find xargs head tail dd wc tr sleep; do
  command -v "$tool" >/dev/null || refuse "lacking $tool"
done

# Prints what `$1` is, a line; the last link is followed where `$2` is `-L`.
show() {
  shown=$(stat ${2:-} -c "$FORMAT" -- "$1" 2>&1) || refuse "$shown"
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

# Writers of the container come one after the other to their renaming.
lock() {
  for each in /dev/shm /tmp; do [ -d "$each" ] && [ -w "$each" ] && break; done
  lock=$each/$1
  tenths=0
  until (set -C; echo "$$" >"$lock") 2>/dev/null; do
    owner=
    read -r owner 2>/dev/null <"$lock"
    [ -n "$owner" ] && ! kill -0 "$owner" 2>/dev/null && rm -f "$lock"
    sleep 0.05 2>/dev/null || sleep 1
    tenths=$((tenths + 1))
    [ "$tenths" -lt 200 ] || refuse 'Device or resource busy'
  done
}

unlock() {
  rm -f "$lock"
}
