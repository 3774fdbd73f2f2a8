# Changes names. Input: `remove yes` (or `no`, of what is in a folder too), `mkdir MODE yes` (or `no`, those
# above too), or `move yes` (or `no`, over what is there), then the name, and of a move the other.
# Prints `made` or `replaced` of a folder, and what is there then.
IFS=' ' read -r deed first second || exit 125
read_text
name=$text

remove() {
  must stat -c %s -- "$name"
  if [ -L "$name" ] || [ ! -d "$name" ]; then
    must rm -f -- "$name"
  elif [ "$first" = no ]; then
    must rmdir -- "$name"
  else
    case $(rm --help 2>&1) in
      *one-file-system*) must rm -rf --one-file-system -- "$name" ;;
      *) remove_deep ;;
    esac
  fi
  echo removed
}

# As rm of busybox works with whole paths, what is too deep for it is brought up, piece by piece.
remove_deep() {
  pass=0
  while ! why=$(rm -rf -- "$name" 2>&1); do
    case $why in *': File name too long'* | *': Filename too long'*) ;; *) complain "$why" ;; esac
    [ "$pass" -lt 400 ] || refuse 'File name too long'
    pass=$((pass + 1))
    find "$name" -mindepth 12 -maxdepth 12 -type d -exec /bin/sh -c '
      for each; do mv "$each" "$0/.sandpool-deep-$$-$((count += 1))"; done' "$name" {} + 2>/dev/null
  done
}

make_folder() {
  made=made
  if [ "$second" = yes ]; then
    if [ -d "$name" ]; then made=replaced; elif [ -e "$name" ] || [ -L "$name" ]; then refuse 'File exists'; fi
    above=${name%/*}
    must mkdir -p -- "${above:-/}"
  fi
  [ "$made" = replaced ] || must mkdir -m "$first" -- "$name"
  echo "$made"
  show "$name" -L
}

move() {
  read_text
  to=$text folder=${text%/*}
  must stat -c %s -- "$name"
  here=$(stat -c %d -- "$name") there=$(stat -L -c %d -- "${folder:-/}" 2>&1) || complain "$there"
  [ "$here" = "$there" ] || refuse 'Invalid cross-device link'
  case $to/ in "$name"/*) [ "$to" = "$name" ] || refuse 'subdirectory of itself' ;; esac
  if [ -e "$to" ] || [ -L "$to" ]; then
    [ "$first" = yes ] || refuse 'File exists'
    # Of what has both names already nothing is renamed.
    [ "$(stat -c '%d %i' -- "$to")" != "$(stat -c '%d %i' -- "$name")" ] || { show "$to"; exit; }
    if [ -d "$to" ] && [ ! -L "$to" ]; then
      [ -d "$name" ] && [ ! -L "$name" ] || refuse 'Is a directory'
      must rmdir -- "$to"
    elif [ -d "$name" ] && [ ! -L "$name" ]; then
      refuse 'Not a directory'
    elif [ -L "$to" ]; then
      # Else a link to a folder would be moved into.
      must rm -f -- "$to"
    fi
  fi
  if [ "$first" = no ] && [ ! -d "$name" ] && [ ! -L "$name" ]; then
    must ln -- "$name" "$to"
    must rm -f -- "$name"
  else
    must mv -f -- "$name" "$to"
  fi
  show "$to"
}

case $deed in
  remove) remove ;;
  mkdir) make_folder ;;
  move) move ;;
esac
