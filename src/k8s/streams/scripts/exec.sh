# Reads an order from its input (`execOrder`), runs the command with what is left of the input, and at
# its end prints the order's token and the exit code both to the output and to the errors: background
# processes may hold those open for long.
exec 3>&2 2>/dev/null
while IFS= read -r sandpool_kind && IFS= read -r sandpool_more && IFS= read -r sandpool_value; do
  while [ "$sandpool_more" -gt 0 ]; do
    IFS= read -r sandpool_line
    sandpool_value=$sandpool_value'
'$sandpool_line
    sandpool_more=$((sandpool_more - 1))
  done
  case $sandpool_kind in
    cwd) cd -- "$sandpool_value" 2>&3 || exit 125 ;;
    env) command export "$sandpool_value" ;;
    arg) set -- "$@" "$sandpool_value" ;;
    run)
      unset -v sandpool_kind sandpool_more sandpool_line
      (exec "$@" 2>&3 3>&-)
      set -- "$sandpool_value$?"
      echo "$1"
      echo "$1" >&3
      exit
      ;;
  esac
done
exit 125
