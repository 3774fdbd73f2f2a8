import { posix } from 'node:path';
import { filePathOf } from '../../../../model/file-path.ts';
import { invalidArgument, unavailable } from '../../../../model/refusals.ts';
import type { FileTarget } from '../../../../services/files/file-operations.ts';
import type { Operations } from '../../../../services/operations.ts';
import type { AddressedSandbox } from '../../traffic/addressed-sandbox.ts';

export interface Place {
  readonly shown: string;
  readonly path: string;
}

interface Home {
  readonly path: string;
  readonly hasTheirs: boolean;
}

/** E2B's convention. */
const THEIR_HOME = '/home/user';
/** Prints the home, and a NUL if `/home/user` exists. */
const ASK_HOME = ['/bin/sh', '-c', `printf %s "$HOME"; [ -d ${THEIR_HOME} ] && printf '\\0'; :`];
const ASK_MS = 10_000;
const MOST_BYTES = 4_096;
const MOST_KNOWN = 10_000;

/** Relative paths start at the home, which `/home/user` means unless such a folder exists. */
export class Homes {
  readonly #operations: Pick<Operations, 'execInSandbox'>;
  readonly #known = new Map<string, Promise<Home>>();

  constructor(operations: Pick<Operations, 'execInSandbox'>) {
    this.#operations = operations;
  }

  /** Refuses an invalid path, and one in another user's home. */
  async place(sandbox: AddressedSandbox, text: string): Promise<Place> {
    if (!text.isWellFormed()) throw invalidArgument('path', 'is not well-formed Unicode');
    if (/^~[^/]/.test(text))
      throw invalidArgument('path', 'leads to the home of another user, who does not exist');
    const rest = text.startsWith('/') ? undefined : text.replace(/^~/, '');
    const asked = posix.normalize(rest === undefined ? text : `/${rest}`);
    const shown = asked.length > 1 ? asked.replace(/\/$/, '') : asked;
    if (rest !== undefined) {
      const path = beneath((await this.#homeOf(sandbox)).path, shown);
      return { shown: path, path };
    }
    if (shown !== THEIR_HOME && !shown.startsWith(`${THEIR_HOME}/`)) return { shown, path: shown };
    const { path, hasTheirs } = await this.#homeOf(sandbox);
    return { shown, path: hasTheirs ? shown : beneath(path, shown.slice(THEIR_HOME.length)) };
  }

  async #homeOf(sandbox: AddressedSandbox): Promise<Home> {
    const { sandboxId } = sandbox;
    const known = this.#known.get(sandboxId);
    if (known) return await known;
    const [oldest] = this.#known.keys();
    if (oldest !== undefined && this.#known.size >= MOST_KNOWN) this.#known.delete(oldest);
    const asked = this.#ask(sandbox);
    this.#known.set(sandboxId, asked);
    asked.catch(() => this.#known.delete(sandboxId));
    return await asked;
  }

  async #ask({ caller, sandboxId }: AddressedSandbox): Promise<Home> {
    const request = { argv: ASK_HOME, timeoutMs: ASK_MS, outputLimit: MOST_BYTES };
    // Others may share this answer: do not abort it.
    const signal = AbortSignal.timeout(2 * ASK_MS);
    const { stdout } = await this.#operations
      .execInSandbox(caller, sandboxId, { request, signal })
      .catch((error: unknown) => {
        throw signal.aborted ? unavailable('the sandbox did not report its home folder') : error;
      });
    const [home = '', theirs] = stdout.toString('utf8').split('\0');
    const path = home.startsWith('/') ? posix.normalize(home) : '/';
    return { path, hasTheirs: theirs !== undefined };
  }
}

const beneath = (home: string, path: string): string => {
  const joined = posix.join(home, path);
  return joined.length > 1 ? joined.replace(/\/$/, '') : joined;
};

export const targetAt = ({ sandboxId }: AddressedSandbox, path: string): FileTarget => ({
  sandboxId,
  path: filePathOf('path', path),
});
