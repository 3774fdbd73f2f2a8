import { readScript, type PodScript } from '../streams/pod-script.ts';

const FOLDER = new URL('scripts/', import.meta.url);

/**
 * Describes what is done about processes in containers; each script says what it reads and prints.
 */
export interface ProcessScripts {
  readonly start: PodScript;
  readonly list: PodScript;
  readonly output: PodScript;
  readonly write: PodScript;
  readonly act: PodScript;
}

let scripts: ProcessScripts | undefined;

/** Returns the scripts. The files are read once for a process. */
export const processScripts = (): ProcessScripts =>
  (scripts ??= {
    start: readScript(FOLDER, 'common', 'start'),
    list: readScript(FOLDER, 'common', 'list'),
    output: readScript(FOLDER, 'common', 'enter', 'output'),
    write: readScript(FOLDER, 'common', 'enter', 'write'),
    act: readScript(FOLDER, 'common', 'enter', 'act'),
  });
