/**
 * Holds what runs inside containers, by a POSIX /bin/sh with its builtins alone. Nothing is ever
 * put into the text of a script: what is particular comes as arguments, or by standard input, which
 * no API server logs.
 */
/**
 * Names the character encoding that every sandbox has, unless the image or the template named one.
 */
const LANG = ': "${LANG:=C.UTF-8}"; export LANG';

/**
 * Prints its process id, reads an order from its input (`execOrder`), runs the command with what is
 * left of the input, and at its end prints the order's token and the exit code to the errors:
 * background processes may hold those open for long.
 */
export const EXEC_SCRIPT = `echo "$$"
${LANG}
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
    run) unset -v sandpool_kind sandpool_more sandpool_line
      (exec "$@" 2>&3 3>&-)
      echo "$sandpool_value$?" >&3
      exit ;;
  esac
done
exit 125`;

/**
 * Prints its process id, and becomes the command that its arguments are, in the terminal that
 * clients show.
 */
export const TERMINAL_SCRIPT = `echo "$$"; ${LANG}; TERM=xterm-256color; export TERM; exec "$@"`;

/**
 * As TERMINAL_SCRIPT, for a command with variables: its first argument is a line that it prints
 * once it has read them (`terminalOrder`).
 */
export const TERMINAL_ENV_SCRIPT = `echo "$$"; ${LANG}; TERM=xterm-256color; export TERM
sandpool_ready=$1 sandpool_value=
shift
while IFS= read -r sandpool_line; do
  case $sandpool_line in
    +*) sandpool_value=$sandpool_value\${sandpool_line#+} ;;
    '|') sandpool_value=$sandpool_value'
' ;;
    %*) sandpool_line=$(printf '%b.' "\${sandpool_line#%}")
      sandpool_value=$sandpool_value\${sandpool_line%.} ;;
    .) command export "$sandpool_value"
      sandpool_value= ;;
    '!') echo "$sandpool_ready"
      unset -v sandpool_ready sandpool_value sandpool_line
      exec "$@" ;;
  esac
done
exit 125`;

/**
 * Arguments: a process, and the signal that it gets first, or KILL. Ends the process and all that
 * descends from it, or is of its session: what the signal leaves after a second is killed, until
 * nothing is left.
 */
export const END_SCRIPT = `root=$1 sign=$2 tree=" $1 " rounds=0
while [ "$rounds" -lt 30 ]; do
  grown=yes
  while [ "$grown" ]; do
    grown= left=
    for file in /proc/[0-9]*/stat; do
      text=
      while IFS= read -r line; do text="$text $line"; done <"$file"
      pid=\${file#/proc/} pid=\${pid%/stat}
      set -- \${text##*) }
      [ "\${1:-Z}" = Z ] && continue
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
exit 1`;

/**
 * Arguments: a shell with a terminal, and a signal for what runs in its foreground; for itself
 * where no terminal is its own.
 */
export const SIGNAL_SCRIPT = `text=
while IFS= read -r line; do text="$text $line"; done <"/proc/$1/stat"
pid=$1 sign=$2
set -- \${text##*) }
if [ "\${6:-0}" -gt 0 ]; then kill -s "$sign" -- "-$6"; else kill -s "$sign" "$pid"; fi`;

export interface ExecOrder {
  readonly argv: readonly string[];
  readonly cwd?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** The line that comes before the exit code. */
  readonly token: string;
}

/**
 * The order as EXEC_SCRIPT reads it: of each part its kind, its number of line ends, and itself.
 * Throws at a NUL.
 */
export const execOrder = ({ argv, cwd, env = {}, token }: ExecOrder): Buffer => {
  const parts: (readonly [string, string])[] = [
    ...(cwd === undefined ? [] : [['cwd', cwd] as const]),
    ...Object.entries(env).map(([name, value]) => ['env', `${name}=${value}`] as const),
    ...argv.map((argument) => ['arg', argument] as const),
    ['run', token],
  ];
  if (parts.some(([, value]) => value.includes('\0')))
    throw new Error('a command, its folder or its environment holds a NUL');
  return Buffer.from(
    parts.map(([kind, value]) => `${kind}\n${value.split('\n').length - 1}\n${value}\n`).join(''),
  );
};
