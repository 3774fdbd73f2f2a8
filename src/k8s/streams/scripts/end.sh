# Arguments: a process, and the signal that it gets first, or KILL. Ends the process and all that
# descends from it, or is of its session: what the signal leaves after a second is killed, until nothing
# is left.
root=$1 sign=$2 tree=" $1 " rounds=0
while [ "$rounds" -lt 30 ]; do
  grown=yes
  while [ "$grown" ]; do
    grown= left=
    for file in /proc/[0-9]*/stat; do
      text=
      while IFS= read -r line; do text="$text $line"; done <"$file"
      pid=${file#/proc/} pid=${pid%/stat}
      set -- ${text##*) }
      [ "${1:-Z}" = Z ] && continue
      case $tree in *" $pid "*) left=yes; continue ;; esac
      case $tree in *" $2 "*) ;; *) [ "$4" = "$root" ] || continue ;; esac
      tree="$tree$pid " grown=yes
    done
  done
  [ "$left" ] || exit 0
  kill -s "$sign" $tree
  [ "$sign" = KILL ] || sleep 1
  sign=KILL rounds=$((rounds + 1))
done 2>/dev/null
exit 1
