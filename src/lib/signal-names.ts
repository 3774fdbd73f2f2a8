import { constants } from 'node:os';

/** By number on Linux; a shell's exit code is 128 more. */
const NAMES: Readonly<Record<number, string>> = {
  1: 'HUP',
  2: 'INT',
  3: 'QUIT',
  4: 'ILL',
  5: 'TRAP',
  6: 'ABRT',
  7: 'BUS',
  8: 'FPE',
  9: 'KILL',
  10: 'USR1',
  11: 'SEGV',
  12: 'USR2',
  13: 'PIPE',
  14: 'ALRM',
  15: 'TERM',
  24: 'XCPU',
  25: 'XFSZ',
  31: 'SYS',
};

export const signalNumber = (name: string): string =>
  String(constants.signals[`SIG${name}` as NodeJS.Signals]);

export const signalOf = (exitCode: number): string | undefined => NAMES[exitCode - 128];
