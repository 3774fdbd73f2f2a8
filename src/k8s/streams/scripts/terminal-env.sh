# As terminal.sh, for a command with variables: its first argument is a line that it prints once it has
# read them (`terminalOrder`).
TERM=xterm-256color
export TERM
sandpool_ready=$1 sandpool_value=
shift
while IFS= read -r sandpool_line; do
  case $sandpool_line in
    +*) sandpool_value=$sandpool_value${sandpool_line#+} ;;
    '|') sandpool_value=$sandpool_value'
' ;;
    %*)
      sandpool_line=$(printf '%b.' "${sandpool_line#%}")
      sandpool_value=$sandpool_value${sandpool_line%.}
      ;;
    .)
      command export "$sandpool_value"
      sandpool_value=
      ;;
    '!')
      echo "$sandpool_ready"
      unset -v sandpool_ready sandpool_value sandpool_line
      exec "$@"
      ;;
  esac
done
exit 125
