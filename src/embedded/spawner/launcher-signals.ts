/**
 * Signals to a launcher that joined, which passes them on (native/README.md): SIGRTMIN stands for
 * KILL, the next for TERM.
 */
export const LAUNCHER_SIGNALS: Readonly<Record<string, number>> = {
  HUP: 1,
  INT: 2,
  QUIT: 3,
  USR1: 10,
  USR2: 12,
  CONT: 18,
  TSTP: 20,
  WINCH: 28,
  KILL: 34,
  TERM: 35,
};

/** Has the launcher kill the command's group, and its terminal's foreground. */
export const KILL_ALL = 15;
