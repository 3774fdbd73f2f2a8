# Unpacks an archive beside, in a folder of its own, and renames what came of it into place. Input: the
# folder, an id of the work; once it has printed `ready` the archive, whose names all begin with `t/`, and
# whose last entry is a file `end`. An archive without that was cut off, and is thrown away. Prints `done`.
command -v tar >/dev/null || refuse 'lacking tar'
read_text
IFS= read -r id || exit 125
if [ ! -d "$text" ]; then
  if [ -e "$text" ] || [ -L "$text" ]; then refuse 'Not a directory'; fi
  must mkdir -p -- "$text"
fi
cd -- "$text" 2>/dev/null || refuse 'Permission denied'
part=.sandpool-$id.part
trap 'rm -rf -- "$part"; exit' TERM HUP INT
(umask 077; mkdir -- "$part") 2>/dev/null || must mkdir -- "$part"
device=$(stat -c %d .)

# What is in the folder $1 goes into the folder $2; says of what can not. Folders that are new go whole.
merge() (
  from=$1 to=$2
  for each in "$from"/*/ "$from"/.[!.]*/ "$from"/..?*/; do
    each=${each%/}
    [ -d "$each" ] && [ ! -L "$each" ] || continue
    there=$to/${each##*/}
    if [ -L "$there" ]; then
      printf 'a link is in the way: %s\n' "${there#./}"
    elif [ -d "$there" ]; then
      if [ "$(stat -c %d -- "$there")" = "$device" ]; then merge "$each" "$there"; else
        printf 'a mount is in the way: %s\n' "${there#./}"
      fi
    elif [ -e "$there" ]; then
      printf 'a file is in the way: %s\n' "${there#./}"
    else
      mv -f -- "$each" "$there" 2>&1
    fi
  done
  find "$from" -mindepth 1 -maxdepth 1 ! -type d -exec /bin/sh -c 'exec mv -f -- "$@" "$0/" 2>&1' "$to" {} +
)

# Some versions of busybox else leave links out.
EXTRACT_UNSAFE_SYMLINKS=1
export EXTRACT_UNSAFE_SYMLINKS
echo ready
why=$({ (cd -- "$part" && exec tar -xpof -) 2>&1 >/dev/null; echo "status $?"; } | tail -c 600 | tr '\n' ' ')
case $why in
  *'status 0 ') ;;
  *)
    rm -rf -- "$part"
    (refuse "unpack: $why")
    read_rest
    ;;
esac
if [ "$(cat "$part/end" 2>/dev/null)" != whole ]; then
  rm -rf -- "$part"
  exit
fi
why=
[ ! -d "$part/t" ] || why=$(merge "$part/t" . | head -c 1000 | tr '\n' ' ')
rm -rf -- "$part"
[ -z "$why" ] || refuse "place: $why"
echo 'done'
